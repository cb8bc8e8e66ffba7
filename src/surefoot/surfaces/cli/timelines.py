"""`surefoot timeline`: the pictures of a run, as text or as SVG.

Owns: which picture is printed where. Does not own: the pictures (`pictures`, `pictures_svg`), reading
(`reading`). Reads only (UX-4).
"""

from __future__ import annotations

import shutil

import click

from surefoot.errors import UsageError
from surefoot.surfaces import pictures, pictures_svg, plain
from surefoot.surfaces.cli import completing, reading
from surefoot.surfaces.cli.output import SCREEN_READER_FLAG, look_here, page_lines, say_json, say_lines


@click.command()
@click.argument("reference", required=False, shell_complete=completing.sessions)
@click.option("--text", "as_text", is_flag=True, help="As text, which is also what it is without a flag.")
@click.option("--svg", "as_svg", is_flag=True, help="As one SVG: surefoot timeline --svg > run.svg")
@click.option("--strip", is_flag=True, help="The run strip alone: one cell per call.")
@click.option("--json", "as_json", is_flag=True, help="The facts of the picture, as JSON.")
@click.option("--theme", type=click.Choice(list(pictures_svg.THEMES)), default="light", help="Of the SVG.")
@SCREEN_READER_FLAG
@click.option("--width", type=click.IntRange(40, 4000), help="Columns of the text, pixels of the SVG.")
def timeline(
    reference: str | None,
    strip: bool,
    theme: str,
    width: int | None,
    **forms: bool,
) -> None:
    """What ran when in a session, and where its process died."""
    if sum(forms.values()) > 1:
        raise UsageError(
            "Choose one of --text, --svg and --json.", next_command="surefoot timeline --svg > run.svg"
        )
    settings = reading.settings_here()
    look = look_here(settings)

    async def work() -> pictures.Run:
        place, row = await reading.find_run(settings, reference)
        entries, receipts, died = await reading.read_run(place, row, settings)
        return pictures.run_of(row.session_id, entries, receipts, died=died)

    run = reading.read(work)
    if forms["as_json"]:
        say_json(pictures.facts(run))
        return
    if forms["as_svg"]:
        drawn = (
            pictures_svg.strip_svg(run, look.language, theme=theme)
            if strip
            else pictures_svg.timeline_svg(run, look.language, width=width or 960, theme=theme)
        )
        say_lines([drawn.rstrip("\n")])
        return
    hidden, cells = pictures.strip_cells(run)
    lines = [look.drawing.strip(cells, look.language, earlier=hidden, ascii_only=look.ascii_only)]
    if not strip:
        columns = width or shutil.get_terminal_size((80, 24)).columns
        lines += pictures.timeline(
            run, look.language, look.drawing, columns=columns, ascii_only=look.ascii_only
        )
    page_lines(plain.only_ascii(line) if look.ascii_only else line for line in lines if line)
