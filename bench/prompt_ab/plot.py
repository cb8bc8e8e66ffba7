"""Pure. Success of both prompts with its interval, cell by cell, as SVG.

Owns: the drawing. Does not own: the numbers. Nothing is loaded from anywhere; it reads on light and dark ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from bench.prompt_ab.gate import wilson
from bench.prompt_ab.summary import Cell

LEFT, WIDTH, ROW, TOP = 150, 420, 22, 64
COLOURS = {"base": "#8a6d3b", "candidate": "#1f6f8b"}


def plot(cells: Sequence[Cell], title: str) -> str:
    """One line for each cell: a dot for the share of successes, a bar for its 95 % interval."""
    height = TOP + ROW * len(cells) + 40
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 150}" height="{height}" '
        f'viewBox="0 0 {LEFT + WIDTH + 150} {height}" font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="12" y="22" font-size="14" fill="#222">{escape(title)}</text>',
        '<text x="12" y="42" fill="#555">share of successful trials, Wilson 95 % interval</text>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = LEFT + share * WIDTH
        drawn.append(f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{height - 30}" stroke="#ddd"/>')
        drawn.append(f'<text x="{x}" y="{height - 14}" text-anchor="middle" fill="#555">{share:.0%}</text>')
    for number, cell in enumerate(cells):
        drawn += _row(cell, TOP + ROW * number + ROW / 2)
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _row(cell: Cell, y: float) -> list[str]:
    colour, name = COLOURS.get(cell.arm, "#444"), f"{cell.effort} / {cell.task} / {cell.arm}"
    label = f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end" fill="{colour}">{escape(name)}</text>'
    if not cell.trials:
        return [label, f'<text x="{LEFT + 6}" y="{y + 4}" fill="#999">not measured</text>']
    low, high = wilson(cell.successes, cell.trials)
    dot, start, end = (LEFT + share * WIDTH for share in (cell.successes / cell.trials, low, high))
    return [
        label,
        f'<line x1="{start:.1f}" y1="{y}" x2="{end:.1f}" y2="{y}" stroke="{colour}" stroke-width="2"/>',
        f'<circle cx="{dot:.1f}" cy="{y}" r="4" fill="{colour}"/>',
        f'<text x="{LEFT + WIDTH + 12}" y="{y + 4}" fill="#222">{cell.successes}/{cell.trials}</text>',
    ]
