"""What a session worked with before, and what is told when an owner brings something else."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from surefoot.core.model import EffectClass, Kind
from surefoot.surfaces import notices
from surefoot.testing.rig import Crew, Rig, Setup
from surefoot.testing.simulation import Simulation, simulate

READ, ONCE = EffectClass.READ_ONLY, EffectClass.NON_IDEMPOTENT


def play(main: Callable[[Simulation], Coroutine[Any, Any, Any]], seed: int = 1) -> Any:
    return simulate(seed, main)


async def worked(rig: Rig, model: str, **tools: EffectClass) -> Crew:
    made = [rig.world.tool(name, effect) for name, effect in tools.items()]
    crew = await rig.own(Setup(tools=made, steps=[{"text": "ok"}] * 4))
    crew.controller.equipment.given = {"model": model, "contract": "compat-chat", "settings": None}
    return crew


def test_tr_183_ux_55_a_resume_names_what_is_otherwise_before_its_first_request_and_goes_on() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await worked(rig, "a/one", look=READ, pay=ONCE)
        assert (await first.turn()).status == "completed"
        assert not first.told("works_otherwise"), "a new session has nothing to compare with"
        await first.do(first.controller.close())
        second = await worked(rig, "a/two", look=ONCE, fetch=READ)
        asked: list[int] = []
        second.controller.subscribe(
            lambda notice: asked.append(len(second.model.asked)) if notice.kind == "works_otherwise" else None
        )
        assert (await second.turn("and now?")).status == "completed", "a difference is never an error"
        [told] = second.told("works_otherwise")
        assert [(one["what"], one["name"], one["old"], one["new"]) for one in told["changes"]] == [
            ("model", None, "a/one", "a/two"),
            ("tool", "fetch", None, "READ_ONLY"),
            ("tool", "look", "READ_ONLY", "NON_IDEMPOTENT"),
            ("tool", "pay", "NON_IDEMPOTENT", None),
        ]
        assert asked == [0], "before the first request"
        for language in ("en", "zh-Hans", "zh-Hant"):
            line = str(notices.line("works_otherwise", told, language))
            assert all(word in line for word in ("a/one", "a/two", "fetch", "NON_IDEMPOTENT", "pay"))
        await second.turn("once more")
        assert len(second.told("works_otherwise")) == 1

    play(main)


def test_tr_183_the_same_equipment_is_recorded_once_and_nothing_is_told() -> None:
    async def main(sim: Simulation) -> None:
        rig = Rig(sim)
        first = await worked(rig, "a/one", look=READ)
        await first.turn()
        await first.do(first.controller.close())
        second = await worked(rig, "a/one", look=READ)
        await second.turn("again")
        assert not second.told("works_otherwise") and not second.controller.resume()["changes"]
        recorded = [one for one in await second.entries(Kind.TURN) if "with" in one.payload]
        assert len(recorded) == 1

    play(main)
