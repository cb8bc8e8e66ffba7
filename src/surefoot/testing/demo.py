"""The demo: an agent pays, is killed with SIGKILL, and its successor tells the truth.

Owns: the stage (a temporary folder, receivers, the kill), the one card on it, the two
keys, and the last lines. Does not own: the agent (`demo_agent`), what a card says
(`surfaces.view`), which key decides (`surfaces.keys`), what a decision does
(`runtime.actions`): all of that is the real thing.

    python -m surefoot.testing.demo [--kill-at before|during|after] [--keep]

Needs no key, network, settings or extra. A reaper outlives this process and removes
the folder, whichever way the demo ends; the other children die with it.
"""

from __future__ import annotations

import asyncio
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import termios
import time
import tty
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from surefoot.surfaces import plain, view
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.drawing import INLINE, SCREEN_READER, Drawing
from surefoot.surfaces.keys import QUIET_MS, Keys
from surefoot.surfaces.words import refusal, say
from surefoot.testing.demo_agent import AFTER, LABEL, PAY, die_with_parent, pay_tool, settings_at
from surefoot.testing.demo_words import told
from surefoot.testing.flags import Flags
from surefoot.testing.played import PlayedModel
from surefoot.testing.sink import Sink

MOMENTS = ("before", "during", "after")
START_SECONDS = 20.0

_REAPER = """
import os, shutil, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
while os.read(0, 64):
    pass
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.05)
"""
_PLAIN_LOOP = """
import json, sys, urllib.request
body = json.dumps({"label": sys.argv[2]}).encode()
ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
ask(urllib.request.Request(sys.argv[1] + "/effect", body), timeout=60).read()
"""
"""An agent loop without receipts: after a restart it does its last step again."""


@contextmanager
def temporary_folder(*, keep: bool) -> Iterator[Path]:
    """A folder that is gone afterwards, also when this process is killed; `keep` leaves it."""
    folder = Path(tempfile.gettempdir()) / f"surefoot-demo-{uuid.uuid4().hex[:12]}"
    if keep:
        _made(folder)
        yield folder
        return
    # The reaper lives before the folder does, so that no moment is without it.
    reaper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _REAPER, str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
    )
    try:
        yield _made(folder)
    finally:
        if reaper.stdin is not None:
            reaper.stdin.close()
        reaper.wait()


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    for name in ("project", "home", "receiver", "other"):
        (folder / name).mkdir()
    return folder


class Keyboard:
    """Single keys of this terminal, while it is entered. Ctrl-C interrupts as ever."""

    def __init__(self) -> None:
        self._number = sys.stdin.fileno()
        self._keys: asyncio.Queue[tuple[str, bool]] = asyncio.Queue()

    def __enter__(self) -> Keyboard:
        self._before = termios.tcgetattr(self._number)
        tty.setcbreak(self._number, termios.TCSADRAIN)
        asyncio.get_running_loop().add_reader(self._number, self._read)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._number)
        termios.tcsetattr(self._number, termios.TCSADRAIN, self._before)

    async def key(self, *, within_ms: float | None = None) -> tuple[str, bool] | None:
        """The next key and whether it came in a paste; None when none came in time. Empty: the end."""
        seconds = None if within_ms is None else within_ms / 1000
        try:
            return await asyncio.wait_for(self._keys.get(), seconds)
        except TimeoutError:
            return None

    def _read(self) -> None:
        try:
            typed = os.read(self._number, 256).decode("utf-8", "replace")
        except OSError:
            typed = ""  # the terminal was closed
        if typed in ("", "\x04"):
            asyncio.get_running_loop().remove_reader(self._number)
            self._keys.put_nowait(("", False))
        elif typed == "\x1b":
            self._keys.put_nowait(("escape", False))
        elif not typed.startswith("\x1b"):
            for letter in typed:
                self._keys.put_nowait((letter, len(typed) > 1))


