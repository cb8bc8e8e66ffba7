"""What a refusal means, in a fixed order, without ever repeating its words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surefoot.errors import ProviderCredentials, ProviderRefused, ProviderUnreachable
from surefoot.providers import contracts
from surefoot.providers.diagnosis import clean_trace, diagnose, error_of, is_opaque, next_wait, read_reasons

COMPAT = contracts.resolve("compat/chat")


def openai(message: str, **extra: Any) -> bytes:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", **extra}}).encode()


KINDS: list[tuple[str, int, bytes, str]] = [
    ("X-01", 401, b"", "auth"),
    ("X-01", 403, b"{}", "auth"),
    ("X-02", 400, openai("Your credit balance is too low to access the Anthropic API."), "quota"),
    ("X-03", 402, b"", "quota"),
    ("X-03", 403, openai("no", code="exceeded_current_quota_error"), "quota"),
    ("X-03", 429, openai("You exceeded your quota", code="insufficient_quota"), "quota"),
    ("X-04", 429, b"", "rate"),
    ("X-04", 429, openai("busy", type="engine_overloaded_error"), "rate"),
    ("X-04", 413, openai("Request too large: tokens per minute (TPM) limit 6000"), "rate"),
    ("X-05", 503, b"<html>", "transient"),
    ("X-05", 529, openai("Overloaded", type="overloaded_error"), "transient"),
    ("X-06", 400, openai("prompt is too long: 219898 tokens > 200000 maximum"), "context_overflow"),
    ("X-06", 400, openai("exceeded model token limit: 262144 (requested: 269030)"), "context_overflow"),
    ("X-06", 400, openai("This model's maximum context length is 4096 tokens."), "context_overflow"),
    ("X-06", 400, openai("x", code="context_length_exceeded"), "context_overflow"),
    ("X-06", 400, openai("too big", type="exceed_context_size_error"), "context_overflow"),
    ("X-07", 400, openai("Content Exists Risk"), "policy"),
    (
        "X-08",
        400,
        openai("Invalid 'messages[2].tool_calls': empty array. Expected", code="empty_array"),
        "schema",
    ),
    ("X-09", 500, openai("out of memory; reduce context length"), "transient"),
    ("X-10", 400, b"", "upstream_reason_missing"),
    ("X-10", 400, b' {"model": null}\n', "upstream_reason_missing"),
    ("X-12", 413, b"<html>too large</html>", "payload"),
    ("GL", 400, b"{}", "upstream_reason_unrecognised"),
    (
        "RT-06",
        400,
        openai("Upstream request failed: [invalid_request_error] Invalid upload request."),
        "transient",
    ),
    ("OC-10", 400, openai("x", code="tool_use_failed"), "generation"),
    ("other", 400, openai("the moon is wrong"), "rejected"),
    ("other", 404, openai("model not there"), "rejected"),
    ("other", 302, b"", "rejected"),
    (
        "OC-01",
        400,
        openai("An assistant message with 'tool_calls' must be followed by tool messages responding to each"),
        "replay_pairing",
    ),
    (
        "DS-03",
        400,
        openai("The `reasoning_content` in the thinking mode must be passed back to the API."),
        "replay_reasoning",
    ),
    (
        "AN-08",
        400,
        openai("messages.1.content.0: Invalid `signature` in `thinking` block"),
        "replay_signature",
    ),
    ("AN-05", 400, openai("messages.1.content.1: `tool_use` ids must be unique"), "replay_ids"),
    (
        "OC-05",
        400,
        openai("long", code="string_above_max_length", param="messages[3].tool_call_id"),
        "replay_ids",
    ),
    ("QW-02", 400, openai('The "function.arguments" parameter must be in JSON format.'), "replay_arguments"),
    (
        "RT-01",
        502,
        json.dumps(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 502,
                    "metadata": {
                        "raw": json.dumps({"error": {"message": "insufficient tool messages following"}})
                    },
                }
            }
        ).encode(),
        "replay_pairing",
    ),
    (
        "RT-05",
        502,
        b'DeepSeek 400: {"error":{"message":"The `reasoning_content` in the thinking mode must be passed back"}}',
        "replay_reasoning",
    ),
    ("RT-05", 502, b'DeepSeek 400: {"error":{"message":"x"}}', "transient"),
]


@pytest.mark.parametrize(
    ("name", "status", "body", "kind"), KINDS, ids=[f"{k[0]}-{k[3]}-{n}" for n, k in enumerate(KINDS)]
)
def test_pr_10_a_refusal_gets_one_kind(name: str, status: int, body: bytes, kind: str) -> None:
    assert diagnose(status, body, COMPAT).kind == kind


def test_ls_02_a_500_about_history_is_a_replay_fault_only_where_the_contract_says_so() -> None:
    body = openai("Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]")
    assert diagnose(500, body, contracts.resolve("llamacpp/chat")).kind == "replay_arguments"
    assert diagnose(500, body, COMPAT).kind == "transient"


def test_pr_8_words_outside_the_reason_texts_start_nothing() -> None:
    body = json.dumps({"error": {"message": "nope"}, "echo": "tool_calls must be followed by"}).encode()
    assert diagnose(400, body, COMPAT).kind == "rejected"


OPAQUE = [
    b"",
    b" \n",
    b"\xef\xbb\xbf",
    b'{"model":"m"}',
    b' {"model": null}\n',
    b'{"model":"insufficient_quota"}',
]
NOT_OPAQUE = [b"{}", b"[]", b"null", b'"m"', b'[{"model":"m"}]', b'{"model":"m","id":"1"}', b'{"error":{}}']
NOT_OPAQUE += [
    b"Bad Request",
    b"<p>",
    b'data: {"model":"m"}',
    b'{"model":',
    b'{"model":"m"} {}',
    b'{"error":{"message":""}}',
]


def test_pr_9_the_opaque_predicate_is_exact() -> None:
    assert all(is_opaque(400, body, complete=True) for body in OPAQUE)
    assert not any(is_opaque(400, body, complete=True) for body in NOT_OPAQUE)
    assert not any(is_opaque(status, b"", complete=True) for status in (200, 401, 403, 404, 422, 429, 500))
    assert not is_opaque(400, b"", complete=False)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf {}", "object"),
        (b"[{}]", "object"),
        (b"[1,2]", "json"),
        (b"<html>", "html"),
        (b"oops", "text"),
        (b"\xff", "binary"),
        (b'data: {"error":{"message":"a b"}}\n\n', "sse"),
    ],
)
def test_pr_6_a_body_is_normalised(body: bytes, kind: str) -> None:
    assert read_reasons(body, COMPAT).body_kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "Bad Request",
        "400 Bad Request",
        "HTTP/1.1 400 Bad Request",
        "Error 400: Bad Request.",
        "bad request",
        "Error",
    ],
)
def test_pr_7_a_bare_status_phrase_is_no_reason(text: str) -> None:
    assert read_reasons(text.encode(), COMPAT).texts == ()
    assert diagnose(400, text.encode(), COMPAT).kind == "upstream_reason_unrecognised"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("roles must alternate", "replay_pairing"),
        ("Insufficient Balance", "quota"),
        ("Content Exists Risk", "policy"),
        ("Invalid upload request", "transient"),
        ("the moon is wrong", "rejected"),
    ],
)
def test_pr_7_pr_28_a_short_sentence_of_plain_words_is_a_reason(text: str, kind: str) -> None:
    assert diagnose(400, text.encode(), COMPAT).kind == kind


def test_pr_7_a_plain_text_is_measured_in_bytes() -> None:
    tail = " roles must alternate"
    assert diagnose(400, ("x" * 900 + tail).encode(), COMPAT).kind == "replay_pairing"
    assert diagnose(400, ("角" * 900 + tail).encode(), COMPAT).kind == "upstream_reason_unrecognised"


def test_pr_6_the_first_event_is_read_whole_and_no_other() -> None:
    first = 'data: {"error":\ndata: {"message": "roles must alternate"}}\n\n'
    later = 'data: {"error": {"message": "Content Exists Risk"}}\n\n'
    assert diagnose(400, (first + later).encode(), COMPAT).kind == "replay_pairing"
    found = read_reasons(f"event: error\n{later}data: [DONE]\n\n".encode(), COMPAT)
    assert (found.body_kind, found.texts) == ("sse", ("content exists risk",))


@pytest.mark.parametrize(
    ("body", "kind"), [(b'["x"]', "json"), (b"[[1]]", "json"), (b'[{"error":{}}]', "object")]
)
def test_pr_6_a_list_of_one_is_named_by_what_it_holds(body: bytes, kind: str) -> None:
    assert read_reasons(body, COMPAT).body_kind == kind


def test_pr_16_only_clean_identifiers_of_a_body_survive() -> None:
    seen = diagnose(400, openai("secret sentence", code="a_code", param="messages[3].role"), COMPAT)
    assert (seen.code, seen.param) == ("a_code", "messages[3].role")
    hostile = diagnose(400, openai("x", code="sk-12345", param="a sentence here"), COMPAT)
    assert (hostile.code, hostile.param) == (None, None)
    assert diagnose(400, openai("x", code="a_code\n"), COMPAT).code is None
    error = error_of(seen)
    assert "secret" not in str(error) + repr(error.facts)


@pytest.mark.parametrize("bad", ["", "a b", "a\nb", "abc\n", "x" * 129, "é", "\x00"])
def test_ux_128_a_trace_id_is_kept_whole_or_not_at_all(bad: str) -> None:
    assert clean_trace("req_9.a:b-C") == "req_9.a:b-C"
    assert clean_trace(bad) is None


def test_errors_say_what_a_caller_must_do() -> None:
    assert isinstance(error_of(diagnose(401, b"", COMPAT)), ProviderCredentials)
    assert isinstance(error_of(diagnose(402, b"", COMPAT)), ProviderCredentials)
    assert isinstance(error_of(diagnose(503, b"", COMPAT)), ProviderUnreachable)
    rate = error_of(diagnose(429, b"", COMPAT), retry_after_seconds=3.0)
    assert isinstance(rate, ProviderRefused)
    assert rate.facts["transient"]
    assert rate.facts["retry_after_seconds"] == 3.0
    for status, body in ((400, b""), (400, openai("x")), (413, b""), (404, b"")):
        assert "status" in str(error_of(diagnose(status, body, COMPAT)))


def test_pr_5_the_wait_is_bounded_and_obeys_the_server() -> None:
    busy = {"transient": True, "kind": "transient"}
    assert [next_wait(n, busy) for n in range(1, 7)] == [0.5, 1.0, 2.0, 4.0, 8.0, None]
    assert next_wait(1, {**busy, "retry_after_seconds": 7.0}) == 7.0
    assert next_wait(1, {**busy, "retry_after_seconds": 3600.0}) is None
    assert next_wait(1, {**busy, "should_retry": False}) is None
    assert next_wait(1, {"transient": False}) is None
    assert next_wait(3, busy, max_requests=3) is None
    cut = {"transient": True, "kind": "transport"}
    assert [next_wait(1, cut), next_wait(2, cut)] == [0.5, None]


def test_case_t19_oc_10_a_reply_its_server_could_not_read_is_asked_for_once_more_and_never_with_hosted_tools() -> (
    None
):
    unusable = {"kind": "generation", "transient": False}
    assert [next_wait(1, unusable), next_wait(2, unusable)] == [0.5, None]
    assert next_wait(1, {**unusable, "hosted": ["code"]}) is None
    assert next_wait(1, {**unusable, "should_retry": False}) is None
    assert next_wait(1, unusable, max_requests=1) is None
