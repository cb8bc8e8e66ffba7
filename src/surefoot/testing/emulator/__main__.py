"""The emulator as a program: `python -m surefoot.testing.emulator --profile NAME --port N`.

The first line of standard output is the base URL of the profile. It ends on SIGTERM,
SIGINT, or, with `--until-stdin-closes`, when its parent is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from surefoot.testing.emulator.profiles import WIRES, profile_names
from surefoot.testing.emulator.scripts import scripts_of
from surefoot.testing.emulator.server import Emulator
from surefoot.testing.flag_words import flag_word
from surefoot.testing.flags import Flags, language_here


def main(arguments: list[str] | None = None) -> int:
    """Run until told to stop."""
    language = language_here()

    def told(key: str, **values: object) -> str:
        return flag_word(key, language, **values)

    parser = Flags(prog="surefoot emulate", description=told("about"), language=language)
    names = profile_names()
    rules = told("profile", names=", ".join(names))
    parser.add_argument("--profile", default="compat", choices=names, metavar="NAME", help=rules)
    parser.add_argument("--wire", choices=sorted(WIRES), help=told("wire"))
    parser.add_argument("--port", type=int, default=0, help=told("port"))
    parser.add_argument("--script", type=Path, help=told("script"))
    parser.add_argument("--log", type=Path, help=told("log"))
    parser.add_argument("--until-stdin-closes", action="store_true", help=told("until_stdin_closes"))
    options = parser.parse_args(arguments)
    try:
        asyncio.run(_serve(options))
    except (OSError, ValueError, OverflowError) as error:
        parser.error(_told(error, options))
    return 0


def _told(error: Exception, options: Any) -> str:
    """What is wrong with the file or the port, in a sentence that names it."""
    if isinstance(error, json.JSONDecodeError):
        return f"--script {options.script} is no JSON: {error}."
    if isinstance(error, OverflowError):
        return f"--port {options.port} is no port. Use 0 to 65535."
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}."
    if isinstance(error, OSError):
        return f"--port {options.port} cannot be listened on: {error.strerror}."
    return f"{error}"


def _wire(options: Any) -> str:
    """The wire whose URL is printed. Raises `ValueError` for one that the profile does not speak."""
    spoken = [wire for wire in WIRES if options.profile in WIRES[wire]]
    if options.wire is not None and options.wire not in spoken:
        raise ValueError(f"--profile {options.profile} speaks {', '.join(spoken)}, not {options.wire}.")
    return str(options.wire or spoken[0])


async def _serve(options: Any) -> None:
    wire = _wire(options)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with Emulator(port=options.port, log_path=options.log) as emulator:
        if options.script is not None:
            for script in scripts_of(json.loads(options.script.read_text(encoding="utf-8"))):
                emulator.scripts.add(script)
        if options.until_stdin_closes:
            await _watch_stdin(stop)
        print(emulator.base_url(options.profile, wire=wire), flush=True)
        await stop.wait()


async def _watch_stdin(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            stop.set()

    loop.add_reader(sys.stdin.fileno(), readable)


if __name__ == "__main__":
    sys.exit(main())
