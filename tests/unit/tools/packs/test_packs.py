"""Packs as data: what they say of a call, and that they agree with the registry both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from surefoot.core.effects import UNDECLARED, Effect
from surefoot.core.model import EffectClass
from surefoot.errors import SettingsError
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Place, Tool, classify
from surefoot.tools.classify.shell import classify_shell
from surefoot.tools.packs.checking import check, count
from surefoot.tools.packs.judging import Judges, judge, with_packs
from surefoot.tools.packs.reading import Pack, find_pack, read_pack, shipped_packs

PLACE = Place(directory=Path("/srv/project"), roots=(Path("/srv/project"),))
JUDGES = Judges(
    shell=lambda command, place: classify_shell(command, place).effect,
    mcp=lambda arguments: Effect(EffectClass.NON_IDEMPOTENT, ("mcp:forge",)),
)
GURU = find_pack("android-guru")
RO, IW, NI, UN = EffectClass


def says(tool: str, /, **arguments: Any) -> Effect:
    (entry,) = GURU.named(tool)
    return judge(entry, arguments, PLACE, JUDGES)


def a_tool(name: str, effect: Any = UNDECLARED) -> Tool:
    async def body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        return Outcome("")

    return Tool(name=name, description="", parameters={"type": "object"}, body=body, effect=effect)


def pack_of(text: str, source: str = "owner") -> Pack:
    return read_pack(
        ('format = 1\n[pack]\nname = "p"\nversion = "1"\n' + text).encode(), where="p.toml", source=source
    )


def test_ec_55_the_android_guru_pack_has_the_numbers_it_declares() -> None:
    assert shipped_packs() == ["android-guru"]
    assert count(GURU) == {
        "entries": 112,
        "registered": 80,
        "published": 96,
        "published_by_class": {"READ_ONLY": 50, "IDEMPOTENT_WRITE": 12, "NON_IDEMPOTENT": 29, "UNKNOWN": 5},
        "registered_and_published": 64,
        "registered_and_published_by_class": {
            "READ_ONLY": 34,
            "IDEMPOTENT_WRITE": 7,
            "NON_IDEMPOTENT": 20,
            "UNKNOWN": 3,
        },
        "registered_only": 16,
        "defined_only": 11,
        "words": 21,
    }


CORRECTIONS: list[tuple[str, EffectClass, list[tuple[dict[str, Any], EffectClass]]]] = [
    ("write_file", IW, [({"path": "a", "mode": "append"}, NI), ({"path": "a"}, IW)]),
    ("copy_move_file", NI, [({"action": "copy", "dest": "b"}, IW), ({"action": "move"}, NI)]),
    ("download_file", IW, [({"directory": "d"}, NI), ({"directory": "d", "filename": "f"}, IW)]),
    ("clipboard", NI, [({"action": "read"}, RO), ({"action": "write"}, IW)]),
    ("get_set_settings", IW, [({"action": "get"}, RO), ({"action": "set"}, IW)]),
    (
        "control_media",
        NI,
        [({"action": "volume"}, IW), ({"action": "brightness"}, IW), ({"action": "next"}, NI)],
    ),
    (
        "http_request",
        UN,
        [({"method": "put", "url": "https://h.example/x"}, IW), ({}, RO), ({"method": "POST"}, UN)],
    ),
    ("shell_execute", UN, [({"command": "ls -la"}, RO), ({"command": "rm a"}, NI)]),
    ("mcp_call", UN, [({"tool": "create"}, NI)]),
    ("github_write_file", IW, [({}, NI)]),
    ("logcat", RO, [({"clear": True}, NI), ({}, RO)]),
    ("screenshot", RO, [({"path": "a.png"}, IW)]),
    ("browser_show", RO, [({}, IW)]),
    ("browser_navigate", IW, [({"new_tab": True}, NI), ({"url": "https://h.example"}, IW)]),
]


@pytest.mark.parametrize(("tool", "published", "cases"), CORRECTIONS, ids=[row[0] for row in CORRECTIONS])
def test_ec_55_each_correction_of_the_published_table(
    tool: str, published: EffectClass, cases: list[tuple[dict[str, Any], EffectClass]]
) -> None:
    assert GURU.published_class(tool) is published
    for arguments, effect_class in cases:
        assert says(tool, **arguments).effect_class is effect_class, arguments


def test_ec_55_no_other_entry_differs_from_the_published_table_when_no_rule_applies() -> None:
    corrected = {row[0] for row in CORRECTIONS}
    differing = {
        entry.name
        for entry in GURU.entries.values()
        if entry.published is not None and entry.kind != "word" and entry.published is not entry.effect_class
    }
    assert differing <= corrected


def test_ec_56_the_dotted_terminal_tools_were_unpublished_and_only_looking_is_a_read() -> None:
    dotted = [entry for entry in GURU.entries.values() if entry.name.startswith("terminal.")]
    assert len(dotted) == 16
    assert all(GURU.published_class(entry.name) is None for entry in dotted)
    reads = {entry.name for entry in dotted if entry.effect_class is RO}
    assert {"terminal.observe", "terminal.wait", "terminal.snapshot", "terminal.backends"} <= reads
    assert GURU.entries["terminal.run"].effect_class is UN


def test_ec_36_rules_are_tried_in_order_and_an_unreadable_argument_gives_unknown() -> None:
    pack = pack_of(
        '[tool.t]\nclass = "READ_ONLY"\nreach = ["path:{p}"]\nrules = ['
        '{ arg = "mode", in = ["a", "b"], fold = true, class = "NON_IDEMPOTENT" },'
        '{ arg = "headers", any_key = ["X-Do"], fold = true, class = "UNKNOWN" },'
        '{ arg = "body", present = true, class = "IDEMPOTENT_WRITE" } ]'
    )
    (entry,) = pack.named("t")

    def of(**arguments: Any) -> Effect:
        return judge(entry, arguments, PLACE, JUDGES)

    assert of(mode="A", body="x", p="f").effect_class is NI
    assert of(headers={"x-do": "1"}, p="f").effect_class is UN
    assert of(body="x", p="f") == Effect(IW, ("path:/srv/project/f",))
    assert of(p="f") == Effect(RO, ())
    assert of(mode=7) == Effect(UN, ("*",), notes=("pack_argument_unreadable",))


def test_ec_37_reach_takes_arguments_and_hosts_and_what_is_missing_widens_to_everything() -> None:
    assert says("write_file", path="a/../b", mode="append").reach == ("path:/srv/project/b",)
    assert says("http_request", method="PUT", url="https://h.example:8443/x").reach == ("host:h.example",)
    assert says("write_file", mode="append").reach == ("*",)
    assert says("write_file", path=7, mode="append").reach == ("*",)


def test_ec_38_a_project_pack_only_tightens_and_the_stricter_answer_holds() -> None:
    loose = pack_of('[tool.t]\nclass = "READ_ONLY"', source="project")
    strict = pack_of('[tool.t]\nclass = "NON_IDEMPOTENT"\nreach = ["host:h.example"]', source="project")
    shipped = pack_of('[tool.t]\nclass = "IDEMPOTENT_WRITE"\nreach = ["path:/a"]', source="shipped")
    owner = pack_of('[tool.t]\nclass = "READ_ONLY"')

    def of(tool: Tool, *packs: Pack) -> Effect:
        return classify(with_packs(tool, packs, JUDGES), {}, PLACE)

    assert of(a_tool("t"), loose).effect_class is UN
    assert of(a_tool("t"), shipped) == Effect(IW, ("path:/a",))
    assert of(a_tool("t"), shipped, loose).effect_class is IW
    assert of(a_tool("t"), shipped, strict) == Effect(NI, ("host:h.example", "path:/a"))
    declared = a_tool("t", Effect(NI, ("path:/b",)))
    assert of(declared, shipped) == Effect(NI, ("path:/a", "path:/b"))
    assert of(declared, shipped, owner) == Effect(RO, ()), "the owner's own entry replaces the others"
    assert of(declared, owner, strict) == Effect(NI, ("host:h.example",)), "and a project still tightens"
    assert with_packs(a_tool("other"), [shipped], JUDGES).effect is UNDECLARED


def test_ec_11_a_kind_of_reach_is_known_to_every_tool_unless_only_a_project_names_it() -> None:
    app, door = (
        pack_of(f'reach_kinds = ["{kind}"]\n[tool.t]\nclass = "UNKNOWN"', source=source)
        for kind, source in (("app", "shipped"), ("door", "project"))
    )
    assert with_packs(a_tool("t"), [app, door], JUDGES).reach_kinds == {"app"}
    assert with_packs(a_tool("other"), [app, door], JUDGES).reach_kinds == {"app"}
    assert GURU.reach_kinds == ("device",)


def test_ec_40_a_word_stays_unknown_for_a_tool_that_takes_its_name() -> None:
    assert says("json_format") == UNDECLARED
    assert GURU.published_class("json_format") is RO


def test_ec_39_and_ec_54_registry_and_packs_are_compared_in_both_directions() -> None:
    pack = pack_of(
        '[tool."a.b"]\nclass = "NON_IDEMPOTENT"\naliases = ["a_b"]\n'
        '[tool.a_b]\nclass = "READ_ONLY"\n[tool.gone]\nclass = "READ_ONLY"\nregistered = true\n'
    )
    found = {(one.code, one.subject) for one in check([a_tool("nameless"), a_tool("a_b")], [pack])}
    assert found == {
        ("tool_without_class", "nameless"),
        ("entry_without_tool", "gone"),
        ("alias_conflict", "a.b"),
    }
    effect = classify(with_packs(a_tool("a_b"), [pack], JUDGES), {}, PLACE)
    assert effect.effect_class is NI, "the stricter of name and alias holds"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("format = 2\n[pack]\nname = 'p'", "format"),
        ("[pack]\nname = 'p'", "format"),
        ("format = 1\n[tool.t]\nclass = 'MAYBE'\n[pack]\nname='p'", "tool.t.class"),
        ("format = 1\n[pack]\nname='p'\n[tool.t]\nclass='UNKNOWN'\nreach=['moon:x']", "tool.t.reach"),
        ("format = 1\n[pack]\nname='p'\n[tool.t]\nclass='UNKNOWN'\nrules=[{arg='a'}]", "tool.t.rules[0]"),
        ("format = ", "TOML"),
    ],
)
def test_ec_35_a_malformed_or_newer_pack_is_left_out_whole_and_the_place_is_named(
    text: str, where: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        read_pack(text.encode(), where="mine.toml")
    assert where in str(refused.value)
    assert "mine.toml" in str(refused.value)


def test_ec_35_a_pack_above_its_bound_is_refused_and_unknown_keys_are_reported() -> None:
    with pytest.raises(SettingsError):
        read_pack(b"#" * ((1 << 20) + 1), where="big.toml")
    pack = pack_of('[tool.t]\nclass = "READ_ONLY"\ncolour = "red"')
    assert pack.unknown_keys == ("tool.t.colour",)
    assert [one.code for one in check([a_tool("t")], [pack]) if not one.fails] == ["unknown_key"]
