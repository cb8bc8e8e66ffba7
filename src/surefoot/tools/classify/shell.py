"""Pure. The class and reach of a shell line (EC-20 to EC-32).

Owns: how the parts of a line are walked and joined: lists, pipes, loops, redirections,
`cd`, nested programs. Does not own: the grammar (`grammar`), what one command does
(`commands`), how a reader is run (`environment`).
Promises: never READ_ONLY for a line that holds anything no rule names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass
from surefoot.runtime.permission import ALSO, UNTOLD
from surefoot.runtime.tools import Place
from surefoot.tools.classify import commands, environment
from surefoot.tools.classify.grammar import (
    ELSEWHERE,
    SUBSTITUTIONS,
    UNSEEN,
    WORDS,
    NotUnderstood,
    Word,
    check_heredoc,
    leaves,
    parse,
    refuse_line_end_inside,
    source_of,
    substitutions,
    word_of,
)
from surefoot.tools.classify.launching import readings
from surefoot.tools.classify.naming import Names, lists_in, marked, passes_in, resolve
from surefoot.tools.classify.parts import bounds_of, parts_of
from surefoot.tools.classify.programs import harmless_test, variable
from surefoot.tools.classify.scene import Answer, Said, Scene, join, lexical, spots, unknown, written
from surefoot.tools.classify.tree import Node

_WRITING = {">": EffectClass.IDEMPOTENT_WRITE, ">|": EffectClass.IDEMPOTENT_WRITE}
_WRITING |= {"&>": EffectClass.IDEMPOTENT_WRITE, ">&": EffectClass.IDEMPOTENT_WRITE}
_WRITING |= {">>": EffectClass.NON_IDEMPOTENT, "&>>": EffectClass.NON_IDEMPOTENT}
_ARITHMETIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
# Beside an arithmetic comparison the shell evaluates its operands: a name in one may run a subscript.
_NO_NAME = re.compile(r"[-+]?[0-9]+|[!=<>&|()]*|-(?:eq|ne|lt|le|gt|ge)")
_TOKENS = frozenset(
    [
        ";",
        "\n",
        ";;",
        ";&",
        ";;&",
        "(",
        ")",
        "{",
        "}",
        "|",
        "||",
        "&&",
        "!",
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "while",
        "until",
        "case",
        "esac",
        "select",
    ]
)
_BRANCHES = frozenset({"if_statement", "elif_clause", "else_clause", "case_statement", "case_item"})


@dataclass(frozen=True, slots=True)
class ShellEffect:
    """What a shell line may do, and what the tool needs to run and settle it."""

    effect: Effect
    clients: tuple[str, ...] = ()
    """Clients of the line's writes whose end speaks of others (EC-57, EC-58)."""
    simple_commands: tuple[str, ...] | None = None
    """Every simple command, assignment (`NAME=value`) and written redirection (`> file`) of the line, for
    permission rules (UX-40); with `UNTOLD` when there are parts whose meaning is not certain, None when
    the grammar cannot parse the line."""
    why: str = ""
    write_targets: tuple[str, ...] = ()
    """Lexical absolute paths that are written, for write intents (TR-105); not those behind `*`."""
    reading_text: str | None = None
    """For `READ_ONLY`: the line as it is run in the reading environment (EC-59)."""
    repositories: tuple[str, ...] = ()
    """For `READ_ONLY`: folders whose git settings are looked up before, because a git may run there."""
    projects: tuple[tuple[str, str], ...] = ()
    """For `READ_ONLY`: package clients and the folders they run in, which are looked at before."""
    names: Names = field(default_factory=Names)
    """What the line opens as far as its words tell, for permissions (UX-38, UX-40)."""


def classify_shell(command: str, place: Place) -> ShellEffect:
    """Classify one shell line at `place`. Total: what is not understood is UNKNOWN with reach `*`."""
    walk = _Walk(place)
    try:
        answer = walk.line(command)
    except NotUnderstood as doubt:
        answer, walk.doubtful = unknown(str(doubt)), True
    except RecursionError:
        answer, walk.doubtful = unknown("the command is nested too deeply"), True
    if answer.effect_class is EffectClass.UNKNOWN:
        found = commands.clients_in([command], whole=True)
        answer = replace(answer, clients=tuple(sorted({*answer.clients, *found})))
    effect = Effect(answer.effect_class, answer.reach, check=answer.check, notes=_notes(answer))
    return ShellEffect(
        effect=effect,
        clients=answer.clients,
        simple_commands=parts_of(command, place, walk.seen, walk.further, doubtful=walk.doubtful),
        why=answer.why,
        write_targets=answer.paths,
        reading_text=_amended(command, walk) if effect.effect_class is EffectClass.READ_ONLY else None,
        repositories=answer.repositories,
        projects=answer.projects,
        names=resolve((*answer.said, *walk.said), walk.values, walk.scene()),
    )


