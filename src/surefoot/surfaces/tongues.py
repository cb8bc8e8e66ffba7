"""Which language is spoken here. Pure, and light: help and completion ask it too.

Owns: the languages, and the choice between them by setting and locale (UX-11).
Does not own: any word (`words`, `phrases`).
"""

from __future__ import annotations

from collections.abc import Mapping

LANGUAGES = ("en", "zh-Hans", "zh-Hant")


def language_of(setting: str, environ: Mapping[str, str]) -> str:
    """The language to speak: the setting, then `LC_ALL`, `LC_MESSAGES`, `LANG`; English otherwise."""
    if setting in LANGUAGES:
        return setting
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        given = environ.get(name)
        if given:
            return _language_of_locale(given)
    return "en"


def _language_of_locale(name: str) -> str:
    plain = name.split(".")[0].replace("-", "_").lower()
    if not plain.startswith("zh"):
        return "en"
    return "zh-Hant" if any(part in plain for part in ("hant", "_tw", "_hk", "_mo")) else "zh-Hans"
