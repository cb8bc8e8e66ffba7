"""Pure. From the text of a shell line to words whose meaning is certain.

Owns: parsing with the real grammar, the limits of EC-5, the check that the tree
covers every byte of the line, and quote removal. Does not own: what a command does
(`commands`), how parts are joined (`shell`).
Promises: what this module calls literal is literal for a shell; every doubt raises
`NotUnderstood`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from surefoot.tools.classify.tree import Node, TooManyParts, syntax_tree

MOST_BYTES = 64 * 1024
MOST_NODES = 20_000

SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
WORDS = frozenset(
    [
        "word",
        "number",
        "string",
        "raw_string",
        "ansi_c_string",
        "concatenation",
        "simple_expansion",
        "expansion",
        "arithmetic_expansion",
        "command_substitution",
        "process_substitution",
        "brace_expression",
        "extglob_pattern",
        "regex",
    ]
)
"""Kinds of nodes that are a word of a command."""
_OPAQUE = frozenset({"string", "raw_string", "ansi_c_string", "translated_string", "heredoc_body"})
_OPERATORS = b";|&()<>"
_SPECIAL = re.compile(r"""[;&|<>()$`"'\n\r]""")
_LIVE = re.compile(r"\$[A-Za-z0-9_({!@*#?$'\"-]|`")
_GLOB = re.compile(r"[*?\[]")
_PLAIN_EXPANSION = re.compile(r"\$\{#?[A-Za-z_][A-Za-z0-9_]*\}")
_SAFE_OPERATORS = frozenset({":-", "-", ":+", "+", "%", "%%", "#", "##", "/", "//", "^", "^^", ",", ",,"})
_DELIMITER = re.compile(r"""(["']?)([A-Za-z0-9_]+)\1""")


class NotUnderstood(Exception):
    """The line holds something whose meaning is not certain; the answer is UNKNOWN with reach `*`."""


@dataclass(frozen=True, slots=True)
class Word:
    """One argument after quote removal. `text` is its source when it is not `literal`."""

    text: str
    literal: bool = True
    glob: bool = False
    """An unquoted pattern or brace: it may become several words."""
    bare: bool = True
    """No quotes: an expansion in it may become several words."""
    listed: bool = False
    """It stands for names below known folders, as a command of the line lists them."""

    @property
    def certain(self) -> bool:
        """Whether the word can neither vary nor turn into an option."""
        if not self.literal:
            return False
        return not self.glob or (self.text[:1] not in ("", "-", "*", "?", "[", "{"))


UNSEEN = Word("…", literal=False)
"""Stands for arguments that are only known when the command runs (`xargs`, `find -exec`)."""
ELSEWHERE = Word("…", literal=False, bare=False)
"""Stands for such arguments where something in the line leads them to another place."""


def parse(text: str, *, most_bytes: int = MOST_BYTES, most_nodes: int = MOST_NODES) -> Node:
    """Parse `text`; raise `NotUnderstood` above the limits of EC-5, on an error, and on bytes no node covers."""
    try:
        source = text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotUnderstood("the command is not text") from None
    if len(source) > most_bytes:
        raise NotUnderstood(f"the command is longer than {most_bytes} bytes")
    if any(byte < 32 and byte not in (9, 10) for byte in source) or 127 in source:
        raise NotUnderstood("the command holds a control character")
    return _tree(source, most_nodes)


@functools.lru_cache(maxsize=32)
def _tree(source: bytes, most_nodes: int) -> Node:
    """One call asks about the same line several times: its class, its reach, its writes."""
    try:
        root = syntax_tree(source, most_nodes)
    except TooManyParts:
        raise NotUnderstood(f"the command has more than {most_nodes} parts") from None
    _check(root, source)
    return root


def _check(root: Node, source: bytes) -> None:
    """Every byte outside a leaf must be a blank: a shell would read what the tree left out."""
    end = 0
    for node in leaves(root):
        if node.is_error or node.is_missing:
            raise NotUnderstood("the command has an error")
        if node.start_byte > end:
            gap = source[end : node.start_byte].replace(b"\\\n", b"")
            if gap.strip(b" \t\n"):
                raise NotUnderstood("a part of the command is not covered by the grammar")
            if (
                end
                and not gap
                and _joins(source[end - 1 : end], source[node.start_byte : node.start_byte + 1])
            ):
                raise NotUnderstood("a line goes on inside a word")
        if node.type == "comment" and not _begins_word(source, node.start_byte):
            raise NotUnderstood("it is not certain where a comment begins")
        end = max(end, node.end_byte)
    if source[end:].replace(b"\\\n", b"").strip(b" \t\n"):
        raise NotUnderstood("a part of the command is not covered by the grammar")
    if root.has_error:
        raise NotUnderstood("the command has an error")


def _joins(before: bytes, after: bytes) -> bool:
    """Whether a shell makes one part of two that only an escaped line end stands between."""
    if (before in _OPERATORS) == (after in _OPERATORS):
        return True
    return after in b"(<>" and before in b"$=0123456789"


def _begins_word(source: bytes, at: int) -> bool:
    """Whether a shell starts a new word at `at`; an escaped line end joins what is around it."""
    return at == 0 or (source[at - 1] in b" \t\n;&|()" and source[at - 2 : at] != b"\\\n")


def leaves(root: Node) -> Iterator[Node]:
    """Leaves in order; a quoted string and a here-document count as one."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.is_error or not node.children or node.type in _OPAQUE:
            yield node
        else:
            stack.extend(reversed(node.children))


def source_of(node: Node) -> str:
    """The text of a node."""
    return node.text.decode("utf-8")


def word_of(node: Node) -> Word:
    """Remove quotes; raise `NotUnderstood` for an expansion that could run or assign something."""
    kind, raw = node.type, source_of(node)
    if kind in ("word", "number", "variable_name", "test_operator", "file_descriptor"):
        return _bare(node, raw)
    if kind == "raw_string":
        return Word(raw[1:-1], bare=False)
    if kind == "string":
        return _quoted(node, raw)
    if kind == "concatenation":
        return _joined(node, raw)
    if kind == "brace_expression":
        return Word(raw, glob=True)
    if kind in ("extglob_pattern", "regex"):
        if node.named_children or _SPECIAL.search(raw):
            return Word(raw, literal=False, glob=True)
        return Word(raw, glob=True)
    if kind in ("simple_expansion", "expansion", "arithmetic_expansion"):
        _harmless(node, raw)
        return Word(raw, literal=False)
    if kind in SUBSTITUTIONS or kind in ("ansi_c_string", "translated_string"):
        if kind == "translated_string":
            raise NotUnderstood("a translated string")
        return Word(raw, literal=False, bare=kind in SUBSTITUTIONS)
    raise NotUnderstood(f"a part of the kind {kind}")


def _bare(node: Node, raw: str) -> Word:
    if node.named_children:
        raise NotUnderstood("a word with parts")
    text, plain, index = [], [], 0
    while index < len(raw):
        char = raw[index]
        if char == "\\":
            following = raw[index + 1 : index + 2]
            if not following:
                raise NotUnderstood("a backslash at the end")
            text.append("" if following == "\n" else following)
            index += 2
            continue
        text.append(char)
        plain.append(char)
        index += 1
    bare = "".join(plain)
    if _SPECIAL.search(bare):
        raise NotUnderstood("a word holds a character of the shell")
    escaped = raw.startswith("\\")
    return Word("".join(text), glob=bool(_GLOB.search(bare)) or _braces(bare), bare=not escaped)


def _braces(text: str) -> bool:
    return "{" in text and ("," in text or ".." in text)


def _quoted(node: Node, raw: str) -> Word:
    """Text in double quotes: the slices between its expansions are literal."""
    base, literal, end = node.start_byte, True, 1
    source = node.text
    pieces: list[bytes] = []
    for child in node.named_children:
        if child.type == "string_content":
            continue
        if child.type in ("simple_expansion", "expansion", "arithmetic_expansion"):
            _harmless(child, source_of(child))
        elif child.type != "command_substitution":
            raise NotUnderstood("a string with an unknown part")
        literal = False
        pieces.append(source[end : child.start_byte - base])
        end = child.end_byte - base
    pieces.append(source[end:-1])
    for piece in pieces:
        refuse_hidden(piece.decode("utf-8"))
    if not literal:
        return Word(raw, literal=False, bare=False)
    text = re.sub(r'\\([$`"\\\n])', lambda m: "" if m[1] == "\n" else m[1], raw[1:-1])
    return Word(text, bare=False)


def refuse_hidden(piece: str) -> None:
    """Raise when literal text of a string or here-document holds an expansion the tree did not show."""
    if _LIVE.search(re.sub(r"\\.", "", piece, flags=re.DOTALL)):
        raise NotUnderstood("an expansion the grammar did not see")


def _joined(node: Node, raw: str) -> Word:
    words = []
    for child in node.children:
        if not child.is_named:
            # A lone `$` between quotes may start another kind of quoting.
            raise NotUnderstood("an unnamed part inside a word")
        words.append(word_of(child))
    literal = all(word.literal for word in words)
    bare = any(word.bare for word in words)
    if not literal:
        return Word(raw, literal=False, bare=bare)
    text = "".join(word.text for word in words)
    plain = "".join(word.text for word in words if word.bare)
    return Word(text, glob=any(word.glob for word in words) or _braces(plain), bare=bare)


def _harmless(node: Node, raw: str) -> None:
    """Let pass the expansions that only read a variable: no assignment, indirection or arithmetic of names."""
    if node.type == "simple_expansion":
        return
    if node.type == "arithmetic_expansion":
        if re.search(r"[A-Za-z_$`\[]", raw[3:-2] if raw.startswith("$((") else raw):
            raise NotUnderstood("arithmetic with names")
        return
    if _PLAIN_EXPANSION.fullmatch(raw):
        return
    operators = [source_of(child) for child in node.children if not child.is_named]
    named = [child.type for child in node.named_children]
    inner = [word for word in operators if word not in ("${", "}")]
    if not inner or any(word not in _SAFE_OPERATORS for word in inner):
        raise NotUnderstood("an expansion that may do more than read")
    if "subscript" in named or named[:1] != ["variable_name"]:
        raise NotUnderstood("an expansion that may do more than read")
    for child in node.named_children[1:]:
        if child.type in SUBSTITUTIONS:
            continue
        if child.type in ("regex", "extglob_pattern"):
            refuse_hidden(source_of(child))
        else:
            word_of(child)


def refuse_line_end_inside(node: Node) -> None:
    """Raise when a line ends between the children of one command: a shell would begin another there."""
    source, base = node.text, node.start_byte
    for before, after in pairwise(node.children):
        gap = source[before.end_byte - base : after.start_byte - base]
        if b"\n" in gap.replace(b"\\\n", b""):
            raise NotUnderstood("a line ends inside a command")


def substitutions(node: Node) -> Iterator[Node]:
    """The outermost substitutions inside a word, a string or a here-document."""
    stack = [node]
    while stack:
        current = stack.pop()
        if current.type in SUBSTITUTIONS:
            yield current
        else:
            stack.extend(reversed(current.children))


def check_heredoc(node: Node) -> None:
    """Raise unless the body ends where a shell would end it, and hides no expansion."""
    start = next((child for child in node.children if child.type == "heredoc_start"), None)
    body = next((child for child in node.children if child.type == "heredoc_body"), None)
    found = _DELIMITER.fullmatch(source_of(start)) if start is not None else None
    if found is None:
        raise NotUnderstood("a here-document whose end is not certain")
    if body is None:
        return
    text = source_of(body)
    if any(line.lstrip("\t") == found[2] for line in text.splitlines()):
        raise NotUnderstood("a here-document whose end is not certain")
    if not found[1]:
        _hidden_in_body(body)


def _hidden_in_body(body: Node) -> None:
    source, base, end = body.text, body.start_byte, 0
    for child in body.named_children:
        if child.type == "heredoc_content":
            continue
        if child.type in ("simple_expansion", "expansion", "arithmetic_expansion"):
            _harmless(child, source_of(child))
        refuse_hidden(source[end : child.start_byte - base].decode("utf-8"))
        end = child.end_byte - base
    refuse_hidden(source[end:].decode("utf-8"))