def lexical_paths(command: str, place: Place) -> tuple[str, ...]:
    """Lexical paths to look up before: with `Place.real_paths` for them reach has no symbolic links."""
    walk = _Walk(place)
    try:
        answer = walk.line(command)
    except (NotUnderstood, RecursionError):
        return ()
    return tuple(sorted({*answer.paths, *walk.folders}))


def _notes(answer: Answer) -> tuple[str, ...]:
    return (answer.why,) if answer.why and answer.effect_class is EffectClass.UNKNOWN else ()


def _amended(command: str, walk: _Walk) -> str:
    """The line with the options put in that keep a repository's programs out."""
    source = command.encode("utf-8")
    for at, text in sorted(walk.insertions, reverse=True):
        source = source[:at] + b" " + text.encode() + source[at:]
    return source.decode("utf-8")


class _Walk:
    """One pass over the tree of a line; keeps the possible working directories as it goes."""

    def __init__(self, place: Place, *, level: int = 0) -> None:
        self.place = place
        self.level = level
        """How many programs of shells this line stands in."""
        self.bases: tuple[str, ...] | None = (str(place.directory),)
        self.depth = 0
        self.seen: list[str] = []
        self.folders: list[str] = []
        self.insertions: list[tuple[int, str]] = []
        self.doubtful = False
        self.further: list[str] = []
        """What the commands may be beside what they are called, each marked with `ALSO`; or `UNTOLD`."""
        self.said: list[Said] = []
        self.values: dict[str, list[Word]] = {}
        """Everything the line gives to each of its variables, in whatever order it does."""
        self.listed = False
        """Whether the input of the part that is judged is a list of names below known folders."""

    def line(self, text: str) -> Answer:
        """Judge a whole program."""
        root = parse(text, **bounds_of(self.place))
        if not any(node.type != "comment" for node in root.children):
            raise NotUnderstood("the command is empty")
        return self.sequence(root.children)

    def scene(self) -> Scene:
        return Scene(
            self.place, self.bases, self.program, self.depth, nested=self.depth > 0, listed=self.listed
        )

    def program(self, text: str, scene: Scene) -> Answer:
        """A literal program of a shell: a child, so its `cd` stays inside."""
        outer, depth = self.bases, self.depth
        self.bases, self.depth = scene.bases, scene.depth
        try:
            return self.line(text)
        finally:
            self.bases, self.depth = outer, depth

    def sequence(self, nodes: Iterable[Node]) -> Answer:
        """Parts one after the other; a `cd` among them may have failed before the next one runs."""
        answers = []
        for node in nodes:
            before = self.bases
            answers.append(self.node(node))
            self.bases = _either(before, self.bases)
        return join(answers)

    def _inside(self, nodes: Iterable[Node]) -> Answer:
        """Parts in a process of their own: a `cd` in them ends with it."""
        before = self.bases
        try:
            return self.sequence(nodes)
        finally:
            self.bases = before

    def node(self, node: Node) -> Answer:
        kind = node.type
        if not node.is_named:
            if kind in _TOKENS or not kind.strip():
                return Answer()
            if kind == "&":
                return unknown("work in the background")
            raise NotUnderstood(f"a part of the kind {kind!r}")
        if kind in _BRANCHES or kind in ("compound_statement", "negated_command", "do_group", "program"):
            if kind == "compound_statement" and source_of(node).startswith("(("):
                raise NotUnderstood("arithmetic")
            return self.sequence(node.children)
        if kind in ("subshell", *SUBSTITUTIONS):
            return self._substituted(node)
        if kind in WORDS:
            word_of(node)
            return self._within(node)
        handler = self._handlers().get(kind)
        if handler is None:
            raise NotUnderstood(f"a part of the kind {kind}")
        return handler(node)

    def _handlers(self) -> dict[str, Callable[[Node], Answer]]:
        return {
            "command": self._command,
            "list": self._both,
            "pipeline": self._pipeline,
            "redirected_statement": self._redirected,
            "file_redirect": self._redirect,
            "heredoc_redirect": self._lone_heredoc,
            "herestring_redirect": lambda node: join(self._within(child) for child in node.named_children),
            "for_statement": self._loop,
            "while_statement": self._loop,
            "test_command": self._condition,
            "variable_assignment": self._assigned,
            "variable_assignments": lambda node: join(self._assigned(child) for child in node.named_children),
            "declaration_command": self._named_only,
            "unset_command": self._named_only,
            "function_definition": self._defined,
            "comment": lambda node: Answer(),
        }

    def _substituted(self, node: Node) -> Answer:
        """A substitution or a subshell, judged as commands of its own (EC-23)."""
        parts = [child for child in node.children if child.type not in ("$(", "`", "<(", ">(", "(", ")")]
        if any(child.type == "file_redirect" for child in parts):
            return join(
                self._redirect(child) if child.type == "file_redirect" else self.node(child)
                for child in parts
            )
        if "`" in source_of(node)[:1] and "\\" in source_of(node):
            raise NotUnderstood("escapes inside a backquoted command")
        return self._inside(parts)

    def _within(self, node: Node) -> Answer:
        """The substitutions inside a word."""
        return join([self._substituted(found) for found in substitutions(node)])

    def _both(self, node: Node) -> Answer:
        """`a && b`, `a || b`: after `&&` a `cd` has worked, otherwise it may have."""
        parts = [child for child in node.children if child.type not in ("&&", "||", "comment", "\n")]
        operators = [child.type for child in node.children if child.type in ("&&", "||")]
        if len(parts) != len(operators) + 1:
            raise NotUnderstood("a list with a missing part")
        left, *rest = parts
        before = self.bases
        answers = [self.node(left)]
        for operator, child in zip(operators, rest, strict=True):
            if operator == "||":
                self.bases = _either(before, self.bases)
            answers.append(self.node(child))
        return join(answers)

    def _pipeline(self, node: Node) -> Answer:
        outer, before = self.listed, False
        answers: list[Answer] = []
        for child in node.children:
            if child.is_named or child.type not in ("|", "|&"):
                self.listed = before if answers else outer
                before = lists_in(child) or (self.listed and passes_in(child))
                answers.append(self._inside([child]))
        self.listed = outer
        return join(answers)

    def _given(self, name: str, words: Iterable[Word]) -> None:
        """Note what a variable of the line may hold."""
        found = list(words)
        self.values.setdefault(name, []).extend(found)
        if any(word.listed for word in found):
            self._follow()

    def _follow(self) -> None:
        """Names out of a list are opened: what links among them lead to is opened as well."""
        self.said.append(Said(Word("."), self.bases, follows=True))

    def _word(self, node: Node) -> Word:
        word = marked(word_of(node), node)
        if word.listed:
            self._follow()
        return word

    def _loop(self, node: Node) -> Answer:
        """A loop has the strictest class of its parts; a `cd` in it makes later rounds start elsewhere."""
        if any(leaf.type == "word" and source_of(leaf) in ("cd", "pushd", "popd") for leaf in leaves(node)):
            self.bases = None
        name = node.child_by_field_name("variable")
        if name is not None and not variable(source_of(name)):
            raise NotUnderstood("a loop over a variable that may mean something")
        if node.type == "for_statement" and name is not None:
            values = [child for child in node.named_children if child.type in WORDS]
            self._given(source_of(name), map(self._word, values) if "in" in _kinds(node) else [UNSEEN])
        return self.sequence([child for child in node.children if child != name])

    def _condition(self, node: Node) -> Answer:
        """`[ … ]` and `[[ … ]]`."""
        double = source_of(node).startswith("[[")
        words: list[Word] = []
        for leaf in _flat(node):
            text = source_of(leaf)
            words.append(word_of(leaf) if leaf.is_named else Word(text))
        words = words[1:-1]
        if double:
            numbers = any(word.text in _ARITHMETIC for word in words)
            if numbers and not all(word.literal and _NO_NAME.fullmatch(word.text) for word in words):
                raise NotUnderstood("arithmetic with names")
            words = [replace(word, bare=False) for word in words]
        if not harmless_test(words):
            raise NotUnderstood("a condition that may do more than look")
        self.seen.append(commands.shown([Word("test"), *words]))
        return self._within(node)

    def _assigned(self, node: Node) -> Answer:
        """A variable of the line itself; a name that any program may read is refused (EC-26)."""
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        text = source_of(name) if name is not None else ""
        if not variable(text) or "+=" in source_of(node)[: len(text) + 2]:
            self.seen.append(source_of(node))
            return join([unknown(f"an assignment to {text!r}"), self._within(node)])
        self._given(text, [Word("") if value is None else self._word(value)])
        return self._within(node)

    def _redirected(self, node: Node) -> Answer:
        """A statement with redirections, which are opened before it runs.

        The grammar hangs words that follow a redirection on it; for a shell they are arguments.
        """
        refuse_line_end_inside(node)
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child != body]
        outer = self.listed
        self.listed = outer and not any(source_of(child).lstrip("012").startswith("<") for child in redirects)
        strays = [word for child in redirects for word in _strays(child)]
        answers = [self._redirection(child) for child in redirects]
        if body is not None and body.type == "command":
            answers.append(self._command(body, strays))
        elif strays:
            raise NotUnderstood("words behind a redirection that belong to no command")
        elif body is not None:
            answers.append(self.node(body))
        self.listed = outer
        return join(answers)

    def _redirection(self, node: Node) -> Answer:
        """One redirection whose stray words were taken."""
        if node.type == "file_redirect":
            return self._redirect(node, taken=True)
        return self._heredoc(node) if node.type == "heredoc_redirect" else self.node(node)

    def _redirect(self, node: Node, *, taken: bool = False) -> Answer:
        """`> file` writes, `< file` reads, a copy of a descriptor is nothing (EC-24)."""
        refuse_line_end_inside(node)
        if not taken and _strays(node):
            raise NotUnderstood("words behind a redirection that belong to no command")
        marks = [child.type for child in node.children if not child.is_named]
        target = node.child_by_field_name("destination")
        mark = marks[0] if len(marks) == 1 else ""
        if target is None:
            if mark in (">&-", "<&-"):
                return Answer()
            raise NotUnderstood("a redirection without its target")
        word, inner = word_of(target), self._within(target)
        if mark in ("<", "<&"):
            if not word.literal or word.text.startswith(("/dev/tcp", "/dev/udp")):
                raise NotUnderstood("a redirection from something that is not literal")
            if mark == "<":
                self.said.append(Said(word, self.bases, folders=False))
            return inner
        if mark not in _WRITING:
            raise NotUnderstood(f"a redirection of the kind {mark!r}")
        if mark == ">&" and word.literal and (word.text.isdigit() or word.text == "-"):
            return inner
        reach, paths = written([word], self.scene())
        if not reach:
            return inner
        self.seen.append(f"{mark} {commands.shown([word])}")
        return join([inner, Answer(_WRITING[mark], reach, paths=paths)])

    def _lone_heredoc(self, node: Node) -> Answer:
        if _strays(node):
            raise NotUnderstood("words behind a here-document that belong to no command")
        return self._heredoc(node)

    def _heredoc(self, node: Node) -> Answer:
        """A here-document, and what stands after its mark on the same line."""
        check_heredoc(node)
        answers = []
        skipped = ("<<", "<<-", "heredoc_start", "heredoc_end")
        for child in node.children:
            if child.type == "heredoc_body":
                answers.append(self._within(child))
            elif child.type == "file_redirect":
                answers.append(self._redirect(child, taken=True))
            elif child.type not in skipped and child.type not in WORDS:
                answers.append(self.node(child))
        return join(answers)

    def _command(self, node: Node, strays: Iterable[Node] = ()) -> Answer:
        """One simple command with its assignments and redirections."""
        refuse_line_end_inside(node)
        words: list[Word] = []
        ends: list[int] = []
        answers: list[Answer] = []
        for child in (*node.children, *strays):
            if child.type == "variable_assignment":
                answers.append(self._prefixed(child))
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                answers.append(self.node(child))
            else:
                part = child.named_children[0] if child.type == "command_name" else child
                words.append(self._word(part))
                ends.append(child.end_byte)
                answers.append(self._within(part))
        if not words:
            return join(answers)
        name = commands.command_name(words[0])
        if name is None:
            self.doubtful = True
        self.seen.append(commands.shown([words[0] if name is None else Word(name), *words[1:]]))
        if name == "cd":
            return join([*answers, self._moved(words[1:])])
        self._read_further(words)
        if name == "read":
            for word in words[1:]:
                self._given(word.text, [replace(UNSEEN, listed=self.listed)])
        answer = commands.judge(words, self.scene())
        self.seen.extend(answer.inner)
        if not self.depth and name is not None and answer.effect_class is EffectClass.READ_ONLY:
            self.insertions.extend(environment.insertions([name, *(word.text for word in words[1:])], ends))
        return join([*answers, answer])

    def _read_further(self, words: list[Word]) -> None:
        """Note what a command may run besides, programs of shells taken apart three levels deep (EC-21)."""
        found = readings(words)
        seen = [commands.shown(one) for one in found.commands]
        untold = found.untold or (bool(found.programs) and self.level >= 3)
        for text in found.programs if self.level < 3 else ():
            inner = _Walk(self.place, level=self.level + 1)
            try:
                inner.line(text)
            except (NotUnderstood, RecursionError):
                untold = True
            seen += inner.seen
            self.further += inner.further
        self.further += [ALSO + one for one in dict.fromkeys(seen) if one not in self.seen]
        if untold:
            self.further.append(UNTOLD)

    def _named_only(self, node: Node) -> Answer:
        """`export`, `declare`, `unset`: a part of its own for permission rules, and never a reader."""
        self.seen.append(source_of(node))
        return join([unknown("a declaration"), self._within(node)])

    def _defined(self, node: Node) -> Answer:
        """A function changes what a name means (EC-20); what it holds is still listed."""
        body = node.child_by_field_name("body")
        found = [] if body is None else [self._inside([body])]
        return join([unknown("a definition of a function"), *found])

    def _prefixed(self, node: Node) -> Answer:
        """An assignment before a command (EC-26)."""
        name = node.child_by_field_name("name")
        text = source_of(name) if name is not None else ""
        value = node.child_by_field_name("value")
        if value is not None:
            word_of(value)
        if commands.harmless_assignment(text):
            return self._within(node)
        self.seen.append(source_of(node))
        return join([unknown(f"an assignment to {text!r} before a command"), self._within(node)])

    def _moved(self, words: list[Word]) -> Answer:
        """A literal `cd` moves the base of later relative paths; any other makes it unknown (EC-28)."""
        if words and words[0].literal and words[0].text == "--":
            words = words[1:]
        target = words[0] if words else Word("~")
        self.said.append(Said(target, self.bases))
        if len(words) > 1 or target.glob or target.text.startswith("-"):
            self.bases = None
            self.said.append(Said(ELSEWHERE))
            return Answer()
        found = spots(target, self.scene())
        self.bases = None if found is None else tuple(lexical("/", _climbed(path)) for path in found)
        self.folders.extend(self.bases or ())
        return Answer()


def _kinds(node: Node) -> list[str]:
    return [child.type for child in node.children]


def _strays(node: Node) -> list[Node]:
    """Words that the grammar hangs on a redirection though they are arguments of the command before it."""
    if node.type == "file_redirect":
        return node.children_by_field_name("destination")[1:]
    if node.type != "heredoc_redirect":
        return []
    found: list[Node] = []
    joined = False
    for child in node.children:
        joined = joined or child.type in ("pipeline", "list", "&&", "||", "|")
        mine = [child] if child.type in WORDS else _strays(child)
        if joined and (mine or child.type == "file_redirect"):
            raise NotUnderstood("words behind a here-document whose command is not certain")
        found.extend(mine)
    return found


def _climbed(path: str) -> str:
    """As `cd` takes `..`: by the name, not by the link."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _either(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return None
    merged = tuple(dict.fromkeys((*one, *other)))
    return merged if len(merged) <= 8 else None


def _flat(node: Node) -> list[Node]:
    """Words and operators of a condition, in order."""
    if node.type in WORDS or node.type == "test_operator" or not node.children:
        return [node]
    return [leaf for child in node.children for leaf in _flat(child)]
