"""Pure. Ids, signatures and ciphertexts that the emulator issues and knows again without keeping state.

Owns: HMAC tokens over model, account, text and prefix, and ids that tell their reply
and their reasoning. Does not own: which rule looks at them (`anthropic_rules`,
`responses_rules`, `chat_rules`). None of it imitates a real service's scheme.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from dataclasses import dataclass, field
from typing import Any

_SECRET = b"surefoot emulator, no secret at all"
DUMMY_SIGNATURE = "skip_thought_signature_validator"
"""The documented stand-in for a thought signature that never existed (GE-01)."""
BACKEND = "the emulated backend"
"""Where thought signatures are made (GE-02)."""
_ITEM_ID = re.compile(r"^(?:call|[a-z]{2,4})_([0-9a-f]{20})([0-9a-f]{2})([0-9a-f]{2})$")
_CREDENTIAL = re.compile(r"^AWS4-HMAC-SHA256 .*Credential=([^/,]+)/")
_CONVERSE_ID = re.compile(r"tooluse_[0-9a-f]{21}w")
NO_REASONING = 0xFF


@dataclass(frozen=True, slots=True)
class Token:
    """What a signature or ciphertext says, once its seal was found intact."""

    kind: str
    model: str
    account: str
    text_sha: str
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ItemId:
    """What an issued Responses id says: its reply, its place, and the place of its reasoning item."""

    reply: str
    place: int
    reasoning: int
    """`NO_REASONING` when it was issued without."""


def sha(text: str) -> str:
    """Sixteen hex digits of the text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def canonical_sha(value: Any) -> str:
    """Sixteen hex digits over a value, whatever the order of its keys."""
    return sha(json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")))


def account_of(headers: dict[str, str]) -> str:
    """Which account a request belongs to: a digest of its key."""
    given = keys_of(headers)
    return sha(given[0] if given else "")


def keys_of(headers: dict[str, str], query: dict[str, str] | None = None) -> list[str]:
    """Every key a request shows, in whichever place its client has for it."""
    bearer = headers.get("authorization", "")
    signed = _CREDENTIAL.search(bearer)
    shown = [headers.get(name, "") for name in ("x-api-key", "api-key", "x-goog-api-key")]
    shown += [signed[1] if signed else bearer.removeprefix("Bearer ").strip(), (query or {}).get("key", "")]
    return [key for key in shown if key]


def seal(token: Token, prefix: str = "") -> str:
    """The token as text, with its seal; `prefix` gives it the look of a service."""
    said = {"k": token.kind, "m": token.model, "a": token.account, "t": token.text_sha, "f": token.facts}
    body = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    mac = hmac.new(_SECRET, body, hashlib.sha256).digest()[:16]
    return prefix + base64.urlsafe_b64encode(mac + body).decode()


def unseal(text: Any, prefix: str = "") -> Token | None:
    """The token, or None when it is not ours, was cut, or has one byte changed."""
    if not isinstance(text, str) or not text.startswith(prefix):
        return None
    try:
        encoded = text.removeprefix(prefix).encode("ascii")
        raw = base64.b64decode(encoded, altchars=b"-_", validate=True)
        said = json.loads(raw[16:])
    except (ValueError, UnicodeError):
        return None
    mac = hmac.new(_SECRET, raw[16:], hashlib.sha256).digest()[:16]
    if not hmac.compare_digest(mac, raw[:16]) or base64.urlsafe_b64encode(raw) != encoded:
        return None
    return Token(said["k"], said["m"], said["a"], said["t"], said["f"])


def bent(token: Token, prefix: str, mode: Any) -> str:
    """The sealed token as a `signature_mode` fault issues it."""
    if mode == "foreign_model":
        token = Token(token.kind, "another-model", token.account, token.text_sha, token.facts)
    if mode == "foreign_account":
        token = Token(token.kind, token.model, sha("another account"), token.text_sha, token.facts)
    text = seal(token, prefix)
    if mode == "corrupt_one_byte":
        place = len(prefix) + 8
        text = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
    return text


def item_id(prefix: str, reply: str, place: int, reasoning: int) -> str:
    """An id of a Responses item or call; `reply` is 20 hex digits."""
    return f"{prefix}_{reply}{place:02x}{reasoning:02x}"


def read_item_id(text: Any) -> ItemId | None:
    """What an id says, or None when this emulator did not issue it."""
    found = _ITEM_ID.match(text) if isinstance(text, str) else None
    if found is None:
        return None
    return ItemId(found[1], int(found[2], 16), int(found[3], 16))


def tool_use_id(key: str, thought: bool, prefix: str = "toolu_") -> str:
    """24 characters behind the prefix; the last one tells whether the reply had thinking."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"{prefix}01{digest[:21]}{'t' if thought else 'n'}"


def came_with_thinking(identity: Any) -> bool:
    """Whether this emulator issued the id in a reply with thinking."""
    return isinstance(identity, str) and bool(re.fullmatch(r"toolu_01[0-9a-f]{21}t", identity))


def converse_id(key: str, with_text: bool) -> str:
    """An id of a Converse call, 22 characters behind its prefix; the last one tells whether text stood beside it."""
    return f"tooluse_{hashlib.sha256(key.encode()).hexdigest()[:21]}{'w' if with_text else 'c'}"


def came_with_text(identity: Any) -> bool:
    """Whether this emulator issued the id in a Converse reply that said text as well."""
    return isinstance(identity, str) and bool(_CONVERSE_ID.fullmatch(identity))
