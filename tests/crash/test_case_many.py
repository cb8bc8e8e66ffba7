"""Cases whose point is how much a death left: hundreds of open writes over the sessions of one person."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from surefoot.app import open_app
from surefoot.core.model import State
from surefoot.testing.child import settings_of
from surefoot.testing.kills import Site

SESSIONS, WRITES = 44, 300
DIES_IN_ITS_WRITES = """
import asyncio, dataclasses, json, sys, threading
from pathlib import Path
from surefoot.app import Parts, open_app
from surefoot.core.model import Draft, Kind
from surefoot.runtime.live import Batch
from surefoot.testing.child import ChildSpec, settings_of
from surefoot.testing.rig import Crew

spec, sessions, writes = ChildSpec.read(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
entered, never = threading.Semaphore(0), threading.Event()

def hangs(tool):
    if tool.name != "write":
        return tool
    def body(live, arguments):
        if "-even" in arguments["path"]:
            tool.sync_body(live, arguments)
        entered.release()
        never.wait()
    return dataclasses.replace(tool, sync_body=body)

async def begin(app, number):
    controller = await app.session(new=True)
    crew = Crew(controller, None, None)
    await crew.session.append(Draft(Kind.USER, {"turnId": f"trn_{1:026d}", "text": "Write them."}))
    share = writes // sessions + (number < writes % sessions)
    asked = [("write", {"path": f"{number}-{n}-{'odd' if n % 2 else 'even'}.txt", "content": f"{n}", "mode": "append"})
             for n in range(share)]
    calls = await crew.dispatch(*asked)
    return [asyncio.ensure_future(crew.barrier.run(await crew.barrier.look(call), Batch())) for call in calls]

async def main():
    async with open_app(settings_of(spec), directory=Path(spec.directory), parts=Parts(each_tool=hangs)) as app:
        running = [task for number in range(sessions) for task in await begin(app, number)]
        async with asyncio.timeout(90):
            for _ in range(writes):
                while not entered.acquire(blocking=False):
                    await asyncio.sleep(0.005)
                    assert not any(task.done() for task in running), [t for t in running if t.done()]
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def die_in_the_middle(site: Site, tmp_path: Path) -> None:
    """One process opens every session, is in every write, and is killed there."""
    spec = tmp_path / "spec.json"
    spec.write_text(site.spec().to_json())
    command = [sys.executable, "-c", DIES_IN_ITS_WRITES, str(spec), str(SESSIONS), str(WRITES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=site.project) as child:
        assert child.stdout is not None
        said = child.stdout.readline()
        child.kill()
    assert said == b"ready\n"


def judged(receipt: Any, project: Path) -> bool:
    """Whether what was found of a write is what its file says."""
    path = project / json.loads(receipt.arguments)["path"]
    seen = receipt.inspection or {}
    there = seen.get("state") in ("present", "postcondition_satisfied")
    return receipt.state is State.UNKNOWN and bool(seen) and there is path.exists() is ("-even" in path.name)


async def test_case_b05_hundreds_of_open_writes_are_all_judged_by_their_files_and_every_session_goes_on(
    site: Site, tmp_path: Path
) -> None:
    die_in_the_middle(site, tmp_path)
    site.equipment.emulator.script([{"text": "Heard."}] * SESSIONS)
    async with open_app(settings_of(site.spec()), directory=site.project) as app:
        rows = await app.sessions()
        assert len(rows) == SESSIONS
        found = 0
        for row in rows:
            controller = await app.session(row.session_id)
            receipts = list(controller.session.book)
            found += len(receipts)
            assert all(judged(one, site.project) for one in receipts), receipts
            end: Any = await controller.submit("Go on.")
            assert end.text == "Heard.", end
        assert found == WRITES
    requests = site.equipment.emulator.requests()
    assert [one.status for one in requests] == [200] * SESSIONS
    shown = [one for request in requests for one in request.json()["messages"] if one["role"] == "tool"]
    assert len(shown) == WRITES and all(
        "its end is not known" in one["content"] or "proved" in one["content"] for one in shown
    )
