"""The demo as a person meets it: in a pseudo-terminal, in a pipe, and killed itself."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from chat_pty import quiet
from cli_world import SUREFOOT, wait_for, within

WHOLE_SECONDS = 120.0


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An empty machine: no key, no settings, a folder for temporary files, a proxy that knows no loopback (UX-134)."""
    (tmp_path / "tmp").mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "HOME": str(tmp_path / "nobody"), "TMPDIR": str(tmp_path / "tmp"), "LANG": "C.UTF-8",
            "TERM": "xterm-256color", "SUREFOOT_DEMO_MARK": str(tmp_path),
            "http_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}  # fmt: skip


@pytest.fixture
def terminal(environ: dict[str, str], tmp_path: Path) -> Iterator[Any]:
    """Starts the demo in a pseudo-terminal of 90 columns."""
    children = []

    def start(*arguments: str) -> Any:
        child = pexpect.spawn(
            SUREFOOT[0], [*SUREFOOT[1:], "demo", *arguments], cwd=str(tmp_path), env=environ, encoding="utf-8",
            dimensions=(50, 90), timeout=WHOLE_SECONDS,
        )  # fmt: skip
        children.append(child)
        return child

    yield start
    for child in children:
        child.close(force=True)


def piped(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SUREFOOT, "demo", *arguments], env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=WHOLE_SECONDS, check=False,
    )  # fmt: skip


def end_of(child: Any) -> int:
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)


def left_behind(environ: dict[str, str]) -> list[str]:
    """Folders, and processes that carry the mark of this test in their environment."""
    found = [path.name for path in Path(environ["TMPDIR"]).iterdir()]
    mark = f"SUREFOOT_DEMO_MARK={environ['SUREFOOT_DEMO_MARK']}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # ended meanwhile, or not ours to look at
    return found


def test_ux_134_ux_135_one_key_decides_one_more_continues_and_the_receiver_counted_one(
    terminal: Any, environ: dict[str, str]
) -> None:
    began = time.monotonic()
    child = terminal()
    child.expect(r"An agent starts \(process (\d+)\)")
    agent = child.match.group(1)
    child.expect("The receiver has counted 1 and is about to answer")
    child.expect(f"kill -9 {agent}")
    child.expect("1 of 1 · pay invoice 7")
    child.expect("The receiver lists 1 payment with the key of this call")
    child.expect("STRONG")
    child.expect("h it happened")
    child.expect("surefoot recover confirm att_")
    quiet(child)
    child.send("h")
    child.expect("you said it happened .* this terminal")
    child.expect("c continue")
    child.send("c")
    child.expect("I do not pay again")
    child.expect(r"The receiver counted 1\.")
    child.expect(r"without receipts, .* made it 2\.")
    child.expect(r"Go on with(:| \([^)]*/surefoot\):)")  # its place, where no PATH leads to it
    told = child.read()
    took = time.monotonic() - began
    assert len(re.findall(r"^  surefoot ", told, re.MULTILINE)) == 3
    child.close()
    assert child.exitstatus == 0
    assert within(8.0, took), "UX-136: at most 8 s with an instant reader"
    assert not left_behind(environ)


@pytest.mark.parametrize("key", ["\r", " ", "y", "hh"])
def test_ux_135_other_keys_decide_nothing_and_leaving_leaves_it_open(terminal: Any, key: str) -> None:
    child = terminal()
    child.expect("surefoot recover confirm att_")
    quiet(child)
    child.send(key)
    quiet(child)
    child.send("\x1b")
    child.expect("Nothing was decided")
    assert end_of(child) == 3


def test_ux_135_who_says_it_did_not_happen_types_the_code_or_finds_no_such_key(terminal: Any) -> None:
    child = terminal()
    child.expect("surefoot recover confirm att_")
    quiet(child)
    child.send("n")
    child.expect(r"unsupported|stale|not|type the two characters")
    child.send("\x1b")
    quiet(child)
    child.send("\x1b")
    assert end_of(child) == 3


def test_ux_135_looking_again_draws_the_card_anew(terminal: Any) -> None:
    child = terminal()
    child.expect("surefoot recover confirm att_")
    quiet(child)
    child.send("i")
    child.expect("surefoot recover confirm att_")
    quiet(child)
    child.send("h")
    child.expect("you said it happened")
    child.expect("c continue")
    child.send("c")
    child.expect(r"The receiver counted 1\.")
    assert end_of(child) == 0


