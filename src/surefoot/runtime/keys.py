"""Whether the far side still knows the key of a call (TR-18, EC-18).

Owns: the age of a key since its first use, over the attempts that carry it, by boot time or by the
far side's clock, and what a forgotten key means for class and retries. Does not own: the margin
(`core.admission`), how the far side's clock is seen (`verifiers.http`), retries themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.core import admission
from surefoot.core.canonical import ArgumentsInvalid, read_arguments
from surefoot.core.effects import Effect, stricter
from surefoot.core.lifecycle import Book
from surefoot.core.model import EffectClass, Receipt, State
from surefoot.runtime.scheduler import Scheduler
from surefoot.runtime.tools import Place, Tool, classify


class Keys:
    """The keys of one owned session."""

    def __init__(self, book: Book, scheduler: Scheduler) -> None:
        self._book = book
        self._scheduler = scheduler

    def alive(self, tool: Tool, receipt: Receipt, boot_id: str) -> bool:
        """Whether a retry may rely on the key; without a declared lifetime nothing relies on it."""
        try:
            lifetime_seconds = tool.key_lifetime_for(read_arguments(receipt.arguments).value)
        except ArgumentsInvalid:
            return False
        if lifetime_seconds is None:
            return True
        return admission.key_alive(
            lifetime_ms=int(lifetime_seconds * 1000),
            age_ms=self._age_ms(receipt, boot_id),
            clock_behind=self._scheduler.now_ms() < (receipt.started_at or 0),
        )

    def serves_again(self, tool: Tool, receipt: Receipt, place: Place) -> bool:
        """Whether a try after this one, by the same owner, may count on the key where it has to."""
        if receipt.effect_class is EffectClass.READ_ONLY:
            return True
        try:
            arguments = read_arguments(receipt.arguments).value
        except ArgumentsInvalid:
            return False
        if tool.key_lifetime_for(arguments) is None:
            return True
        bare = None if tool.effect_without_key is None else _bare(tool, arguments, place)
        if bare is not None and bare.effect_class.retry_safe:
            return True  # harmless without any key
        refused = receipt.state is State.FAILED and not tool.accepts_key_after_failure(arguments)
        return not refused and self.alive(tool, receipt, str((receipt.owner or {}).get("bootId")))

    def judged(
        self, tool: Tool, receipt: Receipt, arguments: Mapping[str, Any], place: Place, boot_id: str
    ) -> Effect:
        """The effect by today's declaration, as without key once the far side has forgotten it (EC-18)."""
        today = classify(tool, arguments, place)
        if tool.effect_without_key is None or self.alive(tool, receipt, boot_id):
            return today
        return stricter(today, _bare(tool, arguments, place))

    def _age_ms(self, receipt: Receipt, boot_id: str) -> int | None:
        """Since the first attempt that carried it; None when neither clock can tell."""
        since = self._since_start_ms(receipt, boot_id)
        first = self._first_use(receipt)
        if since is None or first.attempt_id == receipt.attempt_id:
            return since
        if _boot_of(first) != _boot_of(receipt) or first.started_boot is None or receipt.started_boot is None:
            return None
        return since + receipt.started_boot - first.started_boot

    def _since_start_ms(self, receipt: Receipt, boot_id: str) -> int | None:
        """By boot time within one boot, else by the far side's clock as a look of this boot saw it."""
        boot_ms = self._scheduler.boot_ms()
        if receipt.started_boot is not None and _boot_of(receipt) == boot_id:
            return boot_ms - receipt.started_boot
        evidence: Any = (receipt.inspection or {}).get("evidence") or {}
        clock = evidence.get("farClock") or {}
        if clock.get("bootId") != boot_id or "keyAgeMs" not in clock:
            return None
        return int(clock["keyAgeMs"]) + boot_ms - int(clock["bootMs"])

    def _first_use(self, receipt: Receipt) -> Receipt:
        """The oldest started attempt with this key: of its call, and of the calls that it took over from."""
        first = receipt
        while True:
            tries = [one for one in self._book.attempts(first.call_id) if one.started_at is not None]
            first = tries[0] if tries and tries[0].idempotency_key == receipt.idempotency_key else first
            before = self._book.get(first.supersedes) if first.supersedes else None
            if before is None or before.idempotency_key != receipt.idempotency_key:
                return first
            first = before


def _boot_of(receipt: Receipt) -> Any:
    return (receipt.owner or {}).get("bootId")


def _bare(tool: Tool, arguments: Mapping[str, Any], place: Place) -> Effect:
    return classify(replace(tool, effect=tool.effect_without_key or tool.effect), arguments, place)
