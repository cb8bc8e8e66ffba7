"""`surefoot ledger`: verify, path, begin, and `prune`, which has a module of its own.

Owns: how findings are printed, and the word of a person before a damaged ledger is set aside
(UX-163). Does not own: checking and moving (`ledger`).
"""

from __future__ import annotations

from pathlib import Path

import click

from surefoot.errors import (
    LedgerDamaged,
    LedgerError,
    RecoveryRefused,
    SessionMissing,
    SurefootError,
    UsageError,
)
from surefoot.ledger.places import set_aside
from surefoot.ledger.port import Report
from surefoot.surfaces.cli import reading
from surefoot.surfaces.cli.output import complain, is_person_here, say_json, say_lines
from surefoot.surfaces.cli.pruning import prune_command
from surefoot.surfaces.cli.tongue import language_here
from surefoot.surfaces.phrases import translated
from surefoot.surfaces.ways import next_of
from surefoot.surfaces.words import say
from surefoot.surfaces.words_ledger import pruned


@click.group()
def ledger() -> None:
    """The ledger of this project."""


@ledger.command()
@click.option("--all", "every", is_flag=True, help="One line per project.")
def path(every: bool) -> None:
    """Print where the ledger lies, or would lie."""
    settings = reading.settings_here()
    if not every:
        say_lines([str(settings.places.ledger_folder(Path.cwd()) / "ledger.db")])
        return
    say_lines(str(place.folder / "ledger.db") for place in reading.places_of(settings, every=True))


@ledger.command(short_help="Check chain, witness and blobs; change nothing.")
@click.option("--all", "every", is_flag=True, help="Of every project.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
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
            way = "surefoot ledger begin" if isinstance(error, LedgerDamaged) else next_of(error)
            told = translated(error.message, language_here())
            way_on = say("end_next", language_here(), command=way)
            complain([f"{error.code}: {place.project}: {told}", way_on])
            continue
        bad = bad or bool(report.findings)
        documents.append({"project": place.project, **_document(report)})
        if not as_json:
            say_lines(_lines(place.project, report, language_here()))
    if as_json:
        say_json(documents)
    elif not documents:
        say_lines([pruned("no_ledger", language_here())])
    ctx.exit(1 if bad else 0)


@ledger.command(short_help="After damage: set the ledger aside, begin a new one.")
def begin() -> None:
    """After damage: set the ledger of this project aside whole, and begin a new one beside it."""
    settings = reading.settings_here()
    folder = settings.places.ledger_folder(Path.cwd())
    damage = reading.run(lambda: _damage(folder)) if folder.is_dir() else None
    if damage is None:
        raise UsageError("The ledger of this project can be read; there is nothing to set aside.",
                         next_command="surefoot ledger verify")  # fmt: skip
    from surefoot.tools.processes.ancestry import descent_here

    found = descent_here(settings.places.ledgers, recorded=())
    if found.reason is not None:
        raise RecoveryRefused(
            f"Only a person may set a ledger aside ({found.reason}).",
            code="person_required",
            reason=found.reason,
        )
    if not is_person_here():
        raise UsageError("ledger begin is decided by a person at a terminal.")
    language = language_here()
    complain(
        [
            translated(damage.message, language),
            translated(
                "It is moved into a folder beside the new one, whole; nothing of it is deleted.", language
            ),
        ]
    )
    question = translated(f"Type {folder.name} to begin a new ledger", language)
    typed = click.prompt(question, default="", show_default=False, err=True)
    if typed.strip() != folder.name:
        raise UsageError("Nothing was changed.")
    aside = set_aside(folder)
    reading.run(lambda: _made(folder))
    say_lines([str(aside)])


ledger.add_command(prune_command)


async def _damage(folder: Path) -> LedgerError | None:
    """Why this ledger cannot be read. A newer one is no damage, and an absent one is none either."""
    from surefoot.ledger.opening import open_reader  # the path alone needs no driver

    try:
        await open_reader(folder).close()
    except LedgerDamaged as error:
        return error
    except SessionMissing:
        return None
    return None


async def _made(folder: Path) -> None:
    from surefoot.ledger.opening import open_ledger  # the path alone needs no driver

    await (await open_ledger(folder)).close()


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


def _lines(project: str, report: Report, language: str) -> list[str]:
    verdict = "ok" if not report.findings else f"{len(report.findings)} findings"
    lines = [
        f"{project}: {verdict} · {report.sessions} sessions, {report.entries} entries, {report.blobs} blobs"
    ]
    for finding in report.findings:
        place = f"{finding.session_id or '-'} at {finding.position or '-'}"
        lines.append(f"  {finding.code}: {place}: {finding.detail}")
    return [translated(line, language) for line in lines]
