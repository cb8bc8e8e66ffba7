"""Pure. Which single git write a shell line is: commit, tag, branch or push (TR-109).

Owns: recognising such a line and what it asks for. Does not own: classes (`shell`), what stood
before it (`processes.git_record`), what is found afterwards (`verifiers.git`).

A line that holds more than one write, or any option this module does not know, is not recognised:
a verifier that mistakes what was wanted could prove the wrong thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from surefoot.tools.classify.grammar import (
    NotUnderstood,
    Word,
    parse,
    refuse_line_end_inside,
    source_of,
    substitutions,
    word_of,
)
from surefoot.tools.classify.tree import Node

_QUIET_REDIRECT = re.compile(r"(?:[012]?>&[12]|(?:[12&]?>>?|[0]?<)\s*/dev/null)")
_DOCUMENT = re.compile(r"""\"\$\(cat <<'(\w+)'\n((?:(?!\1\n).*\n)*)\1\n?\s*\)\"""")
_COMMIT_FLAGS = frozenset(
    [
        "-q",
        "--quiet",
        "-v",
        "--verbose",
        "-n",
        "--no-verify",
        "--verify",
        "--allow-empty",
        "--allow-empty-message",
        "--no-gpg-sign",
        "--no-edit",
        "--status",
        "--no-status",
        "-S",
        "--gpg-sign",
    ]
)
_PUSH_FLAGS = frozenset(
    [
        "-u",
        "--set-upstream",
        "-f",
        "--force",
        "--force-with-lease",
        "-q",
        "--quiet",
        "-v",
        "--verbose",
        "--no-verify",
        "--porcelain",
        "--progress",
        "--no-progress",
    ]
)
_MESSAGES = {"-m": "message", "--message": "message", "-F": "file", "--file": "file"}


@dataclass(frozen=True, slots=True)
class GitWrite:
    """What a recognised line asks git to write."""

    kind: str
    """`commit`, `tag`, `branch` or `push`."""
    folders: tuple[str, ...] = ()
    """Where it goes first: each relative to the one before (`cd`, `-C`)."""
    messages: tuple[str, ...] | None = ()
    """Paragraphs of the message; None when it is not known before git runs."""
    message_file: str | None = None
    all: bool = False
    """Changed files are staged by the commit itself."""
    amend: bool = False
    adds: tuple[tuple[str, ...], ...] = ()
    """Arguments of each `git add` that goes before in the same line."""
    name: str = ""
    """Name of the tag or branch."""
    start: str = "HEAD"
    """What the tag or branch shall name."""
    annotated: bool = False
    remote: str | None = None
    refspecs: tuple[str, ...] = ()


def git_write(line: str) -> GitWrite | None:
    """The one git write `line` consists of, or None. Total."""
    try:
        commands = list(_commands(line))
    except (NotUnderstood, RecursionError):
        return None
    return _recognised(commands)


def _recognised(commands: list[list[Word]]) -> GitWrite | None:
    folders: list[str] = []
    adds: list[tuple[str, ...]] = []
    while len(commands) > 1:
        words = _literal(commands.pop(0))
        if words is None:
            return None
        if words[0] == "cd" and len(words) == 2 and not words[1].startswith(("-", "~")) and not adds:
            folders.append(words[1])
        elif words[:2] == ["git", "add"] and len(words) > 2 and not _interactive(words[2:]):
            adds.append(tuple(words[2:]))
        else:
            return None
    if not commands or len(commands[0]) < 2 or commands[0][0].text != "git":
        return None
    rest = commands[0][1:]
    while len(rest) > 2 and rest[0].text == "-C" and rest[1].certain:
        if adds:
            return None  # the files were added elsewhere
        folders.append(rest[1].text)
        rest = rest[2:]
    found = _READERS[rest[0].text](rest[1:]) if rest[0].text in _READERS else None
    if found is None or (adds and found.kind != "commit"):
        return None
    return replace(found, folders=tuple(folders), adds=tuple(adds))


def _interactive(options: Sequence[str]) -> bool:
    known = ("-A", "--all", "-u", "--update", ".", "-f", "--force", "-v", "--verbose", "--")
    return any(option.startswith("-") and option not in known for option in options)


def _literal(words: Sequence[Word]) -> list[str] | None:
    certain = all(word.literal and not word.glob for word in words)
    return [word.text for word in words] if certain and words else None


# The parts of a line --------------------------------------------------------------------------


def _commands(line: str) -> Iterator[list[Word]]:
    """The simple commands of a line joined by `&&` alone. Raises `NotUnderstood` for any other form."""
    nodes = [node for node in parse(line).children if node.type != "comment" and source_of(node).strip()]
    if len(nodes) != 1:
        raise NotUnderstood("more than one statement")
    yield from _joined(nodes[0])


def _joined(node: Node) -> Iterator[list[Word]]:
    if node.type == "list":
        for child in node.children:
            if child.is_named:
                yield from _joined(child)
            elif child.type != "&&":
                raise NotUnderstood("a list that is not joined by && alone")
        return
    if node.type == "redirected_statement":
        refuse_line_end_inside(node)
        for child in node.children[1:]:
            if child.type != "file_redirect" or not _QUIET_REDIRECT.fullmatch(source_of(child)):
                raise NotUnderstood("a redirection that writes or reads something")
        node = node.children[0]
        if node.type == "list":
            # A redirection behind a list belongs to its last command alone, and says nothing here.
            yield from _joined(node)
            return
    if node.type != "command":
        raise NotUnderstood("no simple command")
    yield _words(node)


