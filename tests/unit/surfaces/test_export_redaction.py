"""An export of a session that was full of secrets: none is left, and what was taken out is listed."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from surefoot.core.model import Entry, Kind, Receipt, State
from surefoot.surfaces import export
from surefoot.surfaces.export_schema import export_schema
from surefoot.surfaces.words import LANGUAGES

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
URL = ALNUM + "-_"

PREFIXED = {
    "sk-": (ALNUM, 32), "sk-proj-": (ALNUM, 40), "sk-ant-api03-": (ALNUM, 40), "sk_live_": (ALNUM, 24),
    "rk_live_": (ALNUM, 24), "pk_live_": (ALNUM, 24), "ghp_": (ALNUM, 36), "gho_": (ALNUM, 36), "ghs_": (ALNUM, 36),
    "github_pat_": (ALNUM, 60), "glpat-": (URL, 20), "gldt-": (URL, 20), "xoxb-": (ALNUM, 30), "xoxp-": (ALNUM, 30),
    "AKIA": (UPPER, 16), "ASIA": (UPPER, 16), "AIza": (URL, 35), "ya29.": (URL, 40), "npm_": (ALNUM, 36),
    "hf_": (ALNUM, 34), "pypi-": (URL, 60), "dop_v1_": (HEX, 64), "shpat_": (HEX, 32), "whsec_": (ALNUM, 32),
    "GOCSPX-": (URL, 28), "dapi": (HEX, 32), "AGE-SECRET-KEY-1": (UPPER, 58), "hvs.": (ALNUM, 24),
    "lin_api_": (ALNUM, 40), "gsk_": (ALNUM, 52), "xai-": (ALNUM, 60), "nvapi-": (URL, 64), "figd_": (URL, 40),
    "glsa_": (ALNUM, 40), "rubygems_": (HEX, 48), "dckr_pat_": (URL, 27), "PMAK-": (HEX, 58), "tvly-": (ALNUM, 32),
    "pplx-": (HEX, 48), "r8_": (ALNUM, 37), "sntrys_": (ALNUM, 60), "ATATT3x": (URL, 60), "EAAC": (ALNUM, 60),
    "sq0atp-": (URL, 22), "key-": (HEX, 32), "SG.": (URL, 22),
}  # fmt: skip
NAMED = (
    "password={}", "PGPASSWORD={} psql", "passphrase: {}", "api_key={}", "X-Api-Key: {}", "secret={}",
    "client_secret={}", "AWS_SECRET_ACCESS_KEY={}", "--password {}", "--api-token {}", "token: {}", "AccountKey={}",
    '{{"password": "{}"}}', "'auth_token': '{}'", "Authorization: Bearer {}", "Authorization: Basic {}",
    "curl -u me:{} https://h.example", "https://me:{}@h.example/x", "postgres://u:{}@db/x", "Cookie: session={}",
    "Set-Cookie: sid={}; Path=/", "mysql -u root -p{} db", "machine h.example login me password {}",
    "https://h.example/cb?access_token={}&x=1", "SharedAccessKey={};x", "sshpass -p {} ssh h.example",
)  # fmt: skip


def of(random_: random.Random, letters: str, count: int) -> str:
    return "".join(random_.choice(letters) for _ in range(count))


def corpus() -> Iterator[tuple[str, str]]:
    """Texts, each with the secret in it."""
    chance = random.Random(54)
    for prefix, (letters, count) in PREFIXED.items():
        for frame in ("{}", "use {} please", 'key = "{}"', "export K={}\n", "a\n{}\nb", "({})"):
            body = of(chance, letters[: len(letters) if "-" not in letters else -2], 1)
            body += of(chance, letters, count - 2) + of(chance, ALNUM if "-" in letters else letters, 1)
            body = f"{body}.{of(chance, ALNUM, 43)}" if prefix == "SG." else body
            yield frame.format(prefix + body), body
    for frame in NAMED:
        for count in (8, 12, 16, 20, 24, 32):
            secret = of(chance, ALNUM, count)
            yield frame.format(secret), secret
    for kind in (
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "EC PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
    ):
        for count in (60, 200, 700, 1600, 100, 64, 65, 128):
            secret = of(chance, ALNUM + "+/", count)
            yield f"x\n-----BEGIN {kind}-----\n{secret}\n-----END {kind}-----\ny", secret
    for count in (20, 40, 80, 25, 30, 35, 45, 50):
        secret = of(chance, ALNUM, count)
        yield f"jwt eyJ{of(chance, ALNUM, 20)}.eyJ{of(chance, ALNUM, 30)}.{secret} end", secret
    for count in (24, 23, 22, 20):
        secret = of(chance, ALNUM, count)
        yield (
            f"https://hooks.slack.com/services/T{of(chance, UPPER, 8)}/B{of(chance, UPPER, 8)}/{secret}",
            secret,
        )
        yield f"https://discord.com/api/webhooks/1234567890/{secret}{secret}", secret
    for _ in range(16):
        secret = of(chance, URL[:-2], 35)
        yield f"bot {chance.randrange(10**8, 10**9)}:AA{secret[2:]}", secret[2:]


CORPUS = list(corpus())


def source(text: str, arguments: Any, display: str | None = None) -> export.Source:
    attempt = "att_" + "0" * 26
    receipt = Receipt("ses_1", "turn_1", "call_1", attempt, 0, tool="shell", asked_name="shell",
                      arguments=json.dumps(arguments), state=State.SUCCEEDED, arguments_display=display,
                      result={"text": text, "isError": False})  # fmt: skip
    calls = [
        {"callId": "call_1", "attemptId": attempt, "arguments": json.dumps(arguments), "askedName": "shell"}
    ]
    look = {"id": "ins_1", "evidence": {"seen": text}}
    payloads = [
        (Kind.USER, {"text": text}),
        (Kind.ASSISTANT, {"text": f"I read {text}", "raw": json.dumps({"content": text}), "calls": calls}),
        (Kind.INSPECTED, {"attemptId": attempt, "inspection": look, "proven": False}),
        (Kind.RESOLVED, {"attemptId": attempt, "resolution": {"kind": "confirmed", "who": "me", "note": text}}),
    ]  # fmt: skip
    entries = [
        Entry("ses_1", place, 1, 1, str(kind), payload) for place, (kind, payload) in enumerate(payloads, 1)
    ]
    facts = {"session_id": "ses_1", "name": text[:80], "directory": "/p", "model": "m", "created_ms": 1,
             "changed_ms": 1, "position": 4, "calls": 1, "open_calls": 0, "status": "ok"}  # fmt: skip
    return export.Source(facts, entries, [receipt], {}, [], "0")


def test_ux_54_of_500_secrets_none_is_left_in_either_form() -> None:
    assert len(CORPUS) >= 500
    left = []
    for text, secret in CORPUS:
        whole = export.document(source(text, {"command": text}))
        for form in (json.dumps(whole), "\n".join(export.markdown(whole, "en"))):
            if secret in form:
                left.append(text[:90])
    assert not left, f"{len(left)}: {sorted(set(left))}"


def test_ux_54_what_was_removed_is_listed_place_by_place() -> None:
    whole = export.document(source("token=abcdefgh12345678", {"command": "echo hi"}))
    places = {one["place"] for one in whole["removed"]}
    assert {
        "entries/0/text",
        "entries/1/raw",
        "receipts/0/result/text",
        "decisions/0/resolution/note",
    } <= places
    for language in LANGUAGES:
        lines = export.removed_lines(whole, language)
        assert len(lines) == 1 + len(places) and "entries/1/raw" in "\n".join(lines)


@pytest.mark.parametrize("value", ["correct horse battery", "Zürich-2031"])
def test_ux_54_a_value_under_a_secret_name_goes_wherever_it_stands(value: str) -> None:
    whole = export.document(
        source(f"the server said {value}, twice: {value}", {"login": {"password": value}})
    )
    assert value not in json.dumps(whole, ensure_ascii=False)


def test_ux_54_a_key_in_use_goes_whatever_its_shape() -> None:
    whole = export.document(source("my key is plainwords", {"command": "ls"}), keys=["plainwords"])
    assert "plainwords" not in json.dumps(whole)


def test_ux_54_receipts_evidence_and_decisions_stand_in_both_forms() -> None:
    whole = export.document(source("hello", {"command": "ls -l"}, '{"command":"ls -l"}'))
    jsonschema.Draft202012Validator(export_schema()).validate(whole)
    assert whole["receipts"][0]["state"] == "succeeded"
    assert whole["evidence"][0]["inspection"]["id"] == "ins_1"
    assert whole["decisions"][0]["resolution"]["kind"] == "confirmed"
    text = "\n".join(export.markdown(whole, "en"))
    assert "## Calls" in text and "## Evidence" in text and "## Decisions" in text and "    ls -l" in text


def test_ux_54_not_redacted_it_holds_everything_and_says_so() -> None:
    whole = export.document(source("token=abcdefgh12345678", {"command": "x"}), redacted=False)
    assert whole["removed"] == [] and "abcdefgh12345678" in json.dumps(whole)
    assert "secrets too" in export.removed_lines(whole, "en")[0]


def test_ux_54_foreign_text_is_inert_in_markdown() -> None:
    whole = export.document(source("![x](http://e.example/p.png)\n# head <img src=x>", {"command": "x"}))
    for line in export.markdown(whole, "en"):
        if "e.example" in line or "<img" in line:
            assert line.startswith("    ") or "\\<img" in line or "\\!\\[" in line
