"""`surefoot ledger`: verify, path.

Owns: how findings are printed. Does not own: checking (`ledger`).
"""

from __future__ import annotations

import click

from surefoot.errors import SurefootError
from surefoot.ledger.port import Report
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import complain, say_json, say_lines


@click.group()
def ledger() -> None:
    """The ledger of this project."""


@ledger.command()
@click.option("--all", "every", is_flag=True, help="One line per project.")
def path(every: bool) -> None:
    """Print where the ledger lies, or would lie."""
    from pathlib import Path

    settings = reading.settings_here()
    if not every:
        say_lines([str(settings.places.ledger_folder(Path.cwd()) / "ledger.db")])
        return
    say_lines(str(place.folder / "ledger.db") for place in reading.places_of(settings, every=True))


@ledger.command()
@click.option("--all", "every", is_flag=True, help="Of every project.")
@click.option("--json", "as_json", is_flag=True)
@click.pass_context
def verify(ctx: click.Context, /, every: bool, as_json: bool) -> None:
    """Check chain, witness and blobs without changing anything; exit code 1 on a finding."""
    settings = reading.settings_here()
    bad = False
    documents: list[dict[str, object]] = []
    for place in reading.places_of(settings, every=every):
        try:
            report = reading.run(lambda place=place: _verified(place))  # type: ignore[misc]
        except SurefootError as error:
            bad = True
            documents.append({"project": place.project, "error": error.code, "message": error.message})
            complain([f"{error.code}: {place.project}: {error.message}", "next: surefoot doctor"])
            continue
        bad = bad or bool(report.findings)
        documents.append({"project": place.project, **_document(report)})
        if not as_json:
            say_lines(_lines(place.project, report))
    if as_json:
        say_json(documents)
    elif not documents:
        say_lines(["There is no ledger in this project yet."])
    ctx.exit(1 if bad else 0)


async def _verified(place: reading.Place) -> Report:
    async with reading.reader(place) as handle:
        return await handle.verify()


def _document(report: Report) -> dict[str, object]:
    return {
        "sessions": report.sessions,
        "entries": report.entries,
        "blobs": report.blobs,
        "findings": [
            {"code": f.code, "session_id": f.session_id, "position": f.position, "detail": f.detail}
            for f in report.findings
        ],
    }


def _lines(project: str, report: Report) -> list[str]:
    verdict = "ok" if not report.findings else f"{len(report.findings)} findings"
    lines = [
        f"{project}: {verdict} · {report.sessions} sessions, {report.entries} entries, {report.blobs} blobs"
    ]
    for finding in report.findings:
        place = f"{finding.session_id or '-'} at {finding.position or '-'}"
        lines.append(f"  {finding.code}: {place}: {finding.detail}")
    return lines