def test_ux_137_without_a_terminal_it_prints_the_card_and_the_command_and_exits_3(
    environ: dict[str, str],
) -> None:
    ended = piped(environ)
    assert ended.returncode == 3, ended.stderr
    assert "1 of 1 · pay invoice 7" in ended.stdout
    assert "surefoot recover confirm att_" in ended.stdout
    assert "The receiver counted 1; a blind retry made 2." in ended.stdout
    assert not left_behind(environ)


@pytest.mark.parametrize(
    ("moment", "told"),
    [("before", "The payment had never begun, so I made it"), ("after", "died after the result was written")],
)
def test_ux_137_the_other_moments_need_nobody_and_pay_once(
    environ: dict[str, str], moment: str, told: str
) -> None:
    ended = piped(environ, "--kill-at", moment)
    assert ended.returncode == 0, ended.stderr
    assert told in ended.stdout
    assert "The receiver counted 1." in ended.stdout
    assert "1 of 1" not in ended.stdout


def test_ux_137_a_kept_folder_lets_the_printed_command_decide(environ: dict[str, str]) -> None:
    ended = piped(environ, "--keep")
    found = re.search(r"SUREFOOT_HOME=.+ surefoot -C .+ recover confirm \S+", ended.stdout)
    assert found is not None, ended.stdout
    variable, _, _, project, *_, attempt = shlex.split(found[0])
    home = variable.partition("=")[2]
    command = [*SUREFOOT, "-C", project, "recover", "confirm", attempt]
    child = pexpect.spawn(
        command[0],
        command[1:],
        env={**environ, "SUREFOOT_HOME": home},
        encoding="utf-8",
        timeout=WHOLE_SECONDS,
    )
    child.expect("Type confirm to decide")
    child.sendline("confirm")
    child.expect("it happened")
    assert end_of(child) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ux_136_a_killed_demo_leaves_no_process_and_no_folder(
    terminal: Any, environ: dict[str, str], number: signal.Signals
) -> None:
    child = terminal()
    child.expect("surefoot recover confirm att_")
    assert left_behind(environ)
    child.kill(number)
    wait_for(lambda: not left_behind(environ))


def test_ux_136_an_interrupted_demo_leaves_no_process_and_no_folder(
    terminal: Any, environ: dict[str, str]
) -> None:
    child = terminal()
    child.expect("surefoot recover confirm att_")
    child.sendintr()
    assert end_of(child) == 130
    assert not left_behind(environ)


def test_ux_136_a_demo_killed_while_its_agent_works_leaves_nothing(
    terminal: Any, environ: dict[str, str]
) -> None:
    child = terminal()
    child.expect(r"An agent starts \(process \d+\)")
    child.kill(signal.SIGKILL)
    wait_for(lambda: not left_behind(environ))


_VARIES = re.compile(
    r"\d\d:\d\d:\d\d|(?<=process )\d+|(?<=kill -9 )\d+|(?<=_)[0-9a-z]{4}\b|(?<=127\.0\.0\.1:)\d+"
)


def test_ux_136_the_front_page_shows_what_the_demo_prints(environ: dict[str, str]) -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert block is not None
    shown, printed = (re.sub(" +", " ", _VARIES.sub("…", text)) for text in (block[1], piped(environ).stdout))
    assert shown in printed


@pytest.mark.parametrize(("locale", "title", "person"), [
    ("zh_CN.UTF-8", "一个代理支付一张发票", "由人在终端中决定：surefoot recover confirm att_"),
    ("zh_TW.UTF-8", "一個代理支付一張發票", "由人在終端機中決定：surefoot recover confirm att_"),
])  # fmt: skip
def test_ux_11_the_demo_speaks_the_language_of_the_locale(
    environ: dict[str, str], locale: str, title: str, person: str
) -> None:
    done = piped(environ | {"LANG": locale, "PYTHONUTF8": "1"})
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(title) and person in done.stdout
    english = [row for row in done.stdout.splitlines() if row.startswith(("The ", "An ", "A "))]
    assert english == []