@dataclass(slots=True)
class Stage:
    """What the demo plays on: the folder, two receivers, and where lines go."""

    folder: Path
    receiver: Sink
    other: Sink
    kill_at: str
    interactive: bool
    keep: bool
    ascii_only: bool
    language: str = "en"
    drawing: Drawing = INLINE

    def say(self, *lines: str) -> None:
        """Write lines for a reader; on a terminal a long one breaks between words."""
        columns = shutil.get_terminal_size((80, 24)).columns if self.interactive else sys.maxsize
        for line in map(self.drawing.line, lines):
            for row in plain.wrap(line, self.drawing.columns or columns):
                print(plain.only_ascii(row) if self.ascii_only else row, flush=True)

    def told(self, key: str, **values: object) -> str:
        """A sentence of the demo's own, in the language of this stage."""
        return told(key, self.language, **values)

    def tell(self, key: str, **values: object) -> None:
        """One event, with its time; what does not fit stands below its words."""
        text = self.told(key, **values)
        columns = shutil.get_terminal_size((80, 24)).columns if self.interactive else sys.maxsize
        clock = f"  {time.strftime('%H:%M:%S')}  "
        first, *rest = plain.wrap(text, max(20, columns - len(clock)))
        self.say(clock + first, *(" " * len(clock) + row for row in rest))


# The kill -----------------------------------------------------------------------------------------


