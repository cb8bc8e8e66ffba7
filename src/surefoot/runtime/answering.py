"""An answer to a question by its id, from whoever holds that id (TR-167).

Owns: the form of such an answer, its refusals, and what is kept of one that comes too late. Does not
own: putting the question and recording a timely answer (`people`).
Promises: surface:same-story. A late answer is never consent, and never reaches the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surefoot.core.model import Draft, Kind
from surefoot.core.questions import LATE, Asked
from surefoot.errors import LedgerError
from surefoot.runtime.people import Answer as Words
from surefoot.runtime.people import People, PermissionAnswer
from surefoot.runtime.requests import Answer, Caller, storage_failed
from surefoot.runtime.session import Session

FIELDS = frozenset({"questionId", "verdict", "text", "scope"})
WORDS, PERMIT = ("answered",), ("approved", "denied")


class Answering:
    """The one place where an answer that names its question is taken."""

    def __init__(self, session: Session, people: People, seen: Callable[[Caller], Caller]) -> None:
        self._session = session
        self._people = people
        self._seen = seen

    async def answer(self, request: Mapping[str, Any], caller: Caller) -> Answer:
        """Deliver an answer to its own question; 200 once it is durable, else the code that refuses it.

        The request is `{questionId, verdict, text, scope}`: `answered` with `text` for a question of a tool,
        `approved` (with `scope` `once` or `session`) or `denied` for a permission.
        """
        fault = _malformed(request)
        if fault is not None:
            return _refused(fault, 400)
        caller = self._seen(caller)
        if caller.not_a_person is not None:
            return _refused("person_required", reason=caller.not_a_person)
        await self._session.standing()
        asked = self._session.questions.get(request["questionId"])
        if asked is None:
            return _refused("question_unknown")
        if request["verdict"] not in (PERMIT if asked.permission else WORDS):
            return _refused("bad_request", 400)
        given = _given(asked, request, caller)
        try:
            if await self._people.deliver(asked.question_id, given):
                return Answer(200, {"questionId": asked.question_id, "delivered": True})
            return await self._too_late(asked, request, caller)
        except LedgerError as error:
            return storage_failed(error)

    async def _too_late(self, asked: Asked, request: Mapping[str, Any], caller: Caller) -> Answer:
        """Kept beside the question it was meant for, and told as not delivered; it changes nothing."""
        now = self._session.questions.get(asked.question_id) or asked
        if now.verdict is None:
            return _refused("question_not_shown")  # of a dead owner: it is asked again when somebody goes on
        late = {
            "questionId": asked.question_id,
            "attemptId": asked.attempt_id,
            "turnId": asked.turn_id,
            "text": str(request.get("text") or ""),
            "said": request["verdict"],
            "verdict": LATE,
            "by": caller.who,
            "channel": caller.channel,
        }
        await self._session.append(Draft(Kind.ANSWER, late))
        return _refused("question_closed", record={"verdict": now.verdict}, delivered=False)


def _given(asked: Asked, request: Mapping[str, Any], caller: Caller) -> Words | PermissionAnswer:
    text = str(request.get("text") or "")
    if asked.permission:
        scope = str(request.get("scope") or "once")
        return PermissionAnswer(request["verdict"], scope, caller.who, text, channel=caller.channel)
    return Words(request["verdict"], text, caller.who, channel=caller.channel)


def _malformed(request: Any) -> str | None:
    if not isinstance(request, Mapping):
        return "bad_request"
    if set(request) - FIELDS:
        return "unknown_field"
    if not all(isinstance(request.get(name), str) for name in ("questionId", "verdict")):
        return "bad_request"
    if any(
        request.get(name) is not None and not isinstance(request[name], str) for name in ("text", "scope")
    ):
        return "bad_request"
    return None if request.get("scope") in (None, "once", "session") else "bad_request"


def _refused(code: str, status: int = 409, **facts: Any) -> Answer:
    return Answer(status, {"code": code, "message": code, **facts})
