"""One recovery, the same words everywhere: which incident a form without an id means, and what guidance is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from surefoot.errors import UsageError
from surefoot.surfaces import incident_card
from surefoot.surfaces.chat_lines import recovery_words, typed
from surefoot.surfaces.cli import chatting, recovering
from surefoot.surfaces.words import LANGUAGES
from surefoot.surfaces.words_chat import SLASH

GUIDANCE = [
    "",
    "go on",
    "/new please",
    "!rm -rf x",
    "first line\n\n  second line\n/quit",
    "  indented, with two spaces at its end  ",
    "inc_ is no id here? inc_2",
]


class Controller:
    """A session whose newest incident changes, and that notes what it is asked to recover."""

    def __init__(self, newest: str) -> None:
        self.asked: list[tuple[str | None, str]] = []
        self.incidents = SimpleNamespace(records=SimpleNamespace(newest=SimpleNamespace(id=newest)))

    async def recover_context(self, named: str | None, guidance: str) -> Any:
        self.asked.append((named, guidance))
        return SimpleNamespace(turn_id="trn_1")


def driver(controller: Controller | None) -> Any:
    wish: Any = SimpleNamespace(look=SimpleNamespace(language="en"))
    return chatting._Driver(wish, "m", "default", SimpleNamespace(controller=controller, app=None))  # type: ignore[arg-type]


async def test_ux_126_a_line_without_an_id_means_the_incident_that_was_pending_when_it_was_typed() -> None:
    controller = Controller("inc_first")
    typed_now = driver(controller).go_on("please")
    controller.incidents.records.newest = SimpleNamespace(id="inc_later")
    await typed_now
    await driver(controller).go_on("inc_named and words")
    assert controller.asked == [("inc_first", "please"), ("inc_named", "and words")]


@pytest.mark.parametrize("guidance", GUIDANCE[:-1])
@pytest.mark.parametrize("named", [None, "inc_0abc"])
def test_ux_126_guidance_keeps_its_line_breaks_and_is_never_a_command(
    guidance: str, named: str | None
) -> None:
    for gap in (" ", "\n"):
        if gap == "\n" and not guidance:
            continue
        rest = guidance if named is None else named + gap + guidance if guidance else named
        meant = typed("/recover-context" + (gap + rest if rest else ""))
        assert (meant.kind, meant.word) == ("command", "/recover-context")
        assert recovery_words(meant.rest) == (named, guidance)


def test_ux_126_the_command_line_means_the_same_by_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    async def noted(*given: Any, **more: Any) -> int:
        seen.append(given)
        return 0

    monkeypatch.setattr(recovering, "_recover", noted)
    for words in (
        ["inc_1", "a\nb"],
        ["a\nb"],
        ["inc_1", "--guidance", "a\nb"],
        ["--guidance", "a\nb"],
        ["/new"],
    ):
        assert CliRunner().invoke(recovering.recover_context, words, catch_exceptions=False).exit_code == 0
    assert seen == [
        ("inc_1", "a\nb", None), (None, "a\nb", None), ("inc_1", "a\nb", None), (None, "a\nb", None),
        (None, "/new", None),
    ]  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_ux_126_every_card_names_the_same_two_ways_and_the_help_has_them(language: str) -> None:
    card = {"kind": "upstream_reason_missing", "status": 400, "offered": True, "changes": {}, "ways": []}
    text = "\n".join(incident_card.lines(card, language))
    assert "/recover-context" in text and "surefoot recover context" in text
    assert "/recover-context" in SLASH


def test_ux_126_before_the_first_word_there_is_nothing_to_recover_and_that_is_said() -> None:
    with pytest.raises(UsageError):
        asyncio.run(driver(None).go_on("words"))
