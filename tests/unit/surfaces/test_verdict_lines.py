"""Lines of a run as other programs read them."""

from __future__ import annotations

from surefoot.surfaces.verdict import assistant_line


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
