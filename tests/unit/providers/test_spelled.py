"""Calls written as text: which marks count, and which words only speak about them."""

from __future__ import annotations

import pytest

from surefoot.providers.spelled import spells_a_call


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{}</tool_call>",
        "Let me see.\n<minimax:tool_call><invoke name='read'></invoke></minimax:tool_call>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function",
        "<|python_tag|>read(path='a')",
        '[TOOL_CALLS][{"name": "read"}]',
        "<function=read>{}</function>",
        "<function_calls><invoke name='read'>",
    ],
)
def test_case_s22_markup_of_calls_is_seen(text: str) -> None:
    assert spells_a_call(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I would call the tool read.",
        "The server wraps it in `<tool_call>`.",
        "```xml\n<tool_call>{}</tool_call>\n```",
        "```\n<tool_call>{} never closed",
        "a <function> of x, and [tool_calls] in lower case",
    ],
)
def test_case_s22_words_about_calls_are_none(text: str) -> None:
    assert not spells_a_call(text)
