"""Lines of a run as other programs read them."""

from __future__ import annotations

from surefoot.core.model import Receipt, State
from surefoot.surfaces.verdict import assistant_line, given, result_line


def test_ux_30_tr_5_a_call_is_shown_as_an_object_without_its_secrets() -> None:
    calls = [
        {
            "callId": "cal_1",
            "askedName": "http",
            "arguments": '{"url": "https://h.example", "api_key": "sk-abcdef123456"}',
        },
        {"callId": "cal_2", "askedName": "read", "arguments": '{"path": "a'},
    ]
    line = assistant_line({"text": "", "calls": calls}, "ses_1")
    first, second = [block["input"] for block in line["message"]["content"]]
    assert first == {"url": "https://h.example", "api_key": "[redacted]"}
    assert isinstance(second, str)


def test_ux_30_tr_6_a_result_too_long_for_a_line_says_where_it_is() -> None:
    receipt = Receipt(
        "ses_1", "trn_1", "cal_1", "att_1", 0, state=State.SUCCEEDED, result_ref="sha256:" + "0" * 64
    )
    (block,) = result_line({"callId": "cal_1", **given(receipt)}, "ses_1")["message"]["content"]
    assert block["result_ref"] == receipt.result_ref and not block["is_error"]
    assert "surefoot session export ses_1" in block["content"] and "att_1" in block["content"]
    stored = Receipt(
        "ses_1", "trn_1", "cal_1", "att_1", 0, state=State.SUCCEEDED, result={"text": "all", "isError": False}
    )
    (block,) = result_line({"callId": "cal_1", **given(stored)}, "ses_1")["message"]["content"]
    assert block["content"] == "all" and "result_ref" not in block
