"""Pure. The checks an endpoint makes on an Anthropic Messages request, written from the wire's rules.

Owns: the walk over messages and blocks, and the wording of each refusal. Does not
own: which rules a profile enforces (`profiles`), how signatures are recomputed (`bindings`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from surefoot.testing.emulator.anthropic_fields import blocks_have_form, has_form, unknown_keys
from surefoot.testing.emulator.bindings import THINKING, Judged, blocks, judge
from surefoot.testing.emulator.bodies import Refusal
from surefoot.testing.emulator.issuing import came_with_thinking
from surefoot.testing.emulator.profiles import Profile

_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
_SERVER_USES = ("server_tool_use", "mcp_tool_use")


def check(
    request: dict[str, Any], profile: Profile, off: frozenset[str] = frozenset(), beta: str = ""
) -> Refusal | None:
    """The first refusal this profile has for the request, or None. `beta` is the `anthropic-beta` header."""
    found = has_form(request) or (blocks_have_form(request) if profile.checks_fields else None)
    if found is not None:
        return found
    for refusal in _Walk(request, profile, profile.rules - off, beta).refusals():
        return refusal
    return None


def drops_blocks(request: dict[str, Any], beta: str) -> bool:
    """Whether the request lets the service drop blocks of another conversation (R9)."""
    thinking = request.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, dict) else None
    wanted = isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "drop_block"
    return wanted and bool(beta)


def dropped(request: dict[str, Any], profile: Profile, beta: str) -> frozenset[tuple[int, int]]:
    """The blocks this profile drops from the request, to be reported in the reply."""
    if "AN-09" not in profile.rules or not drops_blocks(request, beta):
        return frozenset()
    return frozenset(judge(request).unbound)


def thinking_is_on(request: dict[str, Any], *, usual: bool = False) -> bool:
    """Whether the request asks for thinking; `usual` when it does not say."""
    thinking = request.get("thinking")
    if not isinstance(thinking, dict):
        return usual
    return thinking.get("type") in ("enabled", "adaptive")


class _Walk:
    """One pass over the messages; yields what would be refused, in request order."""

    def __init__(self, request: dict[str, Any], profile: Profile, rules: frozenset[str], beta: str) -> None:
        self.request = request
        self.messages: list[dict[str, Any]] = request["messages"]
        self.profile = profile
        self.rules = rules
        self.beta = beta
        self.ids: set[str] = set()

    def refusals(self) -> Iterator[Refusal]:
        if "AN-20" in self.rules:
            for place in unknown_keys(self.request):
                yield _refused(("AN-20",), f"{place}: Extra inputs are not permitted")
        yield from self._cache_markers()
        judged = judge(self.request) if self.rules & {"AN-07", "AN-08", "AN-09"} else Judged()
        for index, message in enumerate(self.messages):
            yield from self._text(index, message)
            content = blocks(message.get("content"))
            if message["role"] == "assistant":
                yield from self._assistant(index, content, judged)
            else:
                yield from self._results(index, content)
        yield from self._ending()

    def _named(self, rule: str, message: str, **more: Any) -> Iterator[Refusal]:
        if rule in self.rules:
            yield _refused((rule,), message, **more)

    def _assistant(self, index: int, content: list[dict[str, Any]], judged: Judged) -> Iterator[Refusal]:
        for place, block in enumerate(content):
            where = f"messages.{index}.content.{place}"
            if block.get("type") == "tool_use":
                yield from self._call(where, block)
            if block.get("type") in THINKING:
                yield from self._thinking(where, block)
                yield from self._signature((index, place), where, judged)
        yield from self._server_pairs(index, content)
        yield from self._leading_thinking(index, content)
        yield from self._unsigned(index, content)
        yield from self._answered(index, content)

    def _call(self, where: str, block: dict[str, Any]) -> Iterator[Refusal]:
        identity = str(block.get("id"))
        if not _ID.match(identity):
            text = f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            yield from self._named("AN-06", text)
        if identity in self.ids:
            yield from self._named("AN-05", f"{where}: `tool_use` ids must be unique")
        self.ids.add(identity)

    def _thinking(self, where: str, block: dict[str, Any]) -> Iterator[Refusal]:
        key = "signature" if block["type"] == "thinking" else "data"
        if not isinstance(block.get(key), str):
            yield from self._named("AN-12", f"{where}.{block['type']}.{key}: Field required")
        if block["type"] == "thinking" and not isinstance(block.get("thinking"), str):
            if "DS-04" in self.rules:
                yield _refused(("DS-04",), f"{where}: missing field `thinking`")
            yield from self._named("AN-12", f"{where}.thinking.thinking: Field required")

    def _signature(self, place: tuple[int, int], where: str, judged: Judged) -> Iterator[Refusal]:
        if place in judged.modified:
            yield from self._named(
                "AN-07",
                f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot "
                "be modified. These blocks must remain as they were in the original response.",
            )
        if place in judged.invalid:
            yield from self._named("AN-08", f"{where}: Invalid `signature` in `thinking` block")
        if place in judged.unbound and not drops_blocks(self.request, self.beta):
            yield from self._named(
                "AN-09",
                f"{where}: Invalid 'signature' in 'thinking' block. The block is bound to a different "
                "conversation. Remove the block, or set 'thinking.block_binding.prefix_mismatch_behavior' "
                f'to "drop_block". {judged.unbound[place]}',
            )

    def _answered(self, index: int, content: list[dict[str, Any]]) -> Iterator[Refusal]:
        """AN-01 and AN-03: the very next message begins with a result for each call."""
        asked = [str(block.get("id")) for block in content if block.get("type") == "tool_use"]
        if not asked:
            return
        following = self.messages[index + 1] if index + 1 < len(self.messages) else {}
        answers = blocks(following.get("content")) if following.get("role") == "user" else []
        anywhere = {str(b.get("tool_use_id")) for b in answers if b.get("type") == "tool_result"}
        missing = [identity for identity in asked if identity not in anywhere]
        text = (
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            "{}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
        if missing:
            yield from self._named("AN-01", text.format(", ".join(missing)))
        late = [str(b.get("tool_use_id")) for b in answers[_leading_results(answers) :]]
        if late and set(late) & set(asked):
            rules = ("AN-03", "DS-07") if "DS-07" in self.rules else ("AN-03",)
            if "AN-03" in self.rules:
                yield _refused(rules, text.format(", ".join(i for i in late if i in asked)))

    def _results(self, index: int, content: list[dict[str, Any]]) -> Iterator[Refusal]:
        before = self.messages[index - 1] if index else {}
        asked = set()
        if before.get("role") == "assistant":
            asked = {str(b.get("id")) for b in blocks(before.get("content")) if b.get("type") == "tool_use"}
        seen: set[str] = set()
        for place, block in enumerate(content):
            if block.get("type") != "tool_result":
                continue
            where, identity = f"messages.{index}.content.{place}", str(block.get("tool_use_id"))
            if identity not in asked:
                yield from self._named(
                    "AN-02",
                    f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {identity}. Each "
                    "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
                )
            elif identity in seen:
                yield from self._named(
                    "AN-04",
                    f"{where}: each tool_use must have a single result. Found multiple `tool_result` blocks "
                    f"with id: {identity}",
                )
            seen.add(identity)
            if block.get("is_error") is True and _is_blank(block.get("content")):
                text = f"{where}.tool_result: content cannot be empty if `is_error` is true"
                yield from self._named("AN-17", text)

    def _text(self, index: int, message: dict[str, Any]) -> Iterator[Refusal]:
        content = message.get("content")
        last_of_model = message["role"] == "assistant" and index == len(self.messages) - 1
        if not content and not last_of_model:
            yield from self._named(
                "AN-16",
                f"messages.{index}: all messages must have non-empty content except for the optional final "
                "assistant message",
            )
        for block in blocks(content) if content else ():
            if block.get("type") != "text":
                continue
            text = str(block.get("text") or "")
            if not text:
                yield from self._named("AN-16", "messages: text content blocks must be non-empty")
            elif not text.strip():
                yield from self._named(
                    "AN-16", "messages: text content blocks must contain non-whitespace text"
                )

    def _server_pairs(self, index: int, content: list[dict[str, Any]]) -> Iterator[Refusal]:
        """AN-14. A last message may still wait for its result: the turn was paused."""
        open_uses: dict[str, str] = {}
        for place, block in enumerate(content):
            kind = str(block.get("type"))
            if kind in _SERVER_USES:
                open_uses[str(block.get("id"))] = str(block.get("name"))
            elif kind.endswith("_tool_result"):
                identity = str(block.get("tool_use_id"))
                if open_uses.pop(identity, None) is None:
                    yield from self._named(
                        "AN-14",
                        f"messages.{index}.content.{place}: unexpected `tool_use_id` found in `{kind}` "
                        f"blocks: {identity}. Each `{kind}` block must have a corresponding "
                        "`server_tool_use` block before it.",
                    )
        if open_uses and index < len(self.messages) - 1:
            identity, name = next(iter(open_uses.items()))
            yield from self._named(
                "AN-14",
                f"messages.{index}: `{name}` tool use with id {identity} was found without a corresponding "
                f"`{name}_tool_result` block",
            )

    def _leading_thinking(self, index: int, content: list[dict[str, Any]]) -> Iterator[Refusal]:
        if not self.rules & {"AN-10", "AN-11"}:
            return
        latest = max(i for i, m in enumerate(self.messages) if m["role"] == "assistant")
        if index != latest or not content:
            return
        kinds = [str(block.get("type")) for block in content]
        if not thinking_is_on(self.request):
            if set(kinds) & set(THINKING):
                yield from self._named(
                    "AN-11",
                    f"messages.{index}: When thinking is disabled, an `assistant` message in the final position "
                    "cannot contain `thinking`.",
                )
            return
        if kinds[0] in THINKING or not self._loop_is_open(index, kinds):
            return
        issued_with = any(b.get("type") == "tool_use" and came_with_thinking(b.get("id")) for b in content)
        if issued_with or not self._loop_begins_with_thinking(index):
            yield from self._named(
                "AN-10",
                f"messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
                f"`{kinds[0]}`. When `thinking` is enabled, a final `assistant` message must start with a "
                "thinking block (preceding the last set of `tool_use` and `tool_result` blocks).",
            )

    def _loop_is_open(self, index: int, kinds: list[str]) -> bool:
        """Whether results of this message's calls stand last, so that its turn goes on."""
        if "tool_use" not in kinds or index + 2 != len(self.messages):
            return False
        return any(b.get("type") == "tool_result" for b in blocks(self.messages[index + 1].get("content")))

    def _loop_begins_with_thinking(self, index: int) -> bool:
        """Whether the first assistant message since a user's own words begins with thinking."""
        head = index
        for place in range(index - 1, -1, -1):
            content = blocks(self.messages[place].get("content"))
            if self.messages[place]["role"] == "assistant":
                head = place
            elif not any(block.get("type") == "tool_result" for block in content):
                break
        first = blocks(self.messages[head].get("content"))
        return bool(first) and first[0].get("type") in THINKING

    def _unsigned(self, index: int, content: list[dict[str, Any]]) -> Iterator[Refusal]:
        """DS-04 and KI-01: thinking stands before the calls while thinking is on."""
        kinds = [block.get("type") for block in content]
        if "tool_use" not in kinds or not thinking_is_on(self.request, usual=True):
            return
        if set(kinds[: kinds.index("tool_use")]) & set(THINKING):
            return
        text = "The `content[].thinking` in the thinking mode must be passed back to the API."
        yield from self._named("DS-04", text)
        text = "thinking is enabled but reasoning_content is missing in assistant tool call message"
        yield from self._named("KI-01", f"{text} at index {index}")

    def _cache_markers(self) -> Iterator[Refusal]:
        if "AN-18" not in self.rules:
            return
        marked = 0
        system, tools = self.request.get("system"), self.request.get("tools")
        places = [*blocks(system if isinstance(system, list) else None), *blocks(tools)]
        for message in self.messages:
            content = message.get("content")
            places += blocks(content) if isinstance(content, list) else []
        for block in places:
            if block.get("cache_control") is None:
                continue
            marked += 1
            if block.get("type") in THINKING:
                yield _refused(("AN-18",), f"{block['type']}.cache_control: Extra inputs are not permitted")
            if block.get("type") == "text" and not str(block.get("text") or "").strip():
                yield _refused(("AN-18",), "cache_control cannot be set for empty text blocks")
        if marked > 4:
            text = f"A maximum of 4 blocks with cache_control may be provided. Found {marked}."
            yield _refused(("AN-18",), text)

    def _ending(self) -> Iterator[Refusal]:
        last = self.messages[-1]
        if last["role"] != "assistant" or self.profile.knobs.get("allow_prefill"):
            return
        if any(block.get("type") in _SERVER_USES for block in blocks(last.get("content"))):
            return  # a paused turn goes back as it is and goes on
        yield from self._named(
            "AN-19",
            "This model does not support assistant message prefill. The conversation must end with a user "
            "message.",
            headers={"x-should-retry": "false"},
        )


def _leading_results(content: list[dict[str, Any]]) -> int:
    count = 0
    for block in content:
        if block.get("type") != "tool_result":
            break
        count += 1
    return count


def _is_blank(content: Any) -> bool:
    if isinstance(content, list):
        return not any(
            isinstance(b, dict) and (b.get("type") != "text" or str(b.get("text") or "").strip())
            for b in content
        )
    return not str(content or "").strip()


def _refused(rules: tuple[str, ...], message: str, **more: Any) -> Refusal:
    return Refusal(rules, message, **more)
