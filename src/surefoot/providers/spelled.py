"""Pure. Calls that a model spelled out in its words, because the server's parser of calls is off (S-22).

Owns: the marks of such text. Does not own: what follows from it (`runtime.controller`); text is never run.
"""

from __future__ import annotations

import re

_MARKS = re.compile(
    r"""<(?:[a-z]+:)?tool_calls?>            # <tool_call>, <minimax:tool_call>
    |<\|tool_calls?(?:_section)?_begin\|>    # Kimi
    |<｜tool▁calls?▁begin｜>                 # DeepSeek
    |<\|python_tag\|>                        # Llama
    |\[TOOL_CALLS\]                          # Mistral
    |<function=\w+>                          # Qwen coder, Hermes
    |<(?:antml:)?(?:function_calls|invoke\b) # Anthropic's older form
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


def spells_a_call(text: str) -> bool:
    """Whether a call stands here as text; code that is quoted speaks about calls and is none."""
    return _MARKS.search(_QUOTED.sub("", text)) is not None
