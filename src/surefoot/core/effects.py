"""Pure. Effect classes, reach and overlap (EC-1 to EC-14).

Owns: strictness, the union of parts, and whether two reaches overlap. Does not own:
how a command or a request gets its class (`tools`), what follows (`recovery`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from surefoot.core.model import EffectClass

EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Effect:
    """What one call may do: its class, the resources it can touch, and its marks."""

    effect_class: EffectClass
    reach: tuple[str, ...] = ()
    """Sorted members such as `path:/a/b`; empty for `READ_ONLY`, `("*",)` when undeclared."""
    check: bool = False
    """Test, build or linter: a failed or stopped one holds nothing back (TR-88, TR-75)."""
    interaction: bool = False
    """A question to a person (EC-45)."""
    notes: tuple[str, ...] = field(default=())


UNDECLARED = Effect(EffectClass.UNKNOWN, (EVERYTHING,))
