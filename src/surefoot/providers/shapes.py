"""Pure. Where the code and the parameter of a refusal stand, by the form of body a contract names (`errors.shape`).

Owns: those places. Does not own: reason texts, which are looked for in every form, since any gateway may
speak in the endpoint's place (`diagnosis`); what a code means (`errors.codes`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ERROR_CODE = ("error", "code")
_ERROR_TYPE = ("error", "type")
_CODES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "openai": (_ERROR_CODE, ("code",)),
    "deepseek": (_ERROR_CODE, ("code",)),
    "kimi": (_ERROR_TYPE,),
    "mimo": (_ERROR_CODE,),
    "glm": (_ERROR_CODE,),
    "minimax": (),
    "mistral": (("code",), ("type",)),
    "vllm": (_ERROR_TYPE,),
    "llamacpp": (_ERROR_TYPE,),
    "gemini": (("error", "status"),),
    "openrouter": (("error", "metadata", "error_type"), _ERROR_CODE),
    "anthropic": (("error", "details", "error_code"), _ERROR_TYPE),
    "bedrock": (("__type",),),
}
"""Shape → the places of its code, the most telling first. What only repeats the status is no code."""
_WITHOUT_PARAM = ("mimo",)
"""Shapes that put the reason where others name a parameter (MI-01)."""
_TRAILING = re.compile(r"\((\d{3,6})\)\s*$")
_ANYWHERE = (_ERROR_CODE, ("code",))


def code_and_param(body: Any, shape: str) -> tuple[str | None, str | None]:
    """The code and the parameter of one body, as texts of the server that no one has judged yet."""
    places = [*_CODES[shape], *_ANYWHERE]
    code = next((found for place in places if (found := _word(_at(body, place))) is not None), None)
    if shape == "minimax":
        code = _trailing(_at(body, ("error", "message"))) or code
    if shape in _WITHOUT_PARAM:
        return code, None
    return code, _word(_at(body, ("error", "param"))) or _word(_at(body, ("param",)))


def _at(body: Any, place: tuple[str, ...]) -> Any:
    for key in place:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def _word(value: Any) -> str | None:
    known = isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
    return str(value) if known else None


def _trailing(message: Any) -> str | None:
    """The number MiniMax writes behind its words (MM-04)."""
    found = _TRAILING.search(message) if isinstance(message, str) else None
    return found.group(1) if found else None
