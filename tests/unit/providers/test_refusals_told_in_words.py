"""Refusals whose kind stands in words alone are never taken for a replay fault (FI-14)."""

from __future__ import annotations

import json

import pytest

from surefoot.providers import contracts
from surefoot.providers.diagnosis import diagnose

CONTRACTS = [name for name in contracts.contract_ids() if contracts.resolve(name)["contract.tier"] == 1]
BAIT = " tool_calls, messages, thinking and reasoning are fine."


@pytest.mark.parametrize("name", CONTRACTS)
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("You exceeded your current quota, please check your plan.", "quota"),
        ("Unknown parameter: 'tools[0].x'.", "schema"),
    ],
)
def test_fi_14_quota_and_schema_in_words_alone_make_no_incident(name: str, text: str, kind: str) -> None:
    body = json.dumps({"error": {"message": text + BAIT, "type": "invalid_request_error"}}).encode()
    assert diagnose(400, body, contracts.resolve(name)).kind == kind
