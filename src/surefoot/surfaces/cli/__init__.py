"""The command `surefoot`. Loads nothing until it is known what is asked for."""

from __future__ import annotations


def main() -> None:
    """Run the command line and leave with its exit code."""
    import gc
    import os
    import sys

    # Modules, and the receipts of a long session, are built to stay: looking among them for garbage every 700
    # objects is a twentieth of each start.
    gc.set_threshold(50_000)

    # A stream that was closed leaves its number free, and the next file opened, a ledger, would get it.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    try:
        code = _answered(sys.argv[1:])
    except KeyboardInterrupt:  # while the modules of a command are loaded, too
        code = 130
    raise SystemExit(code)


def _answered(arguments: list[str]) -> int:
    try:
        if arguments in (["--version"], ["-V"]):
            return _version()
        from surefoot.surfaces.cli.entry import run

        return run(arguments)
    except Exception as error:
        # The top of this surface: a fault of ours is told in one line, and nothing was decided by it.
        from surefoot.surfaces.cli.entry import fault

        return fault(error)


def _version() -> int:
    import sys

    from surefoot import __version__

    try:
        sys.stdout.write(f"surefoot {__version__}\n")
        sys.stdout.flush()
    except OSError as error:
        from surefoot.surfaces.cli.entry import refused_by_system

        return refused_by_system(error)
    return 0
