"""Pure. The parts of a line as permission rules see them (UX-40).

Owns: what is left for a denying rule of a line with a doubt in it. Does not own: walking a line (`shell`),
what one command is beside its name (`launching`), rules (`runtime.permission`).
"""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.runtime.permission import UNTOLD
from surefoot.runtime.tools import Place
from surefoot.tools.classify import commands
from surefoot.tools.classify.grammar import WORDS, NotUnderstood, Word, parse, source_of, word_of
from surefoot.tools.classify.tree import Node


def parts_of(
    command: str, place: Place, seen: Sequence[str], further: Sequence[str], *, doubtful: bool
) -> tuple[str, ...] | None:
    """What permission rules see. A doubt leaves what a denying rule may still recognise."""
    if not doubtful:
        return tuple(dict.fromkeys((*seen, *further)))
    try:
        root = parse(command, **bounds_of(place))
    except (NotUnderstood, RecursionError):
        return None
    found = list(seen)
    stack = [root]
    while stack:
        node = stack.pop()
        stack.extend(reversed(node.children))
        if node.type == "command":
            found.append(_roughly(node))
    return (*dict.fromkeys((*found, *further)), UNTOLD)


def bounds_of(place: Place) -> dict[str, int]:
    """The bounds of what is classified, as `parse` takes them."""
    return {"most_bytes": place.classifier_bytes, "most_nodes": place.classifier_nodes}


def _roughly(node: Node) -> str:
    words = []
    for child in node.children:
        if child.type == "command_name" or child.type in WORDS:
            part = child.named_children[0] if child.type == "command_name" else child
            try:
                words.append(word_of(part))
            except NotUnderstood:
                words.append(Word(source_of(part), literal=False))
    name = commands.command_name(words[0]) if words else None
    return commands.shown(words if name is None else [Word(name), *words[1:]])
