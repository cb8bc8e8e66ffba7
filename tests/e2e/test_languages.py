"""Help, mistakes and the doctor in the language of the person, whichever way it was chosen."""

from __future__ import annotations

import json
import re

from cli_world import World

HAN = re.compile(r"[\u4e00-\u9fff]")


def test_ux_11_help_is_told_in_the_language_of_the_settings_file_and_fits_the_screen(world: World) -> None:
    (world.home / "sf").mkdir()
    (world.home / "sf/config.toml").write_text('language = "zh-Hans"\n[recovery]\nbarrier = "reach"\n')
    world.more["COLUMNS"] = "80"
    told = world.run("--help").stdout
    assert "用法：surefoot" in told and "选项:" in told and "命令:" in told
    plain = re.sub(r"(?m)^  -.*|^Usage.*", "", told)
    assert all(HAN.search(line) or not re.search(r"[a-z]{4,} [a-z]{3,}", line) for line in plain.splitlines())
    assert all(len(line) + len(HAN.findall(line)) <= 80 for line in told.splitlines())


def test_ux_11_help_of_a_command_and_its_verbs_follows_the_locale(world: World) -> None:
    world.more["LC_MESSAGES"] = (
        "zh_TW.UTF-8"  # as LC_ALL it decides how an interpreter reads its own paths too
    )
    told = world.run("recover", "--help").stdout
    assert "顯示這段說明並退出。" in told and "list" in told
    assert not re.search(r"(?m)^  [a-z-]+  +[A-Z]", told)


def test_ux_11_a_mistake_keeps_its_code_and_its_command_and_is_told_in_words_of_the_person(
    world: World,
) -> None:
    world.more["LC_MESSAGES"] = "zh_CN.UTF-8"
    done = world.run("recover", "show", "nobody")
    assert done.stderr.startswith(
        "SF-NOT-FOUND: 这里没有名为 'nobody' 的东西。\n下一步：surefoot recover list --all"
    )
    done = world.run("session", "list", "--nope")
    assert done.returncode == 2
    assert done.stderr == "SF-USAGE: 没有选项 '--nope'。\n下一步：surefoot session list --help\n"


def test_ux_11_the_doctor_speaks_and_its_json_does_not_change(world: World) -> None:
    world.more["LANG"] = "zh_CN.UTF-8"
    spoken = world.run("doctor").stdout
    assert "链和见证一致" in spoken and "总体：" in spoken
    document = json.loads(world.run("doctor", "--json").stdout)
    assert document["checks"]["ledger.chain"]["summary"] == "chain and witness agree"
    assert set(document) == {"schema_version", "overall", "checks"}
