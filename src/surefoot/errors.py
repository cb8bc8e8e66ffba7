"""Every exception of surefoot, in one tree. Pure.

    SurefootError
    ├── UsageError              bad flag, setting or argument of a person      SF-USAGE
    │   └── SettingsError       a settings file that cannot be accepted        SF-SETTINGS
    ├── LedgerError             the ledger could not do what was asked         SF-LEDGER
    │   ├── LedgerDamaged       unreadable or inconsistent                     SF-LEDGER-DAMAGED
    │   ├── LedgerNewer         written by a newer surefoot                    SF-LEDGER-NEWER
    │   ├── LedgerLocked        the gate could not be passed in time           SF-LEDGER-LOCKED
    │   ├── LedgerForked        a handle used in a forked child                SF-LEDGER-FORKED
    │   ├── LedgerUncertain     a commit whose outcome is not known yet        SF-LEDGER-UNCERTAIN
    │   └── ReceiptNotWritten   a receipt is not durable; the body did not run SF-RECEIPT-NOT-WRITTEN
    ├── SessionHeld             another live process owns the session          SF-SESSION-HELD
    ├── SessionMissing          no such session, attempt or reference          SF-NOT-FOUND
    ├── OutcomeUnknown          a call may or may not have happened            SF-OUTCOME-UNKNOWN
    ├── WriteFenced             a write overlaps an unknown one                SF-WRITE-FENCED
    ├── RecoveryRefused         an action was not admitted (`code`)            SF-RECOVERY-REFUSED
    ├── ProviderError           the model's server could not be used           SF-PROVIDER
    │   ├── ProviderUnreachable no reply, or the reply broke off               SF-PROVIDER-UNREACHABLE
    │   ├── ProviderRefused     the server refused the request                 SF-PROVIDER-REFUSED
    │   ├── ProviderCredentials key missing or refused, quota spent            SF-PROVIDER-CREDENTIALS
    │   └── ProviderNonsense    the reply is not of the wire's form            SF-PROVIDER-NONSENSE
    ├── ToolError               raised by a tool body to report its failure    SF-TOOL
    └── ExtraMissing            an optional package is not installed           SF-EXTRA-MISSING

    Signal (BaseException: a tool body's `except Exception` must not swallow it)
    ├── StaleEpoch              this process no longer owns the session
    └── BrokenInvariant         a rule of the core was violated: a fault of ours

Every class answers two questions: `retryable` (may the same thing be tried
again without a decision?) and `effect` (could it have happened?: `none`,
`possible` or `done`, as `effectTrace` of a receipt). All are picklable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar


class SurefootError(Exception):
    """Root of everything a caller may catch. `code` is stable and documented."""

    code: ClassVar[str] = "SF-ERROR"
    retryable: ClassVar[bool] = False
    effect: ClassVar[str] = "none"

    def __init__(self, message: str, *, next_command: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.next_command = next_command
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.next_command, self.facts))


def _rebuild(
    kind: type[SurefootError], message: str, next_command: str | None, facts: dict[str, Any]
) -> SurefootError:
    return kind(message, next_command=next_command, **facts)


def _fact(name: str, doc: str) -> property:
    """One of the facts under a name of its own; None where it is not known."""
    return property(lambda self: self.facts.get(name), doc=doc)


class UsageError(SurefootError):
    """A person gave a flag, a word or a value that cannot be used."""

    code = "SF-USAGE"


class SettingsError(UsageError):
    """A settings file, named with its line, cannot be accepted."""

    code = "SF-SETTINGS"


class LedgerError(SurefootError):
    """The ledger could not do what was asked of it; nothing was told as written."""

    code = "SF-LEDGER"
    retryable = True


class LedgerDamaged(LedgerError):
    """The ledger cannot be read, or its chain does not hold."""

    code = "SF-LEDGER-DAMAGED"
    retryable = False


class LedgerNewer(LedgerError):
    """The ledger was written by a newer surefoot than this one."""

    code = "SF-LEDGER-NEWER"
    retryable = False


class LedgerLocked(LedgerError):
    """The gate of the ledger was not free within its time."""

    code = "SF-LEDGER-LOCKED"


class LedgerForked(LedgerError):
    """The handle belongs to the process that opened it, not to this forked child."""

    code = "SF-LEDGER-FORKED"
    retryable = False


class LedgerUncertain(LedgerError):
    """The answer of a commit was lost; whether it is durable is not known yet."""

    code = "SF-LEDGER-UNCERTAIN"
    retryable = False


class ReceiptNotWritten(LedgerError):
    """The start receipt is not durable, so the body did not run."""

    code = "SF-RECEIPT-NOT-WRITTEN"


class SessionHeld(SurefootError):
    """Another live process owns the session."""

    code = "SF-SESSION-HELD"
    retryable = True

    session_id = _fact("session_id", "Full id of the session.")
    pid = _fact("pid", "The holder's process.")
    host = _fact("host", "The holder's host.")
    since = _fact("since", "Milliseconds since 1970: since when it holds the session.")


class SessionMissing(SurefootError):
    """No session, attempt or file goes by that name."""

    code = "SF-NOT-FOUND"


class OutcomeUnknown(SurefootError):
    """A call started and nobody knows whether it took effect. Do not run it again: decide.

    Deliberately no `TimeoutError`, `ConnectionError`, `OSError` or
    `RuntimeError`, so that retry settings that list those do not catch it.
    A tool of the owner's own may raise it to say so itself; such a one carries no facts yet.
    It has no method that decides.
    """

    code = "SF-OUTCOME-UNKNOWN"
    effect = "possible"

    look: Callable[[], Any] | None = None
    """How this process looks at the call; gone once the exception was pickled."""
    alook: Callable[[], Awaitable[Any]] | None = None

    attempt_id = _fact("attempt_id", "Full id of the attempt.")
    session_id = _fact("session_id", "Full id of its session.")
    tool = _fact("tool", "Name of the tool or guarded function.")
    effect_class = _fact("effect_class", "Its effect class.")
    reach = _fact("reach", "What it may have touched.")
    started_at = _fact("started_at", "Milliseconds since 1970.")
    cause = _fact("cause", "Reason code: why its end is not known.")
    checks = property(lambda self: self.as_dict().get("checks", []), doc="What was looked at so far.")
    idempotency_key = _fact("idempotency_key", "The key its body got.")
    receipt = _fact("receipt", "The receipt as JSON.")

    def as_dict(self) -> dict[str, Any]:
        """Give the card of the call, as every surface shows it; empty before there is a receipt."""
        return dict(self.facts.get("card") or {})

    def inspect(self) -> Any:
        """Look at the world with the call's verifier and give the recorded inspection; decides nothing.

        Raises: `UsageError` outside of the session that made the call, and in one that is awaited.
        """
        if self.look is None:
            raise UsageError(
                "the session of this call is not at hand here; in an async one await `ainspect()`, "
                f"elsewhere run: surefoot recover inspect {self.attempt_id}"
            )
        return self.look()

    async def ainspect(self) -> Any:
        """Look at the world with the call's verifier and give the recorded inspection; decides nothing.

        Raises: `UsageError` outside of the session that made the call.
        """
        if self.alook is None:
            return self.inspect()
        return await self.alook()


class WriteFenced(SurefootError):
    """The write overlaps an open unknown one; nothing of it ran."""

    code = "SF-WRITE-FENCED"

    fenced_by = _fact("fenced_by", "Full id of the open attempt that holds it.")
    overlap = _fact("overlap", "What that attempt may have touched and this write would touch.")


class RecoveryRefused(SurefootError):
    """A recovery action was not admitted; `facts["code"]` says by which rule."""

    code = "SF-RECOVERY-REFUSED"


class ProviderError(SurefootError):
    """The model's server could not be used for this step."""

    code = "SF-PROVIDER"


