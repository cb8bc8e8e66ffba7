"""The trace a person's program is in, as commands of a session see it."""

from __future__ import annotations

from surefoot.tools.classify.environment import reading_environment
from surefoot.tools.processes.preparing import without_ours

TRACE = {"TRACEPARENT": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "TRACESTATE": "vendor=1"}


def test_ux_27_the_trace_context_is_passed_on_to_commands_readers_too_and_nothing_of_ours_is() -> None:
    given = {"PATH": "/usr/bin:/bin", "SUREFOOT_MODEL": "x/y", **TRACE}
    reader = reading_environment(without_ours(given))
    assert reader is not None
    for told in (without_ours(given), reader.variables):
        assert TRACE.items() <= dict(told).items()
        assert not [name for name in told if name.startswith("SUREFOOT_")]
