"""Pictures of a run as SVG: the twins of `pictures` with pattern, mark and label per bar (UX-133). Pure.

Owns: how run strip and timeline are drawn as SVG, in two themes, with ids of their own.
Does not own: the facts and the text twins (`pictures`), the words (`words`).

States are told apart by mark, pattern and label, so that one colour is enough. Every text is
escaped and cleaned; nothing outside the picture is referred to.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

from surefoot.core.canonical import digest_text, short_id
from surefoot.surfaces.pictures import Bar, Fold, Run, lane_name, reach_of, strip_cells
from surefoot.surfaces.plain import cut, width_of
from surefoot.surfaces.view import Clock, age, clean, is_told_open, local_time
from surefoot.surfaces.words import mark, say, state_words

THEMES: Mapping[str, tuple[str, str, str]] = {
    "light": ("#ffffff", "#1a1a1a", "#5a5a5a"),
    "dark": ("#14171a", "#f2f2f2", "#b4b4b4"),
}
"""Background, ink, quiet ink. One ink is enough: nothing is told by colour alone."""
ROW, TOP, BAR, LETTER = 26, 34, 16, 7.2


def timeline_svg(
    run: Run, language: str, *, width: int = 960, theme: str = "light", clock: Clock = local_time
) -> str:
    """Lanes over one axis; a death is a torn edge across all of them, an open call has no right end."""
    about = _about(run, language, clock)
    lanes = run.lanes
    left = 16 + int(max((width_of(lane_name(lane, language)) for lane in lanes), default=0) * LETTER)
    height = TOP + ROW * max(1, len(lanes)) + 30
    drawing = _Drawing("timeline", run, theme, width, height)
    whole = max(1, run.shown_ms(run.end_ms))

    def place(at_ms: int) -> float:
        return left + run.shown_ms(at_ms) * (width - left - 24) / whole

    for row, lane in enumerate(lanes):
        top = TOP + ROW * row
        drawing.text(8, top + 13, lane_name(lane, language), quiet=True)
        for bar in (bar for bar in run.bars if bar.lane == lane):
            first, last = place(bar.start_ms), place(reach_of(bar, run))
            drawing.bar(bar, (first, max(last, first + 3)), top, _named(bar, language))
    for fold in run.folds:
        _fold(drawing, fold, place(fold.start_ms), height, language)
    if not run.bars:
        drawing.text(8, TOP + 13, say("nothing_ran", language))
    drawing.text(left, height - 8, clock(run.start_ms), quiet=True)
    drawing.text(width - 72, height - 8, clock(run.end_ms), quiet=True)
    return drawing.whole(*about)


def strip_svg(run: Run, language: str, *, theme: str = "light", clock: Clock = local_time) -> str:
    """One cell per call in order, `┊` for a death; at most 60 cells."""
    hidden, cells = strip_cells(run)
    drawing = _Drawing("strip", run, theme, 40 + 14 * (len(cells) + (4 if hidden else 0)), 40)
    at = 12
    if hidden:
        drawing.text(at, 26, f"+{hidden}", quiet=True)
        at += 56
    for key in cells:
        drawing.text(at, 26, "┊" if key is None else mark(key))
        at += 14
    return drawing.whole(
        say("picture_strip", language, session=short_id(run.session_id), calls=len(run.calls)),
        _about(run, language, clock)[1],
    )


def _about(run: Run, language: str, clock: Clock) -> tuple[str, str]:
    opened = sum(is_told_open(bar.key) for bar in run.bars)
    title = say(
        "timeline_head",
        language,
        session=short_id(run.session_id),
        start=clock(run.start_ms),
        end=clock(run.end_ms),
    )
    return title, say("picture_about", language, open=opened)


def _named(bar: Bar, language: str) -> str:
    if not bar.attempt_id:
        return lane_name(bar.lane, language)
    told = state_words(bar.key, language, reason="…", attempt="…")
    return f"{bar.label}: {told}  {short_id(bar.attempt_id)}"


def _fold(drawing: _Drawing, fold: Fold, at: float, height: int, language: str) -> None:
    length = age(fold.end_ms - fold.start_ms)
    if fold.death:
        drawing.torn(at, height - 24)
    drawing.text(at + 3, TOP - 10, length if fold.end_ms > fold.start_ms else "", quiet=True)


class _Drawing:
    """The parts of one SVG; ids begin with a digest of session, picture and facts."""

    def __init__(self, name: str, run: Run, theme: str, width: int, height: int) -> None:
        self._id = "sf" + digest_text(f"{name}/{theme}/{width}/{run!r}")[7:19]
        self._paper, self._ink, self._quiet = THEMES[theme]
        self._size = (width, height)
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, *, quiet: bool = False) -> None:
        ink = self._quiet if quiet else self._ink
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{ink}">{escape(clean(text))}</text>')

    def bar(self, bar: Bar, span: tuple[float, float], top: float, label: str) -> None:
        """A bar with its mark and its label; an open one is hatched and has no right edge."""
        (first, last), height = span, BAR
        opened = is_told_open(bar.key) or bar.end_ms is None
        fill = f"url(#{self._id}h)" if opened else self._paper if not bar.attempt_id else self._ink
        edge = f"M{last:.1f} {top}H{first:.1f}V{top + height}H{last:.1f}" + ("" if opened else "Z")
        self._parts.append(
            f"<g><title>{escape(clean(label))}</title>"
            f'<path d="{edge}" fill="{fill}" stroke="{self._ink}" stroke-width="1"/>'
        )
        if bar.attempt_id:
            room = int((last - first - 18) / LETTER)
            ink, name = (self._ink, bar.label) if opened else (self._paper, bar.label)
            sign = f"{mark(bar.key)} {cut(name, room)}" if room >= 6 else mark(bar.key)
            outside = last - first < 14
            x = last + 2 if outside else first + 3
            shade = self._ink if outside else ink
            back = f' stroke="{self._paper}" stroke-width="3" paint-order="stroke"' if opened else ""
            self._parts.append(
                f'<text x="{x:.1f}" y="{top + 12}" fill="{shade}"{back}>{escape(clean(sign))}</text>'
            )
        self._parts.append("</g>")

    def torn(self, at: float, bottom: int) -> None:
        """A torn edge across all lanes."""
        steps = "".join(f"l{4 if step % 2 else -4} 6" for step in range((bottom - TOP + 8) // 6))
        self._parts.append(
            f'<path d="M{at:.1f} {TOP - 8}{steps}" fill="none" stroke="{self._ink}" stroke-width="1.5" '
            'stroke-dasharray="3 2"/>'
        )

    def whole(self, title: str, about: str) -> str:
        width, height = self._size
        label = quoteattr(f"{self._id}t {self._id}d")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-labelledby={label} font-family="ui-monospace, monospace" '
            f'font-size="12"><title id="{self._id}t">{escape(clean(title))}</title>'
            f'<desc id="{self._id}d">{escape(clean(about))}</desc>'
            f'<defs><pattern id="{self._id}h" width="6" height="6" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{self._paper}"/>'
            f'<rect width="2" height="6" fill="{self._ink}"/></pattern></defs>'
            f'<rect width="{width}" height="{height}" fill="{self._paper}"/>{"".join(self._parts)}</svg>\n'
        )