class ProviderUnreachable(ProviderError):
    """No reply came, or it broke off; no tool of it ran."""

    code = "SF-PROVIDER-UNREACHABLE"
    retryable = True


class ProviderRefused(ProviderError):
    """The server refused the request; nothing of its body is kept."""

    code = "SF-PROVIDER-REFUSED"

    kind = _fact("kind", "What the refusal is about, as diagnosed.")
    status = _fact("status", "HTTP status; None when the request was not sent or the reply had no status.")
    trace_id = _fact("trace_id", "The server's id of the request.")
    incident_id = _fact("incident_id", "Id of the protocol incident, when one was recorded.")


class ProviderCredentials(ProviderError):
    """The key is missing or refused, or the quota is spent."""

    code = "SF-PROVIDER-CREDENTIALS"


class ProviderNonsense(ProviderError):
    """The reply is not of the form its wire demands; nothing of it ran."""

    code = "SF-PROVIDER-NONSENSE"


class ToolError(SurefootError):
    """Raised by a tool body: the tool failed, in words for the model.

    `facts` may hold `effect_trace` (`none`, `possible`, `done`), believed only of tools
    of the owner's own declaration (TR-39), `transient` (bool) and `kind` (short word).
    """

    code = "SF-TOOL"
    effect = "possible"


class ExtraMissing(SurefootError):
    """An optional package is missing; the message names the line that installs it."""

    code = "SF-EXTRA-MISSING"


class Signal(BaseException):
    """Root of what a tool body must not be able to swallow."""


class StaleEpoch(Signal):
    """This process no longer owns the session it writes to; it must stop starting things."""


class BrokenInvariant(Signal):
    """A rule of the core was violated. A fault of surefoot, never of its user."""
