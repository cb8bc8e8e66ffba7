"""Pure. The syntax tree of one shell line, owned by us.

Owns: the only door to the tree-sitter parser, what may be handed to it, and the nodes
the classifier reads. Does not own: what a node means (`grammar`).
Promises: no text makes the native parser read outside its tables; a node's `text` is
the line's own bytes, and no node refers to native memory.

The scanner of the bash grammar looks wide characters up in tables of 256 entries
(`isdigit` of a code point), which ends the process for some lines, and it takes `é=1`
for an assignment, which no shell does. It therefore sees `:` for each byte above 127:
in a word a shell gives neither any meaning, and positions stay the same.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

_STAND_IN = bytes(byte if byte < 128 else ord(":") for byte in range(256))


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One part of a line: `type` is the grammar's name, positions are bytes in `source`."""

    type: str
    source: bytes
    start_byte: int
    end_byte: int
    children: tuple[Node, ...] = ()
    fields: tuple[str | None, ...] = ()
    """The grammar's name for each child's place, or None."""
    is_named: bool = True
    is_error: bool = False
    is_missing: bool = False
    has_error: bool = False

    @property
    def text(self) -> bytes:
        """The bytes of the line this node covers."""
        return self.source[self.start_byte : self.end_byte]

    @property
    def named_children(self) -> tuple[Node, ...]:
        """The children that are more than punctuation."""
        return tuple(child for child in self.children if child.is_named)

    def child_by_field_name(self, name: str) -> Node | None:
        """The first child in the place `name`, or None."""
        return next(iter(self.children_by_field_name(name)), None)

    def children_by_field_name(self, name: str) -> list[Node]:
        """All children in the place `name`."""
        return [child for child, place in zip(self.children, self.fields, strict=True) if place == name]


class TooManyParts(Exception):
    """The line has more nodes than were allowed."""


def syntax_tree(source: bytes, most_nodes: int) -> Node:
    """Parse UTF-8 `source`; raise `TooManyParts` above `most_nodes` nodes."""
    tree = _parser().parse(source.translate(_STAND_IN))
    return _copied(tree.walk(), source, most_nodes)


@functools.cache
def _parser() -> Any:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _copied(cursor: Any, source: bytes, most_nodes: int) -> Node:
    """The whole tree as our nodes; without recursion, since a line may nest as deep as it is long."""
    open_parts: list[tuple[list[Node], list[str | None]]] = [([], [])]
    count = 0
    while True:
        count += 1
        if count > most_nodes:
            raise TooManyParts
        open_parts.append(([], []))
        if cursor.goto_first_child():
            continue
        while True:
            children, fields = open_parts.pop()
            above, places = open_parts[-1]
            above.append(_node(cursor.node, source, tuple(children), tuple(fields)))
            places.append(cursor.field_name)
            if cursor.goto_next_sibling():
                break
            if not cursor.goto_parent():
                return above[0]


def _node(native: Any, source: bytes, children: tuple[Node, ...], fields: tuple[str | None, ...]) -> Node:
    return Node(
        type=native.type,
        source=source,
        start_byte=native.start_byte,
        end_byte=native.end_byte,
        children=children,
        fields=fields,
        is_named=native.is_named,
        is_error=native.is_error,
        is_missing=native.is_missing,
        has_error=native.has_error,
    )
