"""The two prompts that are compared, and the models a candidate is meant for (PR-87, PR-88).

Owns: their texts as files, their digests, and how a model is recognised. Does not own: the prompt in
production (`surefoot.briefing.SYSTEM`); a test holds `base` equal to it. No setting of a user leads here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

CAPABILITY = "prompt.acts"
"""What a contract would declare for a model of another name."""
_FOLDER = Path(__file__).parent / "wordings"


def prompt(arm: str) -> str:
    """The text of `base` or `candidate`."""
    return (_FOLDER / f"{arm}.txt").read_text(encoding="utf-8")


def digest(text: str) -> str:
    """SHA-256 of a prompt's bytes, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def applies(model_id: str, declared: Collection[str] = ()) -> bool:
    """Whether the candidate is meant for a model: by its real id or a declared capability, never a shown name."""
    return model_id == "kimi" or model_id.startswith(("kimi/", "kimi-", "kimi_")) or CAPABILITY in declared
