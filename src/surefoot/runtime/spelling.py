"""Paths on file systems that do not tell upper from lower case, and the spelling they are compared by (EC-12).

Owns: finding out whether a folder tells case, by looking at names that are there. It writes nothing and
starts nothing. Does not own: which paths a call reaches (its classifier), how reaches are compared (`core.effects`).

The compared spelling is added to a reach and replaces nothing: a folder that looked different when it was
empty can then make a fence wider, and never open it.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable

from surefoot.core.effects import Effect

_SWAPPED = {ord(one): ord(one.swapcase()) for one in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_PATHS = ("path:", "repo:", "db:file", "db:file:")
_NAMES_LOOKED_AT = 64


def with_compared(effect: Effect) -> Effect:
    """The effect with the compared spelling of each path whose file system does not tell case."""
    more = sorted({_compared_member(member) for member in effect.reach} - set(effect.reach))
    return dataclasses.replace(effect, reach=(*effect.reach, *more)) if more else effect


def _compared_member(member: str) -> str:
    head, slash, rest = member.partition("/")
    return head + compared(slash + rest) if slash and head in _PATHS else member


def compared(path: str) -> str:
    """One spelling for all that name the same place; `path` itself, absolute and real, where case tells them apart."""
    parts = path.split("/")
    first_blind = _first_blind(parts)
    return "/".join((*parts[:first_blind], *(part.casefold() for part in parts[first_blind:])))


def is_blind(path: str) -> bool:
    """Whether a part of this path, absolute and real, has other spellings that name the same place."""
    parts = path.split("/")
    return any(part.swapcase() != part for part in parts[_first_blind(parts) :])


def _first_blind(parts: list[str]) -> int:
    """From which part on case does not tell names apart; behind the last one where it does everywhere."""
    first_blind, first_missing = len(parts), len(parts)
    for place in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:place]) or "/"
        if not os.path.lexists(f"{folder}/{parts[place]}"):
            first_missing = place
            continue
        tells = _tells_case(folder, [parts[place]])
        if tells:
            break
        if tells is False:
            first_blind = place
    if first_blind > first_missing and _takes_blindly("/".join(parts[:first_missing]) or "/"):
        first_blind = first_missing
    return first_blind


def _takes_blindly(folder: str) -> bool:
    """Whether a new name in this folder would be one that does not tell case; an empty disk is taken for one."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, _NAMES_LOOKED_AT)]
        tells = _tells_case(folder, names)
        return not tells if tells is not None else not names and os.path.ismount(folder)
    except OSError:
        return False  # it cannot be read, or is no folder: nothing is written there by name


def _tells_case(folder: str, names: Iterable[str]) -> bool | None:
    """Whether the first name that can say so names another file when its letters change case; None without one."""
    for name in names:
        other = name.translate(_SWAPPED)
        if other == name:
            continue
        try:
            mine = os.lstat(f"{folder}/{name}")
        except OSError:
            continue
        try:
            return not os.path.samestat(mine, os.lstat(f"{folder}/{other}"))
        except OSError:
            return True
    return None
