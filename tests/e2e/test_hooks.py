"""TR-25: hooks of a settings file around real calls of an opened app, as calls of their own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hook_world import script, settings, until

from surefoot.app import Parts, open_app
from surefoot.config import Settings
from surefoot.core.model import EffectClass, Receipt, State
from surefoot.runtime.controller import Controller
from surefoot.testing.played import PlayedModel

SHELL = {"name": "shell", "args": {"command": "echo done >> effects"}}
WRITE = {"name": "write", "args": {"path": "a.txt", "content": "new"}}


async def played(given: Settings, work: Path, *calls: dict[str, Any]) -> list[Receipt]:
    """The receipts of one turn in which a model asks for these calls, one a step."""
    model = PlayedModel([{"calls": [call]} for call in calls])
    async with open_app(given, directory=work, parts=Parts(model=model)) as app:
        controller: Controller = await app.session()
        await controller.submit("Go.")
        return list(controller.session.book)


def of(receipts: list[Receipt], tool: str) -> list[Receipt]:
    return [receipt for receipt in receipts if receipt.tool == tool]


def effects(work: Path) -> list[str]:
    file = work / "effects"
    return file.read_text().split() if file.exists() else []


async def test_tr_25_a_hook_is_a_call_of_its_own_below_its_call_with_its_own_receipt(work: Path) -> None:
    script(work, "before.sh", "cat > before.json; pwd > where")
    script(work, "after.sh", "cat > after.json")
    given = settings(
        work,
        '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "./before.sh"\n'
        '[[hooks.PostToolUse]]\ncommand = "./after.sh"\n',
    )
    receipts = await played(given, work, SHELL)
    (call,) = of(receipts, "shell")
    before, after = of(receipts, "hook")
    assert call.state is State.SUCCEEDED and effects(work) == ["done"]
    assert [one.parent_attempt_id for one in (before, after)] == [call.attempt_id] * 2
    assert before.state is after.state is State.SUCCEEDED
    assert (before.started_position or 0) < (call.started_position or 0) < (after.started_position or 0)
    assert (work / "where").read_text().strip() == str(work)
    told = json.loads((work / "before.json").read_text())
    assert told["hook_event_name"] == "PreToolUse" and told["tool_name"] == "Bash"
    assert told["tool_input"] == SHELL["args"] and told["cwd"] == str(work)
    assert told["session_id"] == call.session_id and told["attempt_id"] == call.attempt_id
    told = json.loads((work / "after.json").read_text())
    assert told["hook_event_name"] == "PostToolUse" and told["state"] == "succeeded"
    assert told["tool_response"]["is_error"] is False


async def test_tr_25_undeclared_its_reach_is_that_of_its_call_and_the_work_tree_and_it_is_a_check(
    work: Path,
) -> None:
    script(work, "look.sh", "exit 0")
    given = settings(work, '[[hooks.PreToolUse]]\ncommand = "./look.sh"\n')
    (hook,) = of(
        await played(given, work, {"name": "shell", "args": {"command": "curl -d a=1 http://127.0.0.1:9/x"}}),
        "hook",
    )
    assert hook.effect_class is EffectClass.UNKNOWN and hook.check
    assert set(hook.reach) == {"host:127.0.0.1:9", f"repo:{work}"}


async def test_tr_25_a_declared_class_and_reach_are_the_owners_and_a_proven_reader_needs_none(
    work: Path,
) -> None:
    script(work, "say.sh", "exit 0")
    given = settings(
        work,
        '[[hooks.PreToolUse]]\ncommand = "./say.sh"\nclass = "IDEMPOTENT_WRITE"\nreach = ["host:log.example"]\n'
        '[[hooks.PreToolUse]]\ncommand = "./say.sh"\nclass = "READ_ONLY"\n'
        '[[hooks.PreToolUse]]\ncommand = "grep -q tool_name"\n',
    )
    first, second, third = of(await played(given, work, SHELL), "hook")
    assert (first.effect_class, first.reach) == (EffectClass.IDEMPOTENT_WRITE, ("host:log.example",))
    assert (second.effect_class, second.reach) == (EffectClass.READ_ONLY, ())
    assert (third.effect_class, third.reach, third.state) == (EffectClass.READ_ONLY, (), State.SUCCEEDED)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo no writing on fridays >&2; exit 2", "no writing on fridays"),
        (
            """echo '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not here"}}'""",
            "not here",
        ),
        ("""echo '{"decision": "block", "reason": "old words"}'""", "old words"),
    ],
)
async def test_tr_25_a_hook_that_refuses_keeps_the_call_from_starting(
    work: Path, body: str, words: str
) -> None:
    script(work, "guard.sh", body)
    given = settings(work, '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "./guard.sh"\n')
    (call,) = of(await played(given, work, SHELL), "shell")
    assert (call.state, call.reason) == (State.NOT_STARTED, "hook_refused")
    assert words in str(call.result) and effects(work) == []


async def test_tr_24_a_hook_that_changes_the_arguments_sends_the_call_back_in_its_new_form(
    work: Path,
) -> None:
    changed = json.dumps({"hookSpecificOutput": {"updatedInput": {"command": "echo other >> effects"}}})
    script(work, "edit.sh", f"echo '{changed}'")
    given = settings(work, '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "./edit.sh"\n')
    receipts = await played(given, work, SHELL)
    (call,) = of(receipts, "shell")
    assert effects(work) == ["other"] and "other" in call.arguments
    assert len(of(receipts, "hook")) == 2  # asked about the first form, and about its own


async def test_tr_24_a_hook_that_changes_it_again_and_again_is_unstable(work: Path) -> None:
    script(
        work,
        "edit.sh",
        "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n\n"
        """printf '{"hookSpecificOutput": {"updatedInput": {"command": "echo %s >> effects"}}}' "$n\"""",
    )
    given = settings(work, '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "./edit.sh"\n')
    (call,) = of(await played(given, work, SHELL), "shell")
    assert call.reason == "hook_unstable" and effects(work) == []


