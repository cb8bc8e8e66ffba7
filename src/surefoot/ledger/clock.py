"""The clock a ledger reads: wall time for what is written, boot time for leases.

Owns: the port and the machine's own clocks. Does not own: what a time decides
(only TR-174 and TR-175 let one decide anything here).
"""

from __future__ import annotations

from typing import Protocol

from surefoot import machine


class Clock(Protocol):
    """Where an engine takes its times from; the simulation injects its own."""

    def now_ms(self) -> int:
        """Milliseconds since 1970 UTC."""
        ...

    def boot_ms(self) -> int:
        """Milliseconds since this machine booted, suspend included."""
        ...


class MachineClock:
    """The clocks of this machine."""

    def now_ms(self) -> int:
        return machine.now_ms()

    def boot_ms(self) -> int:
        return machine.boot_ms()
