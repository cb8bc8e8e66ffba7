"""Pure. The neutral conversation: what a model is shown, in which order, before any wire form.

Owns: the fold of entries into messages, which answer of a call was shown, and which
changed since (TR-63). Does not own: the text of an answer (`results`), the facts of an
interruption (`handoff`), the wire form (`providers`), the words for people
(`surfaces.words`).
Promises: projection:prefix-stable.

A call's answer is shown once a reply to a request that held it is durable. From then
on it never changes; until then it is rendered from what is known at each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.lifecycle import Book
from surefoot.core.model import Entry, Kind, Receipt
from surefoot.core.results import result_of, speaking


@dataclass(frozen=True, slots=True)
class UserWords:
    """What a person typed, and the facts appended at its tail on the wire copy (TR-57)."""

    turn_id: str
    text: str
    facts: str | None = None
    origin: str = "person"
    """`person`, or `host` for the fixed words of a recovery (PR-60)."""


@dataclass(frozen=True, slots=True)
class CallAsked:
    """One call of an assistant message. Identity is the message and `position` (TR-31)."""

    call_id: str
    attempt_id: str
    position: int
    asked_name: str
    arguments: str
    """Argument text as the model wrote it."""
    provider_call_id: str | None


@dataclass(frozen=True, slots=True)
class AssistantWords:
    """One reply of a model: its text, its calls, and the message as its wire sent it."""

    entry_position: int
    text: str
    calls: tuple[CallAsked, ...]
    wire: str
    raw: Mapping[str, Any]
    """The assistant message in the JSON of `wire`, stored byte for byte in meaning (never normalised)."""
    issuer: Mapping[str, str] = field(default_factory=dict)
    """Who made it: `endpoint`, `model`, `contract`; empty where that was not recorded."""


CHAT_CARRIERS = ("reasoning_content", "reasoning", "reasoning_details")
"""Fields of a stored Chat reply that hold reasoning, which its server may want back."""
THINKING_BLOCKS = ("thinking", "redacted_thinking")
"""Types of the blocks of a stored Messages reply that hold reasoning."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that came with a result; its text names it, whether or not a server takes it."""

    media_type: str
    """Such as `image/png`."""
    content: str
    """In base64."""


@dataclass(frozen=True, slots=True)
class ResultGiven:
    """What is told to the model about one call, rendered from its receipts."""

    call: CallAsked
    text: str
    is_error: bool
    pictures: tuple[Picture, ...] = ()


Message = UserWords | AssistantWords | ResultGiven

HOSTED_REQUEST = "hosted:request"
"""Asked name of a model request that let the provider run tools of its own (PR-98): no call of the model."""
HOOK = "hook"
"""Asked name of what a hook of the settings runs, below a call or beside all of them (TR-25)."""

NEWS = frozenset(
    {
        Kind.NOT_STARTED.value,
        Kind.STARTED.value,
        Kind.CLOSED.value,
        Kind.LATE.value,
        Kind.INSPECTED.value,
        Kind.RESOLVED.value,
    }
)
"""Entries that change what is known of a call; after its answer was shown they are told as facts."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A shown answer whose text stands in a blob that may not have been read yet."""

    call: CallAsked
    attempts: tuple[Receipt, ...]


