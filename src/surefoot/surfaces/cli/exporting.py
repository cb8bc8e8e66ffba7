"""`surefoot session export` and `/export`: one session in one file (UX-54).

Owns: reading the session, where the file goes, the word of a person before secrets leave.
Does not own: what an export holds (`export`). Reads only, but for the file that is asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from surefoot import __version__
from surefoot.config import Settings
from surefoot.core.model import EffectClass, Receipt
from surefoot.core.redact import secret_like
from surefoot.errors import UsageError
from surefoot.ledger.port import Readable, SessionRow
from surefoot.ledger.results import refs_of, stored_texts
from surefoot.surfaces import export, view
from surefoot.surfaces.cli import completing, reading
from surefoot.surfaces.cli.output import complain, is_person_here, look_here, say_json, say_lines
from surefoot.surfaces.words_export import told


@click.command("export", short_help="A session with receipts and evidence, secrets taken out.")
@click.argument("reference", required=False, shell_complete=completing.sessions)
@click.option("--format", "form", type=click.Choice(["json", "md"]), default=None, help="json when not said.")
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False), help="Into this new file.")
@click.option("--no-redact", is_flag=True, help="Leave secrets in; only for a person at a terminal.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def export_command(
    reference: str | None, form: str | None, file: str | None, no_redact: bool, as_json: bool
) -> None:
    """One session with receipts, evidence and decisions, secrets taken out, as JSON or Markdown."""
    if as_json and form == "md":
        raise UsageError("--json and --format md are two forms; choose one.")
    if no_redact and not is_person_here():
        raise UsageError("--no-redact is decided by a person at a terminal; without it secrets are taken out.",
                         next_command="surefoot session export")  # fmt: skip
    settings = reading.settings_here()
    whole = reading.read(lambda: read_export(settings, reference, redacted=not no_redact))
    look = look_here(settings)
    shape = form or ("md" if file and Path(file).suffix == ".md" else "json")
    if file is not None:
        write_new(Path(file), text_of(whole, shape, look.language))
    elif shape == "json":
        say_json(whole)
    else:
        say_lines(export.markdown(whole, look.language))
    complain(export.removed_lines(whole, look.language))
    complain([told("written", look.language, file=file)] if file else [])


async def read_export(
    settings: Settings, reference: str | None, *, redacted: bool = True
) -> Mapping[str, Any]:
    """The export of the session a reference names, its open calls as a next owner would find them."""
    place, row = await reading.find_session(settings, reference)
    async with reading.reader(place) as ledger:
        entries = await ledger.read(row.session_id)
        book, _ = await reading.book_as_found(ledger, place, row, settings)
        receipts = list(book)
        opened = [one.attempt_id for one in book.open() if one.effect_class is not EffectClass.READ_ONLY]
        results = await _results(ledger, receipts)
    source = export.Source(session_facts(row), entries, receipts, results, opened, __version__)
    return export.document(source, redacted=redacted, keys=_keys(settings))


def text_of(whole: Mapping[str, Any], form: str, language: str) -> str:
    """The export as the text of a file."""
    if form == "md":
        return "\n".join(export.markdown(whole, language)).rstrip("\n") + "\n"
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def write_new(file: Path, text: str) -> None:
    """Write a file that is not there yet, readable by its owner alone. Raises `UsageError`."""
    try:
        with os.fdopen(
            os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as out:
            out.write(text.encode("utf-8", "replace").decode("utf-8"))
    except FileExistsError:
        raise UsageError(f"{file} exists already; name another file.") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.") from None


def session_facts(row: SessionRow) -> dict[str, Any]:
    """A session as `session list --json` tells it."""
    return {
        "session_id": row.session_id,
        "name": row.name,
        "directory": row.directory,
        "model": row.model,
        "created_ms": row.created_ms,
        "changed_ms": row.changed_ms,
        "position": row.position,
        "calls": row.calls,
        "open_calls": row.open_calls,
        "status": row.status,
    }


async def _results(ledger: Readable, receipts: list[Receipt]) -> dict[str, str]:
    """The texts of results that lie in blobs; one that is gone is left out."""
    found = await stored_texts(ledger, refs_of(receipts))
    return {ref: view.clean(text, lines=True) for ref, text in found.items()}


def _keys(settings: Settings) -> set[str]:
    """The values of this environment's keys: of the variables that the settings name, and of those called secret.

    A path is no key: `PWD` and `SSH_AUTH_SOCK` only sound like one.
    """
    named = {endpoint.key_env for endpoint in settings.endpoints.values() if endpoint.key_env}
    secret = {name for name, value in os.environ.items() if secret_like(name) and not value.startswith("/")}
    return {os.environ[name].strip() for name in named | secret if os.environ.get(name)}