async def test_tr_25_a_hook_that_fails_in_its_own_way_holds_nothing_back(work: Path) -> None:
    script(work, "broken.sh", "exit 7")
    given = settings(work, '[[hooks.PreToolUse]]\ncommand = "./broken.sh"\n')
    receipts = await played(given, work, SHELL)
    (hook,) = of(receipts, "hook")
    assert (hook.state, hook.error_kind) == (State.FAILED, "exit_code")
    assert effects(work) == ["done"]


async def test_tr_25_a_hook_whose_time_is_over_is_unknown_and_its_call_does_not_start(work: Path) -> None:
    script(work, "hang.sh", "exec sleep 600")
    given = settings(work, '[[hooks.PreToolUse]]\ncommand = "./hang.sh"\ntimeout_seconds = 0.3\n')
    receipts = await played(given, work, SHELL)
    (call,), (hook,) = of(receipts, "shell"), of(receipts, "hook")
    assert (hook.state, hook.reason) == (State.UNKNOWN, "time_limit")
    assert (call.state, call.reason) == (State.NOT_STARTED, "hook_refused")
    assert hook.attempt_id in str(call.result) and effects(work) == []


async def test_tr_25_the_unknown_outcome_of_a_hook_fences_like_any_other(work: Path) -> None:
    script(work, "die.sh", "kill -9 $$")
    given = settings(work, '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "./die.sh"\n')
    receipts = await played(given, work, SHELL, WRITE)
    (hook,), (write,) = of(receipts, "hook"), of(receipts, "write")
    assert (hook.state, hook.reason) == (State.UNKNOWN, "process_signal")
    assert (write.state, write.reason) == (State.NOT_STARTED, "fenced")


async def test_tr_25_hooks_meet_the_tools_their_matcher_names_and_never_each_other(work: Path) -> None:
    script(work, "note.sh", "echo x >> noted")
    given = settings(work, '[[hooks.PreToolUse]]\nmatcher = "Write|Edit"\ncommand = "./note.sh"\n')
    receipts = await played(given, work, SHELL, WRITE)
    (hook,), (write,) = of(receipts, "hook"), of(receipts, "write")
    assert hook.parent_attempt_id == write.attempt_id and (work / "noted").read_text() == "x\n"


async def test_tr_25_the_tool_of_hooks_is_offered_to_nobody_and_no_name_reaches_it(work: Path) -> None:
    script(work, "note.sh", "echo x >> noted")
    given = settings(work, '[[hooks.PreToolUse]]\nmatcher = "Write"\ncommand = "./note.sh"\n')
    forged = {
        "event": "PreToolUse",
        "command": "touch forged",
        "call": "x",
        "timeout_seconds": 1,
        "call_reach": [],
    }
    (call,) = await played(given, work, {"name": "hook", "args": forged})
    assert (call.state, call.reason) == (State.NOT_STARTED, "tool_missing")
    assert not (work / "forged").exists() and "write" in str(call.result)
    assert "hook," not in str(call.result) and ", hook" not in str(call.result)