class History:
    """Folds entries in order of position; every entry costs the same at any size of the session."""

    def __init__(self) -> None:
        self.stored: dict[str, str] = {}
        """Texts of results that stand in blobs, by reference; filled by whoever can read them (TR-6)."""
        self.handed: list[str] = []
        """Attempts of interrupted turns that no words with facts have told of yet."""
        self.silent = False
        """The last interrupted turn left nothing, and that is not told yet (TR-62)."""
        self.requests: list[str] = []
        """Finished requests of the person that compactions took out of the view."""
        self._shown: list[Message] = []
        self._waiting: dict[int, _Waiting] = {}
        self._last: list[Message] = []
        """The newest assistant message and the words after it; its answers are not shown yet."""
        self._trail: list[Entry] = []
        """The entries of its calls so far, to know later what was known at an earlier position."""
        self._call_of: dict[str, str] = {}
        self._unshown: set[str] = set()
        self._requests: dict[str, str] = {}
        """Attempt → call of requests with hosted tools."""
        self._news: dict[str, None] = {}

    def apply(self, entry: Entry) -> None:
        """Fold one appended entry.

        An assistant entry may carry `seenPosition`, the position up to which the request
        had been built; without it everything before the entry counts as seen.
        """
        if entry.kind == Kind.ASSISTANT:
            self._show(int(entry.payload.get("seenPosition") or entry.position - 1))
            self._ask(entry)
        elif entry.kind == Kind.USER:
            payload = entry.payload
            self._last.append(
                UserWords(payload.get("turnId", ""), payload.get("text", ""), payload.get("facts"))
            )
            if payload.get("facts"):
                self._news.clear()  # told, once (TR-58)
                self.handed, self.silent = [], False
        elif entry.kind == Kind.HOST:
            words = entry.payload.get("text", "")
            self._last.append(UserWords(entry.payload.get("turnId", ""), words, origin="host"))
        elif entry.kind == Kind.INCIDENT:
            if entry.payload.get("state") == "consumed" and entry.payload.get("projected"):
                # What a recovery request holds stays as it was shown there; later news are facts (PR-46).
                self._show(int(entry.payload.get("at") or entry.position - 1))
        elif entry.kind in (Kind.COMPACTED, Kind.REWOUND, Kind.FORKED):
            self._rewrite(entry)
        elif entry.kind == Kind.HAND_OFF:
            # Facts of an earlier interruption that were never told are told with this one (TR-55).
            self.handed += [one for one in entry.payload.get("attempts") or () if one not in self.handed]
            self.silent = bool(entry.payload.get("silent"))
        elif "attemptId" in entry.payload:
            self._attempt(entry)

    def messages(self, book: Book) -> list[Message]:
        """The conversation in a valid order: each assistant message, then the results of all its calls by
        position, then what came after it."""
        shown = list(self._shown)
        for index, waiting in self._waiting.items():
            shown[index] = _given(waiting.call, waiting.attempts, self.stored)
        for message in self._last:
            shown.append(message)
            if isinstance(message, AssistantWords):
                shown += [
                    _given(call, tuple(book.attempts(call.call_id)), self.stored) for call in message.calls
                ]
        return shown

    def news(self, book: Book) -> list[Receipt]:
        """The attempts whose calls changed after their answer was shown, to be told as facts (TR-63, TR-43).

        Empty again once words with facts were appended.
        """
        calls = [book.attempts(call) for call in self._news]
        return [speaking(attempts) for attempts in calls if attempts]

    def stored_refs(self, book: Book) -> set[str]:
        """References of results that `messages` needs and `stored` does not hold."""
        attempts = [one for waiting in self._waiting.values() for one in waiting.attempts]
        attempts += [one for call in self._unshown for one in book.attempts(call)]
        refs = {one.result_ref for one in attempts if one.result is None and one.result_ref}
        refs |= {ref for one in attempts for _, ref in _pictures_of(one)}
        return refs - self.stored.keys()

    # --- folding -------------------------------------------------------------------------

    def _ask(self, entry: Entry) -> None:
        payload = entry.payload
        calls = tuple(sorted((_asked(call) for call in payload.get("calls") or ()), key=_position))
        self._last = [
            AssistantWords(
                entry.position,
                payload.get("text") or "",
                calls,
                payload.get("wire") or "",
                payload.get("raw") or {},
                payload.get("issuer") or {},
            )
        ]
        self._trail = [entry]
        self._unshown = {call.call_id for call in calls}
        self._call_of.update((call.attempt_id, call.call_id) for call in calls)

    def _attempt(self, entry: Entry) -> None:
        payload = entry.payload
        attempt = payload["attemptId"]
        if _is_unasked(payload):
            self._requests[attempt] = payload.get("callId", "")
        elif attempt in self._requests and entry.kind == Kind.CLOSED and payload.get("state") == "unknown":
            # The model did not ask for it and reads no result; one that has no known end is told as a fact.
            self._call_of[attempt] = self._requests[attempt]
        elif entry.kind == Kind.DISPATCHED and not payload.get("parentAttemptId"):
            # A further attempt of a call shown here, or a person's retry, which is told as a fact (TR-138).
            self._call_of[attempt] = payload.get("callId", "")
        elif entry.kind == Kind.STARTED and payload.get("supersedes") in self._call_of:
            self._note(self._call_of[payload["supersedes"]], entry)
        call = self._call_of.get(attempt)
        if call is not None:
            self._note(call, entry)

    def _rewrite(self, entry: Entry) -> None:
        """Another view from here on; what it no longer shows of open calls is told again (TR-58, TR-94)."""
        payload = entry.payload
        self.handed += [one for one in payload.get("pinned") or () if one not in self.handed]
        if entry.kind == Kind.FORKED:
            self._shown = [_message(one) for one in payload.get("messages") or ()]
        elif entry.kind == Kind.COMPACTED:
            prompt = payload.get("prompt")
            self._shown = [UserWords("", payload.get("notes") or "", origin="host")]
            self._shown += [] if prompt is None else [_message(prompt)]
            self._waiting = {}
            self.requests = list(payload.get("requests") or ())
            if not payload.get("keepsLast"):
                self._leave()
        else:
            self._go_back(str(payload.get("turnId")))

    def _go_back(self, turn_id: str) -> None:
        for place, one in enumerate(self._last):
            if isinstance(one, UserWords) and one.turn_id == turn_id:
                del self._last[place:]
                return
        self._leave()
        for place, one in enumerate(self._shown):
            if isinstance(one, UserWords) and one.turn_id == turn_id:
                del self._shown[place:]
                self._waiting = {n: waiting for n, waiting in self._waiting.items() if n < place}
                return

    def _leave(self) -> None:
        self._last, self._trail, self._unshown = [], [], set()

    def _note(self, call: str, entry: Entry) -> None:
        if call in self._unshown:
            if not self._trail or self._trail[-1] is not entry:
                self._trail.append(entry)
        elif entry.kind in NEWS:
            self._news.setdefault(call)

    def _show(self, seen: int) -> None:
        """Settle the answers of the newest assistant message as of position `seen`."""
        known = Book()
        for entry in self._trail:
            if entry.position <= seen:
                known.apply(entry)
        changed_after = {
            self._call_of.get(entry.payload.get("attemptId", ""), "")
            for entry in self._trail
            if entry.position > seen and entry.kind in NEWS
        }
        for message in self._last:
            self._shown.append(message)
            if isinstance(message, AssistantWords):
                for call in message.calls:
                    self._answer(call, tuple(known.attempts(call.call_id)))
        self._news.update(dict.fromkeys(changed_after & self._unshown))
        self._leave()

    def _answer(self, call: CallAsked, attempts: tuple[Receipt, ...]) -> None:
        if any((one.result is None and one.result_ref) or _pictures_of(one) for one in attempts):
            self._waiting[len(self._shown)] = _Waiting(call, attempts)
        self._shown.append(_given(call, attempts, self.stored))


