"""The refusals seen on Responses and Anthropic Messages, each named by the class of its rule."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from openai.types.responses import ResponseError

from surefoot.providers import contracts
from surefoot.providers.diagnosis import diagnose


def openai(message: str, **more: Any) -> dict[str, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": "input", "code": None, **more}
    return {"error": error}


def claude(message: str, kind: str = "invalid_request_error", **details: str) -> dict[str, Any]:
    error: dict[str, Any] = {"type": kind, "message": message}
    return {
        "type": "error",
        "error": {**error, **({"details": details} if details else {})},
        "request_id": "req_1",
    }


OR = "openai/responses"
AN = "anthropic/anthropic"
SEEN: list[tuple[str, str, int, dict[str, Any], str]] = [
    ("OR-01", OR, 400, openai("No tool output found for function call call_1."), "replay_pairing"),
    (
        "OR-02",
        OR,
        400,
        openai("No tool call found for function call output with call_id call_1."),
        "replay_pairing",
    ),
    (
        "OR-03",
        OR,
        400,
        openai(
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."
        ),
        "replay_reasoning",
    ),
    (
        "OR-04",
        OR,
        400,
        openai("Item 'rs_1' of type 'reasoning' was provided without its required following item."),
        "replay_reasoning",
    ),
    (
        "OR-05",
        OR,
        404,
        openai("Item with id 'rs_1' not found. Items are not persisted when 'store' is set to false."),
        "replay_reasoning",
    ),
    (
        "OR-06",
        OR,
        400,
        openai("Invalid 'input[2].id': 'x'. Expected an ID that begins with 'msg'."),
        "replay_ids",
    ),
    (
        "OR-07",
        OR,
        400,
        openai("The encrypted content gAAA could not be verified.", code="invalid_encrypted_content"),
        "replay_signature",
    ),
    ("OR-08", OR, 400, openai("Duplicate item found with id fc_2. Remove duplicate items."), "replay_ids"),
    (
        "OR-09",
        OR,
        400,
        openai("string too long.", code="string_above_max_length", param="input[149].call_id"),
        "replay_ids",
    ),
    ("OR-11", OR, 400, openai("Invalid 'previous_response_id'."), "replay_pairing"),
    (
        "DS-05",
        "deepseek/responses",
        400,
        openai("The `reasoning_text` in the thinking mode must be passed back to the API."),
        "replay_reasoning",
    ),
    (
        "AN-01",
        AN,
        400,
        claude(
            "messages.22: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."
        ),
        "replay_pairing",
    ),
    (
        "AN-02",
        AN,
        400,
        claude("messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1."),
        "replay_pairing",
    ),
    (
        "AN-04",
        AN,
        400,
        claude("messages.4.content.1: each tool_use must have a single result. Found multiple."),
        "replay_pairing",
    ),
    ("AN-05", AN, 400, claude("messages.1.content.1: `tool_use` ids must be unique"), "replay_ids"),
    (
        "AN-06",
        AN,
        400,
        claude("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"),
        "replay_ids",
    ),
    (
        "AN-07",
        AN,
        400,
        claude("messages.5.content.1: `thinking` blocks in the latest assistant message cannot be modified."),
        "replay_signature",
    ),
    (
        "AN-08",
        AN,
        400,
        claude("messages.1.content.0: Invalid `signature` in `thinking` block"),
        "replay_signature",
    ),
    (
        "AN-09",
        "anthropic-bound/anthropic",
        400,
        claude("Invalid 'signature' in 'thinking' block. The block is bound to a different conversation."),
        "replay_signature",
    ),
    (
        "AN-10",
        AN,
        400,
        claude(
            "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
        ),
        "replay_reasoning",
    ),
    (
        "AN-11",
        AN,
        400,
        claude(
            "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`."
        ),
        "replay_reasoning",
    ),
    ("AN-12", AN, 400, claude("messages.1.content.0.thinking.signature: Field required"), "replay_signature"),
    (
        "AN-14",
        AN,
        400,
        claude(
            "`web_fetch` tool use with id srvtoolu_1 was found without a corresponding `web_fetch_tool_result`"
        ),
        "replay_pairing",
    ),
    ("AN-16", AN, 400, claude("messages: text content blocks must be non-empty"), "schema"),
    (
        "AN-17",
        AN,
        400,
        claude("messages.4.content.0.tool_result: content cannot be empty if `is_error` is true"),
        "schema",
    ),
    (
        "AN-18",
        AN,
        400,
        claude("A maximum of 4 blocks with cache_control may be provided. Found 5."),
        "schema",
    ),
    ("AN-19", AN, 400, claude("The conversation must end with a user message."), "replay_pairing"),
    ("AN-20", AN, 400, claude("messages.1.content.0.text.x: Extra inputs are not permitted"), "schema"),
    (
        "DS-04",
        "deepseek/anthropic",
        400,
        claude("The `content[].thinking` in the thinking mode must be passed back to the API."),
        "replay_reasoning",
    ),
    (
        "AN-22",
        AN,
        400,
        claude("a tool of that name is there", tool_name_conflict="x", error_code="tool_name_conflict"),
        "schema",
    ),
    ("X-01", AN, 401, claude("invalid x-api-key", "authentication_error"), "auth"),
    ("X-02", AN, 400, claude("Your credit balance is too low to access the Anthropic API."), "quota"),
    (
        "X-03",
        AN,
        429,
        claude("limit", "rate_limit_error", error_code="enforced_spend_limit_reached"),
        "quota",
    ),
    ("X-04", AN, 429, claude("slow down", "rate_limit_error"), "rate"),
    ("X-05", AN, 529, claude("Overloaded", "overloaded_error"), "transient"),
    ("X-06", AN, 400, claude("prompt is too long: 219898 tokens > 200000 maximum"), "context_overflow"),
    (
        "X-06",
        AN,
        400,
        claude("input length and `max_tokens` exceed context limit: 1 + 2 > 3"),
        "context_overflow",
    ),
    ("X-12", AN, 413, claude("Request exceeds the maximum size", "request_too_large"), "payload"),
]


@pytest.mark.parametrize(
    ("rule", "contract", "status", "body", "kind"), SEEN, ids=[f"{one[0]}-{one[1]}" for one in SEEN]
)
def test_pr_10_a_refusal_seen_gets_the_class_of_its_rule(
    rule: str, contract: str, status: int, body: dict[str, Any], kind: str
) -> None:
    assert diagnose(status, json.dumps(body).encode(), contracts.resolve(contract)).kind == kind, rule


def test_pr_10_every_code_of_a_failed_response_that_no_wait_cures_is_not_asked_for_again() -> None:
    passing = {"server_error", "rate_limit_exceeded", "vector_store_timeout"}
    worded = {"data_residency_mismatch"}
    named = set(get_args(ResponseError.model_fields["code"].annotation)) - passing - worded
    contract = contracts.resolve("compat/responses")
    kinds = {}
    for code in named:
        body = json.dumps({"error": {"code": code, "message": "It failed."}}).encode()
        kinds[code] = diagnose(None, body, contract).kind
    assert set(kinds.values()) == {"policy", "payload", "schema"}
    assert {code for code, kind in kinds.items() if kind == "policy"} >= {"bio_policy"}
    assert all(kind == "policy" for code, kind in kinds.items() if "policy" in code)


@pytest.mark.parametrize(
    "contract", ["openai/responses", "azure/responses", "minimax/responses", "openai/chat"]
)
def test_pr_10_an_invalid_prompt_is_what_its_words_say_and_never_a_passing_fault(contract: str) -> None:
    words = {
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.": "policy",
        "Invalid prompt: we've limited access to this content for safety reasons.": "policy",
        "invalid params, tool result's tool id(call_function_a_1) not found (2013)": "replay_pairing",
        "No tool output found for function call call_1.": "replay_pairing",
        "Something else.": "schema",
    }
    for message, kind in words.items():
        body = json.dumps({"error": {"code": "invalid_prompt", "message": message}}).encode()
        assert diagnose(None, body, contracts.resolve(contract)).kind == kind, message
