"""`surefoot recover`: calls that may have happened, looked at and decided.

Owns: the verbs of TR-149 and how calls are listed. Does not own: what a decision asks for
(`deciding`), the rules (`core.admission`), the record (`runtime.actions`), words (`words`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import click

from surefoot.errors import SessionMissing, SurefootError, UsageError
from surefoot.surfaces import plain, view
from surefoot.surfaces.cli import completing, reading, survivors
from surefoot.surfaces.cli.deciding import OPEN, Given, call_of, choose, draw, press
from surefoot.surfaces.cli.output import (
    SCREEN_READER_FLAG,
    Look,
    complain,
    headed,
    is_person_here,
    look_here,
    say_json,
    say_lines,
    show_lines,
)
from surefoot.surfaces.cli.recovering import recover_context
from surefoot.surfaces.words import say
from surefoot.tools.processes import kernel

STATISTICS = (
    "unknown", "confirmed", "denied", "retried", "rejected", "released", "proven", "late", "blocked",
)  # fmt: skip
WORDS = ("confirm", "deny", "reject", "release", "retry", "inspect")


OF_SESSION = click.option("--session", "session", help="Only of this session.")
TAIL_LINES = 20


class _Verbs(click.Group):
    """`recover REF` is the card of that call; every other first word is a verb."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            ctx.meta["word"] = args[0]
            return "card", self.commands["card"], args
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SessionMissing as missing:
            verbs = [name for name, command in self.commands.items() if not command.hidden]
            near = difflib.get_close_matches(str(ctx.meta.get("word", "")), verbs, n=1, cutoff=0.6)
            if not near:
                raise
            told = f"{missing.message} Did you mean surefoot recover {near[0]}?"
            raise SessionMissing(told, next_command="surefoot recover --help") from None


