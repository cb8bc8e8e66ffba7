"""Light Markdown for a terminal that may be coloured: headings, emphasis, code, bullets. Pure.

Owns: which marks of a model's text become bold, dim or coloured. Does not own: the gutter
and cleaning (`chat_lines`, `view`), whether colour may be written (`plain`).

The text comes in cleaned; what this adds are the only escapes of a line, and each line ends
them again. Where styles are off, nothing here is called and the text stays as it came.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from surefoot.surfaces.plain import wrap

BOLD, DIM, CODE, GREEN, RED = "1", "2", "36", "32", "31"
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_BULLET = re.compile(r"(\s*)[-*+]\s+(.*)")
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"`([^`]+)`"), CODE),
    (re.compile(r"\*\*([^*\s](?:[^*]*[^*\s])?)\*\*"), BOLD),
    (re.compile(r"__([^_\s](?:[^_]*[^_\s])?)__"), BOLD),
)


def styled(text: str, style: str) -> str:
    """`text` in a style of the terminal, ended again."""
    return f"\x1b[{style}m{text}\x1b[0m" if text else text


@dataclass(slots=True)
class Light:
    """The lines of one stream; remembers whether a code block is open."""

    fenced: bool = False

    def lines(self, part: str, room: int) -> list[str]:
        """One line of text as lines of at most `room` columns."""
        if part.lstrip().startswith("```"):
            self.fenced = not self.fenced
            return [styled(line, DIM) for line in wrap(part, room)]
        if self.fenced:
            return [styled(line, CODE) for line in wrap(part, room)]
        heading = _HEADING.fullmatch(part)
        if heading:
            return [styled(line, BOLD) for line in wrap(heading.group(1), room)]
        bullet = _BULLET.fullmatch(part)
        if bullet:
            first, *rest = wrap(bullet.group(2), max(10, room - len(bullet.group(1)) - 2))
            indent = bullet.group(1)
            return [f"{indent}• {_inline(first)}", *(f"{indent}  {_inline(line)}" for line in rest)]
        return [_inline(line) for line in wrap(part, room)]


def _inline(line: str) -> str:
    for pattern, style in _INLINE:
        line = pattern.sub(_in(style), line)
    return line


def _in(style: str) -> Callable[[re.Match[str]], str]:
    return lambda found: styled(found.group(1), style)


def diff_line(line: str) -> str:
    """A line of a unified diff in its colour."""
    style = {"+": GREEN, "-": RED, "@": DIM}.get(line[:1])
    return styled(line, style) if style else line
