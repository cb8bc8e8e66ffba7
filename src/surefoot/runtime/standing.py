"""How each call of a session stands now: its executor, its decision, the facts its actions are judged by.

Owns: what must be seen beside a receipt before the table and the rules of admission can answer
(TR-112, TR-208), and the plan of a resume. Reads only. Does not own: the table and the rules
(`core.recovery`, `core.admission`), what follows (`resuming`, `actions`).
Promises: recovery:never-guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from surefoot.core import admission, recovery
from surefoot.core.admission import AttemptFacts, RetryFacts
from surefoot.core.effects import judged_effect
from surefoot.core.limits import Limits
from surefoot.core.model import Decision, EffectClass, ExecutorState, Receipt
from surefoot.core.recovery import Decided, Intents
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.reconcile import Supervision
from surefoot.runtime.session import Session
from surefoot.verifiers.port import IntentVerifier


@dataclass(frozen=True, slots=True)
class Policy:
    """The owner's settings that concern recovery."""

    session_path: str
    on_unknown: str = "stop"
    resume_retry: str = "safe"
    retry_enabled: bool = False
    boot_id: str = ""
    assurance: str = "same-user"
    """The least level for a decision about a call of class `NON_IDEMPOTENT` or `UNKNOWN` (UX-122)."""
    inspect_on_resume: bool = True
    """Whether opening a session looks locally at its open calls (UX-50)."""
    release_stopped_checks: bool = True
    named: Mapping[str, str] = field(default_factory=dict)
    """Tool → `release`, `reject` or `retry`, from the owner's own settings (TR-122)."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One open call and what the table decides about it."""

    receipt: Receipt
    decided: Decided
    stopped_first: bool = False
    """A read whose command still runs: it is stopped before it is run again (TR-116)."""
    wanted: bool = True
    """False where a resume runs it not again, whatever the decision says (TR-96, TR-115, TR-118)."""

    @property
    def runs_again(self) -> bool:
        """Whether a resume carries it out by itself (TR-116); row 10 needs a person's own action."""
        retried = self.decided.decision is Decision.RETRY and self.decided.row not in recovery.EXPLICIT_ONLY
        return retried and self.wanted


class Standing:
    """The open calls of one owned session, as seen at the moment of asking."""

    def __init__(
        self, session: Session, barrier: Barrier, supervision: Supervision, policy: Policy, limits: Limits
    ) -> None:
        self._session = session
        self._barrier = barrier
        self._supervision = supervision
        self._policy = policy
        self._limits = limits

    def plan(self) -> list[Planned]:
        """What a resume does about every open call, in order of their start."""
        return [self._planned(receipt) for receipt in self._session.book.open()]

    def _planned(self, receipt: Receipt) -> Planned:
        executor, wanted = self.executor(receipt), self._wanted(receipt)
        if executor is ExecutorState.ALIVE and self._may_be_stopped(receipt):
            ended = self._decide(receipt, ExecutorState.ENDED)
            as_ended = Planned(receipt, ended, stopped_first=True, wanted=wanted)
            if as_ended.runs_again:
                return as_ended
        return Planned(receipt, self._decide(receipt, executor), wanted=wanted)

    def _wanted(self, receipt: Receipt) -> bool:
        """What this very owner left unknown, by a limit or a Stop, is no matter of a resume (TR-115).

        A copy that a fork made is run again where it began, if at all (TR-96).
        """
        earlier = receipt.epoch != self._session.epoch and receipt.origin_attempt_id is None
        return earlier and self._policy.resume_retry == "safe"

    def _may_be_stopped(self, receipt: Receipt) -> bool:
        """A supervised read of an earlier owner that no person chose to leave running (TR-71)."""
        reads = judged_effect(receipt).effect_class is EffectClass.READ_ONLY
        supervised = receipt.process is not None and "left" not in receipt.process
        return reads and supervised and receipt.epoch != self._session.epoch

    def decide(self, receipt: Receipt) -> Decided:
        """The decision of the table about one call."""
        return self._decide(receipt, self.executor(receipt))

    def _decide(self, receipt: Receipt, executor: ExecutorState) -> Decided:
        scheduler, book = self._session.scheduler, self._session.book
        seen = recovery.Seen(
            executor=executor,
            answered=receipt.attempt_id in self._session.questions.answered,
            boot_id=self._policy.boot_id,
            now_boot_ms=scheduler.boot_ms(),
            intents=self._intents(receipt),
            later_write=recovery.later_write(receipt, book.after(receipt.attempt_id)),
            tool_fault=self._tool_fault(receipt),
            retry_enabled=self._policy.retry_enabled,
            crash_attempts=self._limits.crash_attempts,
            young_ms=int(self._limits.resume_retry_age_seconds * 1000),
        )
        return recovery.decide(recovery.facts_of(receipt, book, seen))

    def _tool_fault(self, receipt: Receipt) -> str | None:
        tool = self._barrier.registry.resolve(receipt.tool or receipt.asked_name)
        return "tool_missing" if tool is None else None

    def _intents(self, receipt: Receipt) -> Intents:
        tool = self._barrier.registry.resolve(receipt.tool or "")
        if not receipt.write_intents or tool is None or not isinstance(tool.verifier, IntentVerifier):
            return Intents.NONE
        undisturbed = tool.verifier.undisturbed(receipt)
        return Intents.UNDISTURBED if undisturbed else Intents.DISTURBED

    def executor(self, receipt: Receipt) -> ExecutorState:
        """What carries the attempt out, as seen now (TR-208)."""
        seen = self._barrier.executor(receipt)
        running = [one.attempt_id for one in self._barrier.running()]
        if receipt.process is not None and receipt.attempt_id not in running:
            return self._supervision.executor(receipt)  # what was recorded may have ended since
        earlier = receipt.epoch != self._session.epoch
        if seen is ExecutorState.ALIVE and earlier and self._past_deadline(receipt):
            # An executor nobody can ask counts as alive until its deadline, not for ever (TR-208).
            return ExecutorState.NOT_PROVEN
        return seen

    def _past_deadline(self, receipt: Receipt) -> bool:
        boot_id = (receipt.owner or {}).get("bootId")
        if receipt.deadline_boot is not None and boot_id == self._policy.boot_id:
            return self._session.scheduler.boot_ms() > receipt.deadline_boot
        return receipt.deadline_at is not None and self._session.scheduler.now_ms() > receipt.deadline_at

    def is_local(self, receipt: Receipt) -> bool:
        """Whether looking at the call does not leave the machine (TR-103)."""
        tool = self._barrier.registry.resolve(receipt.tool or "")
        verifier = None if tool is None else tool.verifier_for(receipt)
        return verifier is None or not verifier.far

    def attempt_facts(self, receipt: Receipt | None, retry: RetryFacts | None = None) -> AttemptFacts:
        """The facts of one attempt that a press is judged by."""
        if receipt is None:
            return admission.UNKNOWN_ATTEMPT
        return admission.attempt_facts(
            receipt,
            self._session.book,
            executor=self.executor(receipt),
            retry=retry,
            verifiers_local=self.is_local(receipt),
        )