@click.group(cls=_Verbs, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Without a verb: what is open, as JSON.")
@SCREEN_READER_FLAG
@click.pass_context
def recover(ctx: click.Context, /, as_json: bool) -> None:
    """Calls that may have happened: list, look, decide. With a reference: its card."""
    if as_json and ctx.invoked_subcommand is not None:
        raise UsageError("--json stands behind the verb.", next_command="surefoot recover list --json")
    if as_json:
        ctx.invoke(recover.commands["list"], as_json=True)
    elif ctx.invoked_subcommand is None:
        ctx.invoke(recover.commands["card"], reference=None)


recover.add_command(recover_context, "context")

# Reading ----------------------------------------------------------------------------------------


@recover.command("list")
@click.option("--all", "resolved", is_flag=True, help="Decided and proven ones too.")
@click.option(
    "--all-sessions", "_", is_flag=True, expose_value=False, help="Of every session here; always so."
)
@click.option("--all-projects", is_flag=True, help="Of every ledger of this person.")
@OF_SESSION
@click.option("--exit-code", is_flag=True, help="Exit with 3 when any is open.")
@SCREEN_READER_FLAG
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def list_(
    ctx: click.Context, /, resolved: bool, all_projects: bool, session: str | None, **flags: bool
) -> None:
    """Open calls, and what runs in the background."""
    settings = reading.settings_here()
    look = look_here(settings)

    async def work() -> tuple[list[dict[str, Any]], list[reading.Unreadable]]:
        if session is None:
            return await reading.snapshots_of(reading.places_of(settings, every=all_projects), settings)
        place, row = await reading.find_session(settings, session)
        try:
            return [await reading.read_snapshot(place, row, settings)], []
        except SurefootError as error:
            return [], [reading.Unreadable(place, error)]

    snapshots, broken = reading.read(work)
    if flags["as_json"] and broken and not snapshots:
        raise broken[0].error  # no snapshot could be made: the error is the document (TR-149)
    complain(reading.told_broken(broken))
    shown = _with_something(snapshots, resolved)
    left = (
        [] if session is not None else survivors.left_running(reading.places_of(settings, every=all_projects))
    )
    if flags["as_json"]:
        _say_snapshots(shown or snapshots[:1], look.language, left)
    else:
        lines = _list_lines(shown, look, resolved=resolved)
        show_lines(lines if lines or broken else [say("nothing_open", look.language)])
        show_lines(survivors.lines(left, look))
    is_open = any(view.is_card(call) for one in snapshots for call in one["calls"])
    unread = 1 if reading.unread_here(broken) else 0
    ctx.exit(OPEN if flags["exit_code"] and is_open else unread)


def _with_something(snapshots: Sequence[dict[str, Any]], resolved: bool) -> list[dict[str, Any]]:
    """The sessions with calls to list, and one of each project that only runs something in the background.

    What runs in the background is the project's, so each of its sessions tells the same of it.
    """
    shown = [one for one in snapshots if one["foreseen"] or any(_listed(c, resolved) for c in one["calls"])]
    told = {resource["attemptId"] for one in shown for resource in one["background"]}
    for one in snapshots:
        new = {resource["attemptId"] for resource in one["background"]} - told
        if new:
            shown.append(one)
            told |= new
    return shown


def _listed(call: Mapping[str, Any], resolved: bool) -> bool:
    return view.is_card(call) or resolved


def _say_snapshots(
    snapshots: Sequence[Mapping[str, Any]], language: str, left: Sequence[Mapping[str, Any]]
) -> None:
    """One snapshot as it is; several as a list of them, with the calls of all in the order of TR-139 beside it.

    What earlier owners left running stands beside them in `survivors`, where there is any.
    """
    beside = {"survivors": left} if left else {}
    documents = [view.with_cards(one, language) for one in snapshots]
    if len(documents) == 1:
        say_json({**documents[0], **beside})
        return
    calls = sorted((call for one in documents for call in one["calls"]), key=lambda call: not call["open"])
    running = {one["attemptId"]: one for document in documents for one in document["background"]}
    say_json({"calls": calls, "background": list(running.values()), "sessions": documents, **beside})


def _list_lines(snapshots: Sequence[Mapping[str, Any]], look: Look, *, resolved: bool) -> list[str]:
    rows: list[list[str]] = []
    resources: list[str] = []
    left_out: list[str] = []
    ids = [call["attemptId"] for one in snapshots for call in one["calls"]]
    for one in snapshots:
        for call in one["calls"]:
            if _listed(call, resolved):
                rows.append(_list_row(call, ids, look))
        left_out += _left_out(one, look, resolved=resolved)
        resources += [
            view.foreseen_line(call, look.language, ascii_only=look.ascii_only, others=ids)
            for call in one["foreseen"]
        ]
    running = [resource for one in snapshots for resource in one["background"]]
    resources += view.background_lines(
        running, look.language, boot_ms=kernel.boot_ms(), ascii_only=look.ascii_only
    )
    return [*headed(rows, "head_calls", look.language), *left_out, *resources]


def _left_out(snapshot: Mapping[str, Any], look: Look, *, resolved: bool) -> list[str]:
    """How many calls a bound of the snapshot leaves out of the list, and how to see them (TR-185)."""
    shown_open = sum(1 for call in snapshot["calls"] if call["open"])
    hidden = snapshot["more"] if resolved else snapshot["statistics"]["unknown"] - shown_open
    return [say("left_out", look.language, n=hidden)] if snapshot["more"] and hidden > 0 else []


def _list_row(call: Mapping[str, Any], ids: Sequence[str], look: Look) -> list[str]:
    started = call.get("startedAt")
    return [
        plain.sign_of(call, ascii_only=look.ascii_only),
        view.short_id(call["attemptId"], ids),
        view.told(call, look.language),
        view.local_time(started) if started else "-",
        str(call["class"]),
        plain.cut(", ".join(view.clean(member) for member in call["reach"]) or "-", 40),
        plain.cut(view.summary(call), 60),
    ]


@recover.command(short_help="Facts, evidence and end of the log of one call.")
@click.argument("reference", shell_complete=completing.open_calls)
@OF_SESSION
@SCREEN_READER_FLAG
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(reference: str, session: str | None, as_json: bool) -> None:
    """Facts, evidence and end of the log of one call, with the code that a decision may need; no arguments."""
    snapshot, call, look = _read_call(reference, session)
    if as_json:
        say_json(view.with_cards({**snapshot, "calls": [call]}, look.language))
        return
    draw(call, snapshot, look, to_output=True)
    show_lines(_log_tail(call, look))


def _log_tail(call: Mapping[str, Any], look: Look) -> list[str]:
    """The last lines that a command has written, below the name of their file (TR-149)."""
    lines = [f"  {view.clean(line)}" for line in reading.last_lines(call, most=TAIL_LINES)]
    return [say("log_tail", look.language, log=call["process"]["log"]), *lines] if lines else []


@recover.command(hidden=True)
@click.argument("reference", required=False, shell_complete=completing.open_calls)
@click.option("--json", "as_json", is_flag=True, help="As JSON; asks nothing.")
@SCREEN_READER_FLAG
@click.pass_context
def card(ctx: click.Context, /, reference: str | None, as_json: bool = False) -> None:
    """The card of a call; with several open calls a list first."""
    if as_json:
        ctx.invoke(recover.commands["show"], reference=reference, as_json=True)
        return
    settings = reading.settings_here()
    look = look_here(settings)
    if reference is None:
        reference = _only_open(settings, look)
        if reference is None:
            return
    try:
        snapshot, call, look = _read_call(reference)
    except SessionMissing as missing:
        # It may name a session: then its only open call is meant, or the list of them.
        reference = _only_open(settings, look, session=reference, missing=missing)
        if reference is None:
            return
        snapshot, call, look = _read_call(reference)
    if not view.is_card(call) or not is_person_here():
        draw(call, snapshot, look, to_output=True)
        raise click.exceptions.Exit(OPEN if view.is_card(call) else 0)
    draw(call, snapshot, look, to_output=False)
    offered = {action["action"] for action in call["actions"] if action["enabled"]}
    asked = " | ".join(word for word in WORDS if word in offered)
    verb = click.prompt(f"{asked} ", default="", show_default=False, err=True).strip()
    if verb not in WORDS:
        complain([say("nothing_decided", look.language)])
        raise click.exceptions.Exit(OPEN)
    raise click.exceptions.Exit(press(verb, [call["attemptId"]], Given()))


def _only_open(
    settings: Any, look: Look, *, session: str | None = None, missing: SessionMissing | None = None
) -> str | None:
    """The attempt id when exactly one call is open, here or in `session`; otherwise the list is printed.

    Raises `missing` when there is no such session either.
    """

    async def work() -> list[dict[str, Any]]:
        if session is not None:
            try:
                place, row = await reading.find_session(settings, session)
            except SessionMissing as absent:
                raise missing or absent from None
            return [await reading.read_snapshot(place, row, settings)]
        rows, broken = await reading.rows_of(reading.places_of(settings, every=False))
        if broken:
            raise broken[0].error
        return [await reading.read_snapshot(place, row, settings) for place, row in rows]

    snapshots = reading.read(work)
    calls = [call for one in snapshots for call in one["calls"] if view.is_card(call)]
    if len(calls) == 1:
        return str(calls[0]["attemptId"])
    show_lines(_list_lines(snapshots, look, resolved=False) or [say("nothing_open", look.language)])
    if calls:
        raise click.exceptions.Exit(OPEN)
    return None


def _read_call(reference: str, session: str | None = None) -> tuple[dict[str, Any], dict[str, Any], Look]:
    settings = reading.settings_here()

    async def work() -> dict[str, Any]:
        place, row, receipt = await reading.find_attempt(settings, reference, session)
        snapshot = await reading.read_snapshot(place, row, settings, named=receipt.attempt_id)
        return {"snapshot": snapshot, "attempt": receipt.attempt_id}

    found = reading.read(work)
    call = call_of(found["snapshot"], found["attempt"])
    if call is None:
        raise SessionMissing(
            f"{reference!r} is settled; it never was in doubt.", next_command="surefoot session show"
        )
    return found["snapshot"], call, look_here(settings)


# Deciding ---------------------------------------------------------------------------------------


@recover.command()
@click.argument("references", nargs=-1, required=False, shell_complete=completing.open_calls)
@click.option("--all", "every", is_flag=True, help="Every open call of this project.")
@OF_SESSION
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def inspect(
    ctx: click.Context, /, references: tuple[str, ...], every: bool, session: str | None, as_json: bool
) -> None:
    """Look at the world once more and record what was seen."""
    given = Given(as_json=as_json, session=session)
    ctx.exit(press("inspect", _wanted(references, every, session), given))


def _deciding(verb: str, help_text: str) -> None:
    """One of the verbs that need the newest inspection."""

    @recover.command(verb, help=help_text)
    @click.argument("references", nargs=-1, required=True, shell_complete=completing.open_calls)
    @click.option("--inspection", help="The inspection that was read; needed without a terminal.")
    @click.option("--note", help="At most 500 characters; never sent to a model.")
    @click.option("--code", help="The code of the card, where it asks for one.")
    @OF_SESSION
    @click.option("--json", "as_json", is_flag=True, help="As JSON.")
    @click.pass_context
    def command(ctx: click.Context, /, references: tuple[str, ...], **flags: Any) -> None:
        given = Given(
            flags["inspection"],
            flags["note"],
            code=flags["code"],
            as_json=flags["as_json"],
            session=flags["session"],
        )
        ctx.exit(press(verb, list(references), given))


_deciding("confirm", "It happened.")
_deciding("deny", "It did not happen; the fence goes.")
_deciding("reject", "Leave it open and fenced; do not run it again.")


@recover.command()
@click.argument("references", nargs=-1, required=False, shell_complete=completing.open_calls)
@click.option("--all", "every", is_flag=True, help="Every open call of this project.")
@click.option("--yes", is_flag=True, help="Needed without a terminal.")
@click.option("--code", help="The code of `recover show`, where it asks for one.")
@click.option("--note", help="At most 500 characters; never sent to a model.")
@OF_SESSION
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def release(ctx: click.Context, /, references: tuple[str, ...], every: bool, **flags: Any) -> None:
    """Lift the fence and leave the call open."""
    session = flags["session"]
    given = Given(None, flags["note"], flags["yes"], flags["code"], flags["as_json"], session)
    ctx.exit(press("release", _wanted(references, every, session), given))


def _wanted(references: Sequence[str], every: bool, session: str | None) -> list[str]:
    if references and not every:
        return list(references)
    if not every:
        raise click.UsageError("Name a call, or use --all.")
    settings = reading.settings_here()

    async def work() -> list[str]:
        if session is None:
            rows, _ = await reading.rows_of(reading.places_of(settings, every=False))
        else:
            rows = [await reading.find_session(settings, session)]
        snapshots = [await reading.read_snapshot(place, row, settings) for place, row in rows]
        return [str(c["attemptId"]) for one in snapshots for c in one["calls"] if view.is_card(c)]

    return reading.read(work)


@recover.command()
@click.argument("references", nargs=-1, required=True, shell_complete=completing.open_calls)
@click.option("--inspection", help="The inspection that was read; needed without a terminal.")
@OF_SESSION
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def retry(ctx: click.Context, /, references: tuple[str, ...], **flags: Any) -> None:
    """Run it again with its old key, on new proof that it is absent. Off unless the owner switched it on."""
    given = Given(flags["inspection"], as_json=flags["as_json"], session=flags["session"])
    ctx.exit(press("retry", list(references), given))


@recover.command()
@click.argument("reference", shell_complete=completing.open_calls)
@click.argument("choice", type=click.Choice(["adopt", "kill", "leave"]))
@OF_SESSION
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def process(ctx: click.Context, /, reference: str, choice: str, session: str | None, as_json: bool) -> None:
    """What becomes of a process that a call left running."""
    ctx.exit(choose(reference, choice, Given(as_json=as_json, session=session)))


@recover.command()
@OF_SESSION
@click.option("--all-projects", is_flag=True, help="Of every ledger of this person.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def stats(session: str | None, all_projects: bool, as_json: bool) -> None:
    """How many calls became unknown and what was said of them. Nothing of it is sent anywhere."""
    settings = reading.settings_here()

    async def work() -> tuple[list[dict[str, Any]], list[reading.Unreadable]]:
        rows, broken = await reading.rows_of(reading.places_of(settings, every=all_projects))
        if session is not None:
            rows = [await reading.find_session(settings, session)]
        return [await reading.read_snapshot(place, row, settings) for place, row in rows], broken

    snapshots, broken = reading.read(work)
    if broken and not all_projects:
        raise broken[0].error  # zeros would be an answer
    complain(reading.told_broken(broken))
    counted = {key: sum(one["statistics"][key] for one in snapshots) for key in STATISTICS}
    if as_json:
        say_json(counted)
    else:
        say_lines(plain.table([[key, str(number)] for key, number in counted.items()]))