def kill_the_agent(stage: Stage) -> None:
    """Let a real agent work until the chosen moment, and kill it there."""
    if stage.kill_at == "during":
        stage.receiver.switch(reply="hold")
        stage.other.switch(reply="hold")
    arguments = ["--folder", str(stage.folder), "--receiver", stage.receiver.url, "--kill-at", stage.kill_at]
    agent = subprocess.Popen(
        [sys.executable, "-m", "surefoot.testing.demo_agent", *arguments, "--parent", str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=stage.folder / "project",
    )
    loop = _start_loop(stage) if stage.kill_at == "during" else None
    try:
        stage.tell("starts", pid=agent.pid, label=LABEL)
        if stage.kill_at == "during":
            _until(lambda: stage.receiver.state()["waiting"] == 1, agent)
            stage.tell("counted", count=stage.receiver.count())
        else:
            _until(lambda: _has_spoken(agent), agent)
            stage.tell(_MOMENT[stage.kill_at])
        agent.kill()
        agent.wait()
        stage.tell("killed", pid=agent.pid, how=stage.told(f"killed_{stage.kill_at}"))
        if loop is not None:
            _repeat_blindly(stage, loop)
    finally:
        for process in (agent, loop):
            if process is not None:
                process.kill()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()


_MOMENT = {"before": "ready", "after": "answered"}


def _start_loop(stage: Stage) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", _PLAIN_LOOP, stage.other.url, LABEL]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL)


def _repeat_blindly(stage: Stage, loop: subprocess.Popen[bytes]) -> None:
    """The same death for a loop without receipts, which then does its last step again."""
    _until(lambda: stage.other.state()["waiting"] == 1, loop)
    loop.kill()
    loop.wait()
    stage.other.switch(reply="now")
    stage.other.release()
    again = _start_loop(stage)
    if again.wait(START_SECONDS) != 0:
        raise TimeoutError(stage.told("loop_late"))


def _has_spoken(process: subprocess.Popen[bytes]) -> bool:
    return process.stdout is not None and bool(select.select([process.stdout], [], [], 0)[0])


def _until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait, bounded, for something a living child brings about."""
    end = time.monotonic() + START_SECONDS
    while not holds():
        if process.poll() is not None or time.monotonic() > end:
            raise TimeoutError(told("agent_late", language_here(), pid=process.pid))
        time.sleep(0.02)


# The successor ------------------------------------------------------------------------------------


async def resume(stage: Stage) -> int:
    """Open the dead agent's session, show its card, take a decision, continue; the exit code."""
    from surefoot.app import Parts, open_app
    from surefoot.surfaces.cli.running import Desk

    stage.receiver.switch(reply="now")
    stage.receiver.release()
    model = PlayedModel([PAY])
    parts = Parts(model=model, tools=(pay_tool(stage.receiver.url),))
    async with open_app(settings_at(stage.folder), directory=stage.folder / "project", parts=parts) as app:
        controller = await app.session(continue_newest=True)
        try:
            desk = Desk(app, controller)
            facts = desk.resumed()
            stage.tell("opens")
            name = view.short_id(str(controller.session_id))
            stage.say("", view.resume_line(name, facts["settled"], facts["open"], stage.language))
            if not stage.interactive:
                return await _without_a_person(stage, desk, model)
            with Keyboard() as keyboard:
                return await _with_a_person(stage, desk, model, keyboard)
        finally:
            await controller.close()


async def _without_a_person(stage: Stage, desk: Any, model: PlayedModel) -> int:
    """The plain card and the command that decides; nobody is asked, so nothing is decided."""
    snapshot = desk.snapshot()
    shown = view.cards(snapshot, stage.language, stopped=True)
    if not shown:
        await _go_on(stage, desk, model, _settled_word(desk))
        _last_lines(stage)
        return 0
    stage.say(*_drawn(stage, shown[0], how=plain.Choices.NONE), "")
    if stage.keep:
        home, project = (shlex.quote(f"{stage.folder}/{name}") for name in ("home", "project"))
        where = f"SUREFOOT_HOME={home} surefoot -C {project}"
        command = f"{where} {shown[0]['command'].removeprefix('surefoot ')}"
        stage.say(stage.told("person_decides", command=command))
    else:
        stage.say(stage.told("person_decides", command=shown[0]["command"]), stage.told("not_kept"))
    stage.say(stage.told("both_counts", count=stage.receiver.count(), other=stage.other.count()))
    return 3


async def _with_a_person(stage: Stage, desk: Any, model: PlayedModel, keyboard: Keyboard) -> int:
    word = _settled_word(desk)
    if view.cards(desk.snapshot(), stage.language):
        decided = await Deciding(stage, desk, keyboard).run()
        if decided is None:
            stage.say("", stage.told("undecided"))
            _last_lines(stage)
            return 3
        word = decided
    stage.say("", stage.told("continue"))
    while True:
        pressed = await keyboard.key()
        if pressed is None or pressed[0] in ("", "escape"):
            stage.say(stage.told("left"))
            return 0
        if pressed == ("c", False):
            break
    await _go_on(stage, desk, model, word)
    _last_lines(stage)
    return 0


def _settled_word(desk: Any) -> str:
    """Which words the played model goes on with when nothing is open."""
    states = [str(receipt.state) for receipt in desk.controller.session.book]
    return "settled" if "succeeded" in states else "not_started"


async def _go_on(stage: Stage, desk: Any, model: PlayedModel, word: str) -> None:
    """Continue the session under its ordinary fences."""
    model.steps[1:] = AFTER[word]

    def draw(notice: Any) -> None:
        if notice.kind == "text":
            stage.say(f"  {view.clean(notice.facts.get('text', ''))}")
        elif notice.kind == "receipt" and str(notice.facts["receipt"].state) not in ("dispatched", "started"):
            stage.say("  " + view.receipt_line(notice.facts["receipt"].to_json(), stage.language))

    stage.say("", stage.told("goes_on"))
    desk.controller.subscribe(draw)
    await desk.go_on()


class Deciding:
    """The card on screen and the keys pressed at it, by the rules of `surfaces.keys`."""

    def __init__(self, stage: Stage, desk: Any, keyboard: Keyboard) -> None:
        self._stage = stage
        self._desk = desk
        self._keyboard = keyboard
        self._keys = Keys()
        self._card: Mapping[str, Any] = {}

    async def run(self) -> str | None:
        """The action a person chose, carried out; None when they left it."""
        self._show()
        while True:
            armed = self._keys.settle(_now_ms())
            if armed is not None and await self._act(armed.name):
                return armed.name
            key = await self._keyboard.key(within_ms=QUIET_MS + 20)
            if key is None:
                continue
            if key[0] in ("", "escape", "q"):
                return None
            done = await self._pressed(*key)
            if done is not None:
                return done

    async def _pressed(self, key: str, pasted: bool) -> str | None:
        press = self._keys.press(key, _now_ms(), pasted=pasted)
        if press.kind == "decide" and await self._act(press.name):
            return press.name
        if press.kind == "look":
            await self._look(press.name)
        elif press.kind == "refused":
            self._stage.say(f"{press.name}: {refusal(press.name, self._stage.language)}")
        elif press.kind == "code":
            self._stage.say(self._stage.told("beyond_evidence"))
        elif press.kind == "text" and key.strip():
            self._stage.say(self._stage.told("no_decision"))
        return None

    def _show(self) -> None:
        self._card = view.cards(self._desk.snapshot(), self._stage.language)[0]
        self._stage.say(*_drawn(self._stage, self._card, how=plain.Choices.KEYS))
        self._keys.show(self._card, _now_ms())

    async def _look(self, name: str) -> None:
        if name == "inspect":
            await self._desk.act("inspect", self._card, channel="chat", method="key")
            self._show()
        elif name == "details":
            from surefoot.surfaces.chat_lines import details

            language = self._stage.language
            self._stage.say(*self._stage.drawing.table(details(self._card), (), language, None))
        elif name == "timeline":
            from surefoot.surfaces import pictures

            session = self._desk.controller.session
            entries = await session.ledger.read(session.session_id)
            run = pictures.run_of(session.session_id, entries, list(session.book))
            self._stage.say(
                *pictures.timeline(
                    run, self._stage.language, self._stage.drawing, ascii_only=self._stage.ascii_only
                )
            )
        elif name == "ask_model":
            self._stage.say(self._stage.told("model_cannot_look"))
        elif name == "help":
            self._stage.say(self._stage.told("keys"))

    async def _act(self, action: str) -> bool:
        status, body = await self._desk.act(action, self._card, channel="chat", method="key")
        if status != 200:
            code = str(body.get("code", "bad_request"))
            self._stage.say(f"{code}: {refusal(code, self._stage.language, reason=body.get('reason'))}")
            self._show()
            return False
        attempt = self._card["attemptId"]
        call = next(one for one in body["calls"] if one["attemptId"] == attempt)
        sign = plain.sign_of(call, ascii_only=self._stage.ascii_only)
        what = view.told(call, self._stage.language, you=True)
        here = say("this_terminal", self._stage.language)
        time_text = view.local_time(int(time.time() * 1000))
        self._stage.say(
            "", f"{sign} " + say("decided", self._stage.language, what=what, time=time_text, place=here)
        )
        return True


def _drawn(stage: Stage, card: Mapping[str, Any], *, how: plain.Choices) -> list[str]:
    columns = min(shutil.get_terminal_size((80, 24)).columns - 1, 80)
    return stage.drawing.card(card, stage.language, columns=columns, ascii_only=stage.ascii_only, how=how)


def _now_ms() -> float:
    return time.monotonic() * 1000


def _last_lines(stage: Stage) -> None:
    """What was counted, what blind repetition made, and where to go from here."""
    stage.say("", stage.told("count", count=stage.receiver.count()))
    if stage.kill_at == "during":
        stage.say(stage.told("blind", count=stage.other.count()))
    stage.say(
        "",
        _go_on_with(stage),
        f"  surefoot doctor              {stage.told('next_doctor')}",
        f'  surefoot "what is in here?"  {stage.told("next_chat")}',
        f"  surefoot recover list        {stage.told('next_list')}",
    )
    if stage.keep:
        stage.say("", stage.told("kept", folder=stage.folder))


def _go_on_with(stage: Stage) -> str:
    """The heading of the last commands; it names where `surefoot` lies when no PATH leads to it."""
    if shutil.which("surefoot"):
        return stage.told("go_on_with")
    beside, here = Path(sys.executable).parent / "surefoot", Path.cwd()
    return stage.told(
        "go_on_with_at", place=beside.relative_to(here) if beside.is_relative_to(here) else beside
    )


def play(*, kill_at: str, keep: bool, drawing: Drawing = INLINE) -> int:
    """Play the demo once; the exit code."""
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder(keep=keep))
        receiver = stack.enter_context(Sink(folder / "receiver"))
        other = stack.enter_context(Sink(folder / "other"))
        ascii_only = plain.ascii_wanted(os.environ, sys.stdout.encoding)
        stage = Stage(
            folder, receiver, other, kill_at, interactive, keep, ascii_only, language_here(), drawing
        )
        stage.say(stage.told("title"), "")
        kill_the_agent(stage)
        return asyncio.run(resume(stage))


def main(arguments: list[str]) -> int:
    """Play the demo; 0 at its end, 3 when the call was left open, 130 when interrupted."""
    language = language_here()
    parser = Flags(prog="surefoot demo", description=told("about", language), language=language)
    parser.add_argument("--kill-at", choices=MOMENTS, default="during", help=told("kill_at", language))
    parser.add_argument("--keep", action="store_true", help=told("keep", language))
    parser.add_argument("--screen-reader", action="store_true", help=told("screen_reader", language))
    given = parser.parse_args(arguments)
    die_with_parent()
    try:
        drawing = SCREEN_READER if given.screen_reader else INLINE
        return play(kill_at=given.kill_at, keep=given.keep, drawing=drawing)
    except KeyboardInterrupt:
        return 130
    except TimeoutError as error:
        print(f"{told('stopped', language, why=error)}\nnext: surefoot doctor", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
