"""Questions and permissions put to a person: durable before they are shown, never consent by silence.

Owns: the life of a question (TR-166 to TR-170), of an approval (TR-171), and the port
through which a surface is asked. Does not own: which calls must be asked about
(`permission`), how a question looks (`surfaces`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from surefoot.core import results
from surefoot.core.model import Draft, EffectClass, Kind, Mode, Notice
from surefoot.core.redact import redact
from surefoot.errors import LedgerError, StaleEpoch
from surefoot.runtime.live import Looked, Permit, Refused
from surefoot.runtime.permission import (
    READ,
    SHELL,
    UNTOLD,
    Rules,
    Verdict,
    VerdictKind,
    decide,
    may_be_reader,
)
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.session import Session
from surefoot.runtime.tools import LiveAttempt, Place, Registry

T = TypeVar("T")
Grant = tuple[str, tuple[str, ...] | None, tuple[str, ...], str]
"""Tool, subjects, what it opens, and the command or the digest of the arguments where those do not tell enough."""
ASKED_CHARACTERS = 65_536
TOO_MANY = "as many questions as are allowed wait for an answer already"


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked by a tool of the `ask_user` family."""

    question_id: str
    attempt_id: str
    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """`verdict` is `answered`, `empty`, `expired`, `withdrawn`, `unattended` or `too_many`; only `answered` carries
    words."""

    verdict: str
    text: str = ""
    by: str | None = None
    channel: str = "chat"


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """What a person is asked before a call may start: effective arguments, class, reach, place (UX-41)."""

    attempt_id: str
    tool: str
    arguments: str
    """Redacted arguments for display, longer than a receipt keeps them: an edit is read before it is allowed."""
    argument_digest: str
    effect_class: str
    reach: tuple[str, ...]
    directory: str
    why: str


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """`verdict` is `approved`, `denied`, `expired`, `withdrawn`; `scope` is `once` or `session`."""

    verdict: str
    scope: str = "once"
    by: str | None = None
    words: str = ""
    channel: str = "chat"


class Asker(Protocol):
    """A surface with a person. Cancelled when the turn is stopped; a lost surface raises nothing but ends."""

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer: ...

    async def question(self, question: Question) -> Answer: ...