async def test_tr_25_nobody_is_asked_about_a_hook_and_the_call_is_asked_about_before_it(work: Path) -> None:
    script(work, "note.sh", "echo x >> noted")
    given = settings(work, '[[hooks.PreToolUse]]\ncommand = "./note.sh"\n', **{"permissions.mode": "dontAsk"})
    refused = await played(given, work, SHELL)
    assert of(refused, "shell")[0].reason == "permission_denied" and not (work / "noted").exists()
    allowed = await played(
        settings(
            work,
            '[[hooks.PreToolUse]]\ncommand = "./note.sh"\n',
            **{"permissions.mode": "dontAsk", "permissions.allow": ["Bash"]},
        ),
        work,
        SHELL,
    )
    assert of(allowed, "hook")[0].state is State.SUCCEEDED


async def test_tr_25_a_stop_ends_a_hook_and_the_call_never_starts(work: Path) -> None:
    script(work, "hang.sh", "echo $$ > pid; exec sleep 600")
    given = settings(work, '[[hooks.PreToolUse]]\ncommand = "./hang.sh"\n')
    model = PlayedModel([{"calls": [SHELL]}])
    async with open_app(given, directory=work, parts=Parts(model=model)) as app:
        controller = await app.session()
        turn = asyncio.create_task(controller.submit("Go."))
        pid = await asyncio.to_thread(until, lambda: said(work / "pid"))
        await controller.stop()
        await turn
        (call,) = [one for one in controller.session.book if one.tool != "hook"]
        assert call.state is State.NOT_STARTED and effects(work) == []
        await asyncio.to_thread(until, lambda: is_gone(int(pid)))


def said(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


async def test_tr_25_what_a_hook_was_given_is_not_kept(work: Path) -> None:
    script(work, "note.sh", "cat > /dev/null")
    given = settings(work, '[[hooks.PreToolUse]]\ncommand = "./note.sh"\n')
    (hook,) = of(await played(given, work, SHELL), "hook")
    kept = names_in(str((hook.process or {})["path"]))
    assert "exit" in kept and "hook-input" not in kept


def names_in(folder: str) -> set[str]:
    return {file.name for file in Path(folder).iterdir()}


AGENT = """
import asyncio, sys
from pathlib import Path
from surefoot.app import Parts, open_app
from surefoot.config import load_settings
from surefoot.testing.played import PlayedModel

home, work = sys.argv[1:]
flags = {"model": "demo/played", "permissions.mode": "bypassPermissions"}
settings = load_settings(flags, {"SUREFOOT_HOME": home, "PATH": "/usr/bin:/bin"}, Path(work))
model = PlayedModel([{"calls": [{"name": "shell", "args": {"command": "echo done >> effects"}}]}])

async def main():
    async with open_app(settings, directory=Path(work), parts=Parts(model=model)) as app:
        await (await app.session()).submit("Go.")

asyncio.run(main())
"""


async def test_tr_25_the_death_of_the_agent_inside_a_hook_leaves_a_hook_to_judge_and_a_call_that_never_started(
    work: Path,
) -> None:
    script(work, "slow.sh", "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; exit 7")
    given = settings(work, '[[hooks.PreToolUse]]\ncommand = "./slow.sh"\n')
    agent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", AGENT, str(given.places.settings_folder), str(work)
    )
    await asyncio.to_thread(until, lambda: said(work / "pid"))
    agent.kill()
    await agent.wait()
    async with open_app(given, directory=work, parts=Parts(model=PlayedModel([]))) as app:
        controller = await app.session(continue_newest=True)
        (call,) = of(list(controller.session.book), "shell") or [
            one for one in controller.session.book if one.asked_name == "shell"
        ]
        (hook,) = of(list(controller.session.book), "hook")
        assert (call.state, call.reason) == (State.NOT_STARTED, "owner_died_before_start")
        assert hook.state is State.UNKNOWN
        (work / "go").touch()  # it goes on without its agent, and tells its end to the next one
        # Its own end is not enough: the next owner reads what its supervisor wrote down about it.
        await asyncio.to_thread(until, lambda: "exit" in names_in(str((hook.process or {})["path"])))
    async with open_app(given, directory=work, parts=Parts(model=PlayedModel([]))) as app:
        controller = await app.session(continue_newest=True)
        (hook,) = of(list(controller.session.book), "hook")
        assert (hook.state, hook.error_kind) == (State.FAILED, "exit_code")
    assert effects(work) == []