def _message(value: Mapping[str, Any]) -> Message:
    """A message as `rewriting.as_json` wrote it."""
    given = {key: item for key, item in value.items() if key != "type"}
    if value.get("type") == "assistant":
        return AssistantWords(**{**given, "calls": tuple(CallAsked(**call) for call in given["calls"])})
    if value.get("type") == "result":
        pictures = tuple(Picture(**one) for one in given.get("pictures") or ())
        return ResultGiven(**{**given, "call": CallAsked(**given["call"]), "pictures": pictures})
    return UserWords(**given)


def _asked(call: Mapping[str, Any]) -> CallAsked:
    return CallAsked(
        call_id=call["callId"],
        attempt_id=call["attemptId"],
        position=int(call.get("position") or 0),
        asked_name=call.get("askedName") or "",
        arguments=call.get("arguments") or "",
        provider_call_id=call.get("providerCallId"),
    )


def _position(call: CallAsked) -> int:
    return call.position


def _given(call: CallAsked, attempts: tuple[Receipt, ...], stored: Mapping[str, str]) -> ResultGiven:
    if not attempts:  # a book that does not know the call: nothing of it is certain
        return ResultGiven(call, "Nothing is known about this call. Look before you repeat it.", True)
    told = result_of(attempts[-1], attempts, stored=stored)
    # A picture whose blob is gone stays what its text says of it.
    pictures = [(kind, stored[ref]) for kind, ref in _pictures_of(speaking(attempts)) if ref in stored]
    return ResultGiven(call, told.text, told.is_error, tuple(Picture(*one) for one in pictures))


def _pictures_of(receipt: Receipt) -> list[tuple[str, str]]:
    """Media type and reference of each picture that came with a result."""
    found: Any = (receipt.result or {}).get("pictures") or ()
    return [(str(one["mediaType"]), str(one["ref"])) for one in found]


def _is_unasked(payload: Mapping[str, Any]) -> bool:
    """Whether a dispatched call is none of the model's: a request of ours, or a hook that belongs to no call."""
    name = payload.get("askedName")
    return name == HOSTED_REQUEST or (name == HOOK and not payload.get("parentAttemptId"))