class People:
    """Asks, records and answers; `asker` is None while no person is attached (TR-120)."""

    def __init__(
        self, session: Session, rules: Rules, *, mode: Mode, place: Place, asker: Asker | None
    ) -> None:
        self.session = session
        self.rules = rules
        self.mode = mode
        self.asker = asker
        self.on_notice: Callable[[Notice], None] = lambda notice: None
        self.on_waiting: Callable[[bool], Awaitable[None]] = _nothing
        self.answered: Callable[[Looked], Refused | None] = lambda looked: None
        """The stored result of a call repeated after a recovery; nobody is asked about such a call (PR-59)."""
        self.looking = False
        """True for a turn in which the model may only look: proven readers and the `recovery` tool (UX-116)."""
        self.denials: list[Mapping[str, Any]] = []
        self.most_pending = 16
        """Questions that are shown side by side; one more is refused and not shown (TR-185)."""
        self._shown = 0
        self._place = place
        self._scheduler: Scheduler = session.scheduler
        self._pending: dict[str, Any] = {}
        self._given: dict[str, Any] = {}
        """Question id → future of an answer that comes by that id instead of from the asker (TR-167)."""
        self._recorded: dict[str, Any] = {}
        self._granted: set[Grant] = set()
        """What a person allowed for this session. It ends with this owner: an answer in the ledger is good
        for one action (TR-171), so whoever opens the session again is asked again."""

    @property
    def waiting(self) -> bool:
        """Whether a person is being asked something now."""
        return bool(self._pending)

    def offered_of(self, registry: Registry) -> Callable[[str], bool]:
        """Tells by its name whether a tool is offered under the mode of the moment; a call is decided by itself."""
        readers = {tool.name for tool in registry if may_be_reader(tool)}
        return lambda name: self.mode is not Mode.PLAN or name in readers

    # Permissions ------------------------------------------------------------------------------

    async def permit(self, looked: Looked) -> Permit:
        """D3: rules first, then a person where they say so and one is there (UX-38 to UX-43)."""
        tool, arguments = looked.tool, looked.arguments
        if tool is None or arguments is None:
            return Permit(False, _refused("permission_denied", why="no tool"))
        stored = self.answered(looked)
        if stored is not None:
            return Permit(False, stored)
        if self.looking and not _only_looks(looked):
            return Permit(False, _refused("looking_only"))
        subjects = None if tool.subjects is None else tool.subjects(arguments.value, self._place)
        reads = () if tool.reads is None else tool.reads(arguments.value, self._place)
        verdict = decide(self.rules, self.mode, tool, subjects, looked.effect, reads)
        if verdict.kind is VerdictKind.DENY:
            return self._denied(looked, "rule", verdict)
        if verdict.kind is VerdictKind.ALLOW or _grant_of(looked, subjects, reads) in self._granted:
            return Permit(True)
        given = self._given_before(looked)
        if given is not None:
            return Permit(True, approval=given)
        if self.asker is None:
            return self._denied(looked, "nobody", verdict)
        if self._shown >= self.most_pending:
            return Permit(False, _refused("approval_expired", by="nobody", why=TOO_MANY))
        return await self._counted(self._ask_permission(looked, verdict, _grant_of(looked, subjects, reads)))

    def _given_before(self, looked: Looked) -> Mapping[str, Any] | None:
        """A yes to this very call whose owner died before the start: it is still good, once (TR-171)."""
        attempts = self.session.book.attempts(looked.call.call_id)
        digest = "" if looked.arguments is None else looked.arguments.digest
        if any(one.started_position is not None for one in attempts):
            return None
        found = self.session.questions.allowed([one.attempt_id for one in attempts], digest)
        return found.approval if found is not None and found.shown == self._as_shown(looked) else None

    def _as_shown(self, looked: Looked) -> dict[str, Any]:
        """What a person reads of a call beside its arguments; an answer is an answer to this."""
        return {
            "class": looked.effect.effect_class.value,
            "reach": list(looked.effect.reach),
            "directory": str(self._place.directory),
        }

    async def _counted(self, asking: Awaitable[T]) -> T:
        self._shown += 1
        try:
            return await asking
        finally:
            self._shown -= 1

    def _denied(self, looked: Looked, by: str, verdict: Verdict) -> Permit:
        name = looked.call.asked_name if looked.tool is None else looked.tool.name
        denial: dict[str, Any] = {
            "tool": name,
            "attemptId": looked.call.attempt_id,
            "by": by,
            "reason": verdict.reason,
        }
        if by == "nobody":
            denial |= {"message": "did not run: nobody to ask", "rule": _rule_for(looked, verdict)}
        self.denials.append(denial)
        return Permit(False, _refused("permission_denied", by=by, why=verdict.reason))

    async def _ask_permission(self, looked: Looked, verdict: Verdict, grant: Grant) -> Permit:
        tool, arguments, asker = looked.tool, looked.arguments, self.asker
        if tool is None or arguments is None or asker is None:
            return Permit(False, _refused("permission_denied", by="nobody", why=verdict.reason))
        question = PermissionQuestion(
            attempt_id=looked.call.attempt_id,
            tool=tool.name,
            arguments=redact(arguments.value, tool.secret_arguments, limit=ASKED_CHARACTERS),
            argument_digest=arguments.digest,
            effect_class=looked.effect.effect_class.value,
            reach=looked.effect.reach,
            directory=str(self._place.directory),
            why=verdict.reason,
        )
        question_id = self._permission_id(looked)
        # Shares the commit of the turn that now waits; after a crash it is known that somebody was being asked.
        asked = self._scheduler.spawn(
            self.session.append(_permission_question(looked, question, question_id, self._as_shown(looked))),
            "ask",
        )
        asked.add_done_callback(self._scheduler.heard)
        answer = await self._wait_for(
            question_id,
            asker.permission(question),
            PermissionAnswer("withdrawn"),
            durable=asked,
        )
        approval = {
            "attemptId": looked.call.attempt_id,
            "argumentDigest": arguments.digest,
            "verdict": answer.verdict,
            "by": answer.by,
            "channel": answer.channel,
            "at": self._scheduler.now_ms(),
        }
        await self._record(question_id, Draft(Kind.APPROVAL, approval))
        if answer.verdict != "approved":
            code = "permission_denied" if answer.verdict == "denied" else "approval_expired"
            self.denials.append({"tool": tool.name, "attemptId": question.attempt_id, "by": "person"})
            return Permit(False, _refused(code, by="person", why=answer.words or answer.verdict))
        if answer.scope == "session":
            self._granted.add(grant)
        return Permit(True, approval=approval)

    def _permission_id(self, looked: Looked) -> str:
        """A permission that a dead owner was asking for keeps its id (UX-42)."""
        earlier = [one.attempt_id for one in self.session.book.attempts(looked.call.call_id)]
        known = self.session.questions.of(earlier)
        return self._scheduler.new_id("qst") if known is None or known.verdict else known.question_id

    # Questions --------------------------------------------------------------------------------

    async def ask(self, attempt: LiveAttempt, text: str, choices: Sequence[str]) -> Answer:
        """Put a question of a tool to a person; durable before it is shown, as is its answer (TR-166, TR-167)."""
        if self._shown >= self.most_pending:
            return Answer("too_many")
        return await self._counted(self._put(attempt, text, choices))

    async def _put(self, attempt: LiveAttempt, text: str, choices: Sequence[str]) -> Answer:
        question_id = self._question_id(attempt) or self._scheduler.new_id("qst")
        question = Question(question_id, attempt.attempt_id, text, tuple(choices))
        payload = {
            "questionId": question_id,
            "attemptId": attempt.attempt_id,
            "turnId": attempt.turn_id,
            "text": text,
            "choices": list(choices),
        }
        await self.session.append(Draft(Kind.QUESTION, payload))
        if self.asker is None:
            answer = Answer("unattended")
        else:
            answer = await self._wait_for(question_id, self.asker.question(question), Answer("withdrawn"))
        if answer.verdict == "answered" and not answer.text.strip():
            answer = Answer("empty")  # an empty answer is never consent (TR-168)
        closing = {
            **payload,
            "text": answer.text,
            "verdict": answer.verdict,
            "by": answer.by,
            "channel": answer.channel,
        }
        await self._record(question_id, Draft(Kind.ANSWER, closing))
        return answer

    def _question_id(self, attempt: LiveAttempt) -> str | None:
        """A question asked again after a crash keeps its id (TR-169)."""
        earlier = [one.attempt_id for one in self.session.book.attempts(attempt.call_id)]
        known = self.session.questions.of(earlier)
        return None if known is None or known.permission else known.question_id

    async def _wait_for(
        self, key: str, asking: Awaitable[Any], withdrawn: Any, *, durable: Any = None
    ) -> Any:
        """Wait for a person; Stop withdraws the question. It is shown once `durable` is done, if given (UX-42)."""

        async def waiting() -> Any:
            if durable is not None:
                await durable
            return await asking

        task = self._scheduler.spawn(waiting(), f"ask {key}")
        given = self._given[key] = self._scheduler.future()
        self._pending[key] = task
        try:
            await self.on_waiting(True)
            await self._scheduler.first(task, given)
            if given.done():
                return given.result()
            return withdrawn if task.cancelled() else task.result()
        finally:
            del self._given[key]
            task.cancel()
            del self._pending[key]
            await self.on_waiting(bool(self._pending))

    async def deliver(self, question_id: str, answer: Answer | PermissionAnswer) -> bool:
        """Give a question that is being shown the answer that names it; False when it is not shown (any more).

        True once the answer is durable. Raises `LedgerError` when it could not be recorded.
        """
        given = self._given.get(question_id)
        if given is None or given.done() or self._pending[question_id].done():
            return False
        recorded = self._recorded[question_id] = self._scheduler.future()
        recorded.add_done_callback(self._scheduler.heard)  # whoever delivered it may be gone
        given.set_result(answer)
        return bool(await recorded)

    async def _record(self, question_id: str, draft: Draft) -> None:
        """Close a question durably, and tell whoever delivered its answer from outside."""
        recorded = self._recorded.pop(question_id, None) or self._scheduler.future()
        try:
            await self.session.append(draft)
            recorded.set_result(True)
        except (LedgerError, StaleEpoch) as error:
            recorded.set_exception(error)
            recorded.exception()  # raised here; whoever delivered the answer hears it too
            raise
        finally:
            recorded.cancel()  # the waiting was given up; what was begun goes on

    def withdraw(self) -> None:
        """Stop: every pending question is taken back; none of them counts as consent (TR-168)."""
        for task in list(self._pending.values()):
            task.cancel()


