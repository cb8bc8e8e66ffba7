"""Pure. The class of SQL text (EC-19).

Owns: a tokenizer that knows strings, quoted names, comments and dollar quotes, and the
class of each statement. Does not own: connections; a client says which dialect it speaks
and whether the server keeps the connection read-only.
Promises: text in which dialects could see different statements is UNKNOWN.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from surefoot.core.effects import EVERYTHING, Effect
from surefoot.core.model import EffectClass
from surefoot.tools.classify.rules import load


class Dialect(Enum):
    """Whose tokens the text is made of."""

    POSTGRES = "postgres"
    SQLITE = "sqlite"
    MYSQL = "mysql"
    ANY = "any"


class _CannotTell(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


_WORD = re.compile(r"[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff$]*")
_NUMBER = re.compile(r"[0-9.]+(?:[eE][+-]?[0-9]+)?")
_DOLLAR = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)?\$")


def classify_sql(
    text: str,
    dialect: Dialect = Dialect.ANY,
    *,
    read_only: bool = False,
    reach: tuple[str, ...] = (EVERYTHING,),
) -> Effect:
    """Classify all statements of `text`; `reach` is what a write on this connection can touch."""
    try:
        classes = [statement_class(item, read_only=read_only) for item in _statements(text, dialect)]
    except _CannotTell as doubt:
        return Effect(EffectClass.UNKNOWN, (EVERYTHING,), notes=(str(doubt),))
    if not classes:
        return Effect(EffectClass.UNKNOWN, (EVERYTHING,), notes=("no statement",))
    if len(classes) == 1 or set(classes) == {EffectClass.READ_ONLY}:
        found = classes[0]
    else:
        found = EffectClass.UNKNOWN
    if found is EffectClass.READ_ONLY:
        return Effect(found)
    return Effect(found, (EVERYTHING,) if found is EffectClass.UNKNOWN else reach)


def _statements(text: str, dialect: Dialect) -> list[list[_Token]]:
    statements: list[list[_Token]] = [[]]
    for token in _tokens(text, dialect):
        if token.text == ";" and token.kind == "mark":
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _tokens(text: str, dialect: Dialect) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in " \t\r\n\f":
            at += 1
        elif text.startswith("--", at):
            at = _line_comment(text, at)
        elif text.startswith("/*", at):
            at = _block_comment(text, at)
        elif char in "'\"`" or (char in "eEbBxXnN" and text[at + 1 : at + 2] == "'"):
            at, token = _quoted(text, at, dialect)
            found.append(token)
        elif char == "$":
            at, token = _dollar(text, at, dialect)
            found.append(token)
        elif match := _WORD.match(text, at):
            at = match.end()
            if text[at : at + 2] == "&'":
                raise _CannotTell("a string with its own escapes")
            found.append(_Token("word", match.group().lower()))
        elif match := _NUMBER.match(text, at):
            at = match.end()
            found.append(_Token("number", match.group()))
        elif char in "\\#\0":
            raise _CannotTell("a client command or a comment of one dialect")
        elif char == "[" and _bracket_hides(text, at):
            raise _CannotTell("a quoted name of one dialect")
        else:
            found.append(_Token("mark", char))
            at += 1
    return found


def _line_comment(text: str, at: int) -> int:
    if at + 2 < len(text) and text[at + 2] not in " \t\r\n":
        raise _CannotTell("a comment only some dialects know")
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _block_comment(text: str, at: int) -> int:
    end = text.find("*/", at + 2)
    if end < 0 or text[at + 2 : at + 3] in ("!", "+", "M") or "/*" in text[at + 2 : end + 1]:
        raise _CannotTell("a comment that some dialects run or nest")
    return end + 2


def _quoted(text: str, at: int, dialect: Dialect) -> tuple[int, _Token]:
    escaped = text[at] in "eE"
    if text[at] not in "'\"`":
        at += 1
    quote, index = text[at], at + 1
    while True:
        end = text.find(quote, index)
        if end < 0:
            raise _CannotTell("a string without its end")
        if "\\" in text[index:end] and (escaped or dialect is not Dialect.SQLITE):
            raise _CannotTell("a backslash in a string")
        if text[end + 1 : end + 2] == quote:
            index = end + 2
            continue
        kind = "string" if quote == "'" else "name"
        return end + 1, _Token(kind, text[at + 1 : end])


def _dollar(text: str, at: int, dialect: Dialect) -> tuple[int, _Token]:
    if re.compile(r"\$[0-9]+").match(text, at):
        raise _CannotTell("a parameter")
    found = _DOLLAR.match(text, at)
    if found is None or dialect is not Dialect.POSTGRES:
        raise _CannotTell("a dollar sign")
    end = text.find(found.group(), found.end())
    if end < 0:
        raise _CannotTell("a string without its end")
    return end + len(found.group()), _Token("string", text[found.end() : end])


def _bracket_hides(text: str, at: int) -> bool:
    end = text.find("]", at)
    return end < 0 or any(char in text[at:end] for char in ";'\"`$-/")


def statement_class(tokens: list[_Token], *, read_only: bool = False) -> EffectClass:
    """The class of one statement."""
    rules = load("sql")
    first = tokens[0].text if tokens[0].kind == "word" else ""
    words = [token.text for token in tokens if token.kind == "word"]
    if first in ("explain", "describe", "desc"):
        return _explained(tokens, read_only=read_only)
    if first in rules["unknown"] or not first:
        return EffectClass.UNKNOWN
    if first in rules["looks"]:
        return _looks(first, tokens, words)
    if read_only and first in (*rules["writes"], "create", "replace"):
        # The engine refuses the statement before it calls a function, save for what is temporary.
        temporary = any(token.text.lower() in ("temp", "temporary") for token in tokens)
        return EffectClass.UNKNOWN if temporary else EffectClass.READ_ONLY
    if first == "with":
        return EffectClass.NON_IDEMPOTENT if _writing(tokens) else _select(tokens, words)
    if first in ("select", "values", "table"):
        return _select(tokens, words)
    if first == "create":
        return _create(words)
    if first in rules["writes"]:
        return EffectClass.NON_IDEMPOTENT
    return EffectClass.UNKNOWN


def _looks(first: str, tokens: list[_Token], words: list[str]) -> EffectClass:
    """`SHOW`, and the pragmas that only tell the schema."""
    if first != "pragma":
        return EffectClass.READ_ONLY if "into" not in words else EffectClass.UNKNOWN
    rules = load("sql")
    # `pragma name(value)` sets what `pragma name = value` does, unless the name takes a table.
    given = any(token.text in ("=", "(") and token.kind == "mark" for token in tokens)
    listed = rules["pragmas_of"] if given else rules["pragmas"]
    plain = not any(token.text == "=" and token.kind == "mark" for token in tokens)
    known = len(tokens) > 1 and tokens[1].kind == "word" and tokens[1].text in listed
    return EffectClass.READ_ONLY if plain and known else EffectClass.UNKNOWN


def _explained(tokens: list[_Token], *, read_only: bool) -> EffectClass:
    """The statement inside, when it is run; servers take `analyse` for `analyze`, and describe by three words."""
    rest = tokens[1:]
    starts = {*load("sql")["writes"], *load("sql")["unknown"], "select", "with", "values", "create", "table"}
    starts |= {"pragma", "explain", "describe", "desc"}
    at = _behind_options(rest)
    runs = any(token.text.lower() in ("analyze", "analyse") for token in rest[:at])
    inner = rest[at:]
    if not inner:
        return EffectClass.UNKNOWN
    known = inner[0].kind == "word" and inner[0].text in starts
    if runs or inner[0].text == "pragma":
        return statement_class(inner, read_only=read_only) if known else EffectClass.UNKNOWN
    return EffectClass.READ_ONLY


def _behind_options(tokens: list[_Token]) -> int:
    """Where the statement after `EXPLAIN` begins: behind bare words of the server, or a list in parentheses."""
    at = 0
    bare = ("analyze", "analyse", "verbose", "extended", "partitions", "query", "plan")
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "mark" and token.text == "(" and at == 0:
            closing = next(
                (i for i, one in enumerate(tokens) if one.text == ")" and one.kind == "mark"), None
            )
            if closing is None or (
                at + 1 < len(tokens) and tokens[at + 1].text in ("select", "with", "values")
            ):
                return at
            at = closing + 1
        elif (
            token.kind == "word"
            and token.text == "format"
            and [one.text for one in tokens[at + 1 : at + 2]] == ["="]
        ):
            at += 3
        elif token.kind == "word" and token.text in bare:
            at += 1
        else:
            break
    return at


def _create(words: list[str]) -> EffectClass:
    if "if" in words[:5] and "exists" in words[:7] and "as" not in words:
        return EffectClass.IDEMPOTENT_WRITE
    if words[1:4] == ["or", "replace", "view"]:
        return EffectClass.IDEMPOTENT_WRITE
    return EffectClass.NON_IDEMPOTENT


def _writing(tokens: list[_Token]) -> bool:
    """Whether a word of a writing statement is in it; `replace(` is a function of text."""
    writes = load("sql")["writes"]
    following = [*tokens[1:], _Token("mark", "")]
    return any(
        token.kind == "word" and token.text in writes and (token.text, after.text) != ("replace", "(")
        for token, after in zip(tokens, following, strict=True)
    )


def _select(tokens: list[_Token], words: list[str]) -> EffectClass:
    rules = load("sql")
    if "into" in words or _writing(tokens):
        return EffectClass.UNKNOWN
    for index, word in enumerate(words[:-1]):
        if word == "for" and words[index + 1] in rules["locks"]:
            return EffectClass.UNKNOWN
        if word == "lock" and words[index + 1] == "in":
            return EffectClass.UNKNOWN
    return EffectClass.READ_ONLY if _calls_are_pure(tokens) else EffectClass.UNKNOWN


def _calls_are_pure(tokens: list[_Token]) -> bool:
    """Whether every parenthesis groups, or calls a function of the list."""
    opening = [at for at, token in enumerate(tokens) if at and token.text == "(" and token.kind == "mark"]
    return all(_pure_call(tokens, at) for at in opening)


def _pure_call(tokens: list[_Token], index: int) -> bool:
    """Whether the parenthesis at `index` groups, or calls a function of the list."""
    rules = load("sql")
    before = tokens[index - 1]
    if before.kind in ("mark", "number"):
        return before.text not in ("]", ".")
    if before.kind != "word":
        return before.kind == "string"
    if index >= 2 and tokens[index - 2].text == "." and (index < 3 or tokens[index - 3].text != "pg_catalog"):
        return False
    if before.text in rules["pure"] or before.text in rules["before_parenthesis"]:
        return True
    # `WITH name (columns) AS`, `FROM t alias (columns)`: the word before says that this names something.
    return index >= 2 and tokens[index - 2].text in ("with", "recursive")