def _words(node: Node) -> list[Word]:
    refuse_line_end_inside(node)
    words = []
    for child in node.children:
        if child.type == "file_redirect" and _QUIET_REDIRECT.fullmatch(source_of(child)):
            continue
        if child.type in ("variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect"):
            raise NotUnderstood("an assignment or a redirection")
        part = child.named_children[0] if child.type == "command_name" else child
        document = _document(part)
        if document is None and any(True for _ in substitutions(part)):
            raise NotUnderstood("a command inside a word: the line may do more than the git write")
        words.append(document or word_of(part))
    return words


def _document(node: Node) -> Word | None:
    """`"$(cat <<'END' … END)"` as the text it stands for: a quoted mark makes all of it literal."""
    found = _DOCUMENT.fullmatch(source_of(node)) if node.type == "string" else None
    return None if found is None else Word(found[2].rstrip("\n"), bare=False)


# The four writes ------------------------------------------------------------------------------


@dataclass(slots=True)
class _Read:
    """Options read so far; `known` False once one is met that is not understood."""

    messages: list[str] | None
    file: str | None = None
    flags: set[str] | None = None
    operands: list[str] | None = None


def _options(
    words: Sequence[Word], flags: frozenset[str], valued: frozenset[str] = frozenset()
) -> _Read | None:
    """Tell flags, messages and operands apart; None when something else is there."""
    found = _Read([], flags=set(), operands=[])
    rest = list(words)
    while rest:
        first, *parts = _split(rest.pop(0))
        word, rest = first, [*parts, *rest]
        if not word.literal or word.glob:
            return None
        text, equals, value = word.text.partition("=")
        name = text if text.startswith("--") else word.text
        if name in _MESSAGES:
            given = Word(value, literal=word.literal) if equals and text.startswith("--") else _next(rest)
            if given is None or not _take(found, _MESSAGES[name], given):
                return None
        elif name in valued:
            if not equals and _next(rest) is None:
                return None
        elif word.text.startswith("-"):
            if name not in flags or (equals and name != "--force-with-lease"):
                return None
            found.flags = {*(found.flags or ()), name}
        else:
            found.operands = [*(found.operands or ()), word.text]
    return found


def _next(rest: list[Word]) -> Word | None:
    return rest.pop(0) if rest else None


def _take(found: _Read, what: str, given: Word) -> bool:
    if what == "file":
        found.file = given.text
        return given.literal and not given.glob and given.text != "-"
    if not given.literal or given.glob or found.messages is None:
        found.messages = None
    else:
        found.messages.append(given.text)
    return True


def _split(word: Word) -> Iterator[Word]:
    """`-qam` as `-q -a -m`, and `-mtext` as `-m text`."""
    text = word.text
    if not word.literal or not re.match(r"-[A-Za-z]{2}", text):
        yield word
        return
    for index, letter in enumerate(text[1:], start=2):
        yield Word(f"-{letter}")
        if letter in "mF":
            if text[index:]:
                yield Word(text[index:])
            return


def _commit(words: Sequence[Word]) -> GitWrite | None:
    flags = _COMMIT_FLAGS | {"-a", "--all", "--amend", "-s", "--signoff"}
    read = _options(words, flags, frozenset({"--author", "--date"}))
    if read is None or read.operands:
        return None
    chosen = read.flags or set()
    amend = "--amend" in chosen
    known = not amend and not chosen & {"-s", "--signoff"} and (read.messages or read.file)
    if read.messages == [] and read.file is None and not amend:
        return None  # an editor is started
    return GitWrite(
        "commit",
        messages=tuple(read.messages) if known and read.messages is not None else None,
        message_file=read.file if known else None,
        all=bool(chosen & {"-a", "--all"}),
        amend=amend,
    )


def _tag(words: Sequence[Word]) -> GitWrite | None:
    read = _options(words, frozenset({"-a", "--annotate", "-f", "--force", "-s", "--sign", "--no-sign"}))
    if read is None or not read.operands or len(read.operands) > 2:
        return None
    chosen = read.flags or set()
    said = bool(read.messages) or read.messages is None or read.file is not None
    annotated = said or bool(chosen & {"-a", "--annotate", "-s", "--sign"})
    if annotated and not said:
        return None  # an editor is started
    return GitWrite(
        "tag",
        name=read.operands[0],
        start=read.operands[1] if len(read.operands) == 2 else "HEAD",
        annotated=annotated,
        messages=None if read.messages is None else tuple(read.messages),
        message_file=read.file,
    )


def _branch(words: Sequence[Word]) -> GitWrite | None:
    read = _options(words, frozenset({"-f", "--force", "-q", "--quiet", "--no-track"}))
    if read is None or read.messages or not read.operands or len(read.operands) > 2:
        return None
    return GitWrite("branch", name=read.operands[0], start=[*read.operands, "HEAD"][1])


def _new_branch(words: Sequence[Word]) -> GitWrite | None:
    """`git checkout -b name` and `git switch -c name`, where no file changes."""
    read = _options(words, frozenset({"-b", "-c", "--create", "-q", "--quiet"}))
    if (
        read is None
        or read.messages
        or len(read.operands or ()) != 1
        or not (read.flags or set()) - {"-q", "--quiet"}
    ):
        return None
    return GitWrite("branch", name=(read.operands or [""])[0])


def _push(words: Sequence[Word]) -> GitWrite | None:
    read = _options(words, _PUSH_FLAGS)
    if read is None or read.messages:
        return None
    operands = read.operands or []
    refspecs = tuple(operands[1:])
    if any(not spec or spec.startswith(":") or spec.endswith(":") or "*" in spec for spec in refspecs):
        return None  # deletions and patterns
    return GitWrite("push", remote=operands[0] if operands else None, refspecs=refspecs)


_READERS = {
    "commit": _commit,
    "tag": _tag,
    "branch": _branch,
    "checkout": _new_branch,
    "switch": _new_branch,
    "push": _push,
}