def _grant_of(looked: Looked, subjects: tuple[str, ...] | None, reads: tuple[str, ...]) -> Grant:
    """What a yes for this session is a yes to: the same work of the same tool, and what it would open.

    A command line is the same to the letter: its parts do not tell what its variables and documents hold.
    Where it cannot be told at all what is done, these very arguments are meant.
    """
    tool, arguments = looked.tool, looked.arguments
    if tool is None or arguments is None:
        return "", subjects, reads, ""
    if tool.rule_name == SHELL:
        return tool.name, None, reads, str(arguments.value.get("command"))
    untold = UNTOLD in reads or (subjects is not None and (not subjects or UNTOLD in subjects))
    return tool.name, subjects, reads, arguments.digest if untold else ""


def _permission_question(
    looked: Looked, question: PermissionQuestion, question_id: str, shown: Mapping[str, Any]
) -> Draft:
    payload = {
        "questionId": question_id,
        "attemptId": question.attempt_id,
        "turnId": looked.call.turn_id,
        "text": f"May {question.tool} run? {question.why}",
        "choices": [],
        "permission": True,
        "argumentDigest": question.argument_digest,
        "shown": shown,
    }
    return Draft(Kind.QUESTION, payload)


def _rule_for(looked: Looked, verdict: Verdict) -> str | None:
    """The name by which a permission rule would allow this call; a line that only reads needs no more than reading."""
    tool = looked.tool
    if tool is None:
        return None
    only_reads = looked.effect.effect_class is EffectClass.READ_ONLY and tool.reads is not None
    return READ if only_reads and verdict.rule is None else tool.rule_name or tool.name


def _only_looks(looked: Looked) -> bool:
    """A proven reader that asks nobody; the model's tool for reports about open calls is one."""
    return looked.effect.effect_class is EffectClass.READ_ONLY and not looked.effect.interaction


def _refused(code: str, **facts: Any) -> Refused:
    return Refused(code, results.refusal_text(code, facts), facts)


async def _nothing(waiting: bool) -> None:
    return None
