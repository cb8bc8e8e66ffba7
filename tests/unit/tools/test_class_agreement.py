"""The class of a call means the same to registry, ladder, recovery and results, for every tool and example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.admission import costs_code
from surefoot.core.effects import UNDECLARED, Effect, retry_safe
from surefoot.core.ladder import Budget, climbs
from surefoot.core.model import Action, Decision, EffectClass, EffectTrace, ExecutorState, Receipt, State
from surefoot.core.recovery import Facts, decide
from surefoot.core.results import may_have_left_something
from surefoot.errors import UsageError
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Registry, Tool, classify
from surefoot.tools.ask import ask_tool
from surefoot.tools.classify.exits import exit_meaning
from surefoot.tools.classify.http import classify_http
from surefoot.tools.classify.shell import classify_shell
from surefoot.tools.classify.sql import classify_sql
from surefoot.tools.files.toolset import file_tools
from surefoot.tools.packs.judging import Judges, judge, with_packs
from surefoot.tools.packs.reading import Pack, PackEntry, find_pack, read_pack
from surefoot.tools.processes.background import background_tool
from surefoot.tools.recovery_tool import recovery_tool
from surefoot.tools.shell import shell_tool
from surefoot.tools.todo import todo_tool

PLACE = Place(Path("/w"), (Path("/w"),), work_tree=Path("/w"), remotes={"origin": "host.example/o/n"})
CORPUS = Path(__file__).parent / "classify" / "corpus.tsv"
COMMANDS = [row.split("\t", 1)[1].replace("␊", "\n") for row in CORPUS.read_text("utf-8").splitlines()[1:]]
JUDGES = Judges(shell=lambda command, place: classify_shell(command, place).effect)
BUILT_IN = (*file_tools(), shell_tool(), background_tool(), ask_tool(), todo_tool(), recovery_tool())
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {},
    {"path": "a", "content": "x"},
    {"path": "a", "content": "x", "append": True, "mode": "append"},
    {"path": "a", "source": "a", "target": "b", "destination": "b"},
    {"action": "stop", "attempt": "att_1"},
    {"action": "list"},
    {"path": "a", "old": "x", "new": "y", "edits": []},
)


def effects() -> Iterator[tuple[str, Effect]]:
    """Every registered tool with several arguments, every entry of the shipped pack, every example."""
    for tool in BUILT_IN:
        for arguments in ARGUMENTS:
            yield f"{tool.name} {arguments}", classify(tool, arguments, PLACE)
    pack = find_pack("android-guru")
    for entry in pack.entries.values():
        for arguments in ARGUMENTS:
            yield f"{entry.name} {arguments}", judge(entry, arguments, PLACE, JUDGES)
    shell = shell_tool()
    for command in COMMANDS:
        yield command, classify(shell, {"command": command}, PLACE)


def verdicts(effect: Effect) -> dict[str, bool]:
    """What each part of the house makes of one call: may it be run again by itself?"""
    common: dict[str, Any] = {
        "effect_class": effect.effect_class,
        "reach": effect.reach,
        "effect_trace": EffectTrace.POSSIBLE,
    }
    failed = Receipt("ses", "trn", "cal", "att", 0, state=State.FAILED, **common)
    unknown = Receipt("ses", "trn", "cal", "att", 0, state=State.UNKNOWN, reason="time_limit", **common)
    ended, budget = ExecutorState.ENDED, Budget()
    facts = Facts(State.UNKNOWN, effect_class=effect.effect_class, executor=ended, young=True)
    return {
        "effects": retry_safe(effect),
        "ladder after a failure": climbs([failed], transient=True, executor=ended, budget=budget) is not None,
        "ladder after an unknown": climbs([unknown], transient=False, executor=ended, budget=budget)
        is not None,
        "recovery": decide(facts).decision is Decision.RETRY,
        "results": not may_have_left_something(failed),
        "admission": not costs_code(Action.RELEASE, effect.effect_class, {}, ended),
        "exits": exit_meaning(effect.effect_class, 143, None)[0] is State.FAILED,
    }


def test_ec_52_ladder_recovery_and_results_agree_for_every_tool_and_every_example() -> None:
    count = 0
    for name, effect in effects():
        safe = effect.effect_class in (EffectClass.READ_ONLY, EffectClass.IDEMPOTENT_WRITE)
        assert set(verdicts(effect).values()) == {safe}, (name, effect, verdicts(effect))
        count += 1
    assert count > 2000


def test_ec_52_nothing_but_the_class_carries_the_word() -> None:
    for kind in (Tool, Effect, Receipt, PackEntry):
        assert not [field.name for field in fields(kind) if "retry" in field.name or "safe" in field.name]
    with pytest.raises(AttributeError):
        EffectClass.UNKNOWN.retry_safe = True  # type: ignore[misc]


def a_tool(effect: Any = UNDECLARED, name: str = "act") -> Tool:
    async def body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        return Outcome("")

    return Tool(name=name, description="", parameters={"type": "object"}, body=body, effect=effect)


def test_ec_33_a_strict_registry_refuses_a_tool_without_class() -> None:
    with pytest.raises(UsageError, match="'act' declares no effect class; set `effect`"):
        Registry([a_tool()], strict=True)
    said_unknown = a_tool(Effect(EffectClass.UNKNOWN, ("*",)))
    computed = a_tool(lambda arguments, place: UNDECLARED, "computed")
    assert Registry([said_unknown, computed], strict=True).names() == ["act", "computed"]
    assert Registry(BUILT_IN, strict=True).without_class() == []


def test_ec_33_otherwise_it_is_unknown_everywhere_and_listed() -> None:
    registry = Registry([a_tool(), a_tool(Effect(EffectClass.READ_ONLY), "look")])
    assert registry.without_class() == ["act"]
    assert classify(a_tool(), {}, PLACE) == Effect(EffectClass.UNKNOWN, ("*",))


def project_pack(body: str) -> Pack:
    text = 'format = 1\n[pack]\nname = "p"\nversion = "1"\n' + body
    return read_pack(text.encode(), where="p.toml", source="project")


@pytest.mark.parametrize("declared", list(EffectClass))
@pytest.mark.parametrize("claimed", list(EffectClass))
@pytest.mark.parametrize("interaction", [False, True])
def test_ec_8_a_pack_of_the_project_never_loosens(
    declared: EffectClass, claimed: EffectClass, interaction: bool
) -> None:
    words = f'[tool.act]\nclass = "{claimed}"\ncheck = true\ninteraction = {str(interaction).lower()}'
    reach = () if declared is EffectClass.READ_ONLY else ("path:/w/a",)
    judged = classify(with_packs(a_tool(Effect(declared, reach)), [project_pack(words)], JUDGES), {}, PLACE)
    assert judged.effect_class.strictness == max(declared.strictness, claimed.strictness)
    assert set(reach) <= set(judged.reach) or judged.reach == ("*",)
    assert (judged.check, judged.interaction) == (False, False)


@pytest.mark.parametrize("declared", [EffectClass.NON_IDEMPOTENT, EffectClass.UNKNOWN])
def test_ec_8_nothing_in_the_arguments_of_a_model_loosens(declared: EffectClass) -> None:
    tool = a_tool(Effect(declared, ("*",)))
    for word in ("class", "effect", "effect_class", "readOnlyHint", "retry_safe", "interaction"):
        assert classify(tool, {word: "READ_ONLY"}, PLACE).effect_class is declared


DELETING = [
    *(
        "rm a",
        "rm -rf build",
        "rmdir a",
        "find . -delete",
        "git branch -D x",
        "git tag -d v1",
        "git clean -fd",
    ),
    *("git push origin --delete x", "kubectl delete pod a", "docker rm a", "docker volume rm a", "mv a b"),
    *(
        "psql -c 'delete from t'",
        "psql -c 'drop table t'",
        "curl -X DELETE https://h.example/x",
        "npm uninstall x",
    ),
]


@pytest.mark.parametrize("command", DELETING)
def test_ec_10_deleting_twice_may_destroy_what_came_between(command: str) -> None:
    """However harmless a second deletion looks, and however grave a convergent write may be."""
    assert classify_shell(command, PLACE).effect.effect_class is EffectClass.NON_IDEMPOTENT


def test_ec_10_the_class_is_about_repeating_and_not_about_gravity() -> None:
    (delete,) = (tool for tool in BUILT_IN if tool.name == "delete")
    assert classify(delete, {"path": "a"}, PLACE).effect_class is EffectClass.NON_IDEMPOTENT
    assert (
        classify_http("DELETE", {}, False, "https://h.example/x").effect_class is EffectClass.NON_IDEMPOTENT
    )
    assert classify_sql("truncate t").effect_class is EffectClass.NON_IDEMPOTENT
    grave = ("chmod 000 a", "echo x > a", "kubectl scale deploy/web --replicas=0")
    assert {classify_shell(line, PLACE).effect.effect_class for line in grave} == {
        EffectClass.IDEMPOTENT_WRITE
    }
