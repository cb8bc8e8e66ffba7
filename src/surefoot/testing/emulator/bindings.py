"""Pure. Thinking signatures of the Anthropic wire: issued over what came before, recomputed at replay.

Owns: the digest of a conversation's prefix, and which blocks a request sends back
unchanged, changed, foreign or out of their conversation (AN-07 to AN-09). Does not
own: the other rules of the wire (`anthropic_rules`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from surefoot.testing.emulator.issuing import Token, bent, canonical_sha, sha, unseal

SIGNATURE_PREFIX = "Emu"
THINKING = ("thinking", "redacted_thinking")


@dataclass(slots=True)
class Prefix:
    """Digests of everything before a block: system, tools, messages, and thinking."""

    system: str
    tools: str
    messages: str = ""
    thinking: str = ""

    @classmethod
    def of(cls, request: dict[str, Any]) -> Prefix:
        """The prefix before the first message."""
        return cls(canonical_sha(_plain(request.get("system"))), canonical_sha(_plain(request.get("tools"))))

    def add(self, role: str, block: dict[str, Any]) -> None:
        """Count one more block as standing before whatever comes next."""
        if block.get("type") in THINKING:
            self.thinking = canonical_sha([self.thinking, shown(block)])
        else:
            self.messages = canonical_sha([self.messages, role, _plain(block)])

    def facts(self) -> dict[str, str]:
        """As a token keeps them."""
        return {"s": self.system, "o": self.tools, "m": self.messages, "h": self.thinking}


def blocks(content: Any) -> list[dict[str, Any]]:
    """Content as blocks; a string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def shown(block: dict[str, Any]) -> str:
    """The text a signature speaks of."""
    return str(block.get("thinking") or "") if block.get("type") == "thinking" else "redacted"


def prefix_of(request: dict[str, Any], dropped: frozenset[tuple[int, int]] = frozenset()) -> Prefix:
    """The prefix of the reply to this request; `dropped` blocks do not count."""
    prefix = Prefix.of(request)
    for index, message in enumerate(request.get("messages") or ()):
        for place, block in enumerate(blocks(message.get("content"))):
            if (index, place) not in dropped:
                prefix.add(message.get("role", ""), block)
    return prefix


@dataclass(frozen=True, slots=True)
class Issue:
    """What a reply's signatures are made over."""

    model: str
    account: str
    facts: dict[str, str]
    mode: Any = None
    """A `signature_mode` of a fault."""

    def sign(self, text: str, *, place: int = 0, of: int = 1, gap: int = 0) -> str:
        """The signature of thinking block `place` of `of`, with `gap` other blocks right before it."""
        facts = {**self.facts, "p": place, "n": of, "g": gap}
        token = Token("thinking", self.model, self.account, sha(text), facts)
        return bent(token, SIGNATURE_PREFIX, self.mode)


@dataclass(slots=True)
class Judged:
    """What is wrong with the thinking of a request, by place `(message, block)`."""

    invalid: list[tuple[int, int]] = field(default_factory=list)
    """AN-08: not issued here for that text and model."""
    modified: list[tuple[int, int]] = field(default_factory=list)
    """AN-07: issued here, but changed, moved, or parted from its neighbours."""
    unbound: dict[tuple[int, int], str] = field(default_factory=dict)
    """AN-09: issued in another conversation, with the sentence that names the difference."""


def judge(request: dict[str, Any]) -> Judged:
    """Look at every thinking block of the request."""
    judged = Judged()
    prefix = Prefix.of(request)
    messages = request.get("messages") or []
    latest = max((i for i, m in enumerate(messages) if m.get("role") == "assistant"), default=-1)
    model = str(request.get("model"))
    for index, message in enumerate(messages):
        broken_turn = False
        content = blocks(message.get("content"))
        for place, block in enumerate(content):
            if block.get("type") not in THINKING:
                prefix.add(message.get("role", ""), block)
                continue
            token = _token(block)
            if token is None or token.model != model:
                judged.invalid.append((index, place))
            elif token.text_sha != sha(shown(block)):
                (judged.modified if index == latest else judged.invalid).append((index, place))
            else:
                difference = _difference(token.facts, prefix)
                if difference or broken_turn:
                    broken_turn = True
                    judged.unbound[index, place] = difference or _MISSING
                    continue
            prefix.add(message.get("role", ""), block)
        if index == latest and not judged.modified:
            place_moved = _moved(content)
            if place_moved is not None and (index, place_moved) not in judged.invalid:
                judged.modified.append((index, place_moved))
    return judged


def carries_signature(request: dict[str, Any]) -> bool:
    """Whether some block of the request has a signature of ours."""
    messages = request.get("messages") or ()
    return any(_token(b) is not None for m in messages for b in blocks(m.get("content")))


_MISSING = (
    "The `thinking` block that preceded this one in the original conversation is missing from this request."
)


def _token(block: dict[str, Any]) -> Token | None:
    if block.get("type") not in THINKING:
        return None
    key = "signature" if block["type"] == "thinking" else "data"
    token = unseal(block.get(key), SIGNATURE_PREFIX)
    return token if token is not None and token.kind == "thinking" else None


def _difference(facts: dict[str, Any], prefix: Prefix) -> str:
    if facts["s"] != prefix.system:
        return "The `system` prompt differs from the one of the original conversation."
    if facts["o"] != prefix.tools:
        return "The `tools` differ from those of the original conversation."
    if facts["m"] != prefix.messages:
        return "The messages before this block differ from those of the original conversation."
    return _MISSING if facts["h"] != prefix.thinking else ""


def _moved(content: list[dict[str, Any]]) -> int | None:
    """The first block of a message whose thinking is not in its issued sequence, or None."""
    expected, total, gap, runs = 0, 0, 0, 0
    last = None
    for place, block in enumerate(content):
        if block.get("type") not in THINKING:
            blank = block.get("type") == "text" and not str(block.get("text") or "").strip()
            gap += not blank
            continue
        last = place
        token = _token(block)
        if token is None:
            expected, total, gap = 0, 0, 0
            continue
        position = int(token.facts.get("p", 0))
        first_of_later_run = position == 0 and runs > 0
        if position != expected or (not first_of_later_run and gap != int(token.facts.get("g", 0))):
            return place
        total, gap, runs = int(token.facts.get("n", 1)), 0, runs + (position == 0)
        expected = (position + 1) % total
    return last if expected else None


def _plain(value: Any) -> Any:
    """The value without cache markers, strings and one-text lists alike."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _plain(item) for key, item in value.items() if key != "cache_control" and item is not None}
    if kept.get("type") == "tool_result" and isinstance(kept.get("content"), str):
        kept["content"] = [{"type": "text", "text": kept["content"]}]
    return kept
