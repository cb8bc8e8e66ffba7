"""Pure. Clients of far sides: what their arguments ask of a host, a forge or a database.

Owns: curl, wget, `gh api`, psql, sqlite3, mysql. Does not own: the class of a method
(`http`) or of a statement (`sql`); option names come from the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from surefoot.core.effects import EVERYTHING, wider
from surefoot.core.model import EffectClass
from surefoot.tools.classify.grammar import Word
from surefoot.tools.classify.http import host_member, method_class
from surefoot.tools.classify.repositories import forge_hosts
from surefoot.tools.classify.rules import Shape, tables
from surefoot.tools.classify.scene import READS, Answer, Scene, join, spots, unknown, written
from surefoot.tools.classify.sql import Dialect, classify_sql

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_LISTING = re.compile(r"\\(?:d[a-zA-Z]*\+?|l\+?|z|conninfo|encoding|sf\+?|sv\+?)(?:[ \t]+[A-Za-z0-9_.*]+)?")
_SQLITE_LISTING = re.compile(
    r"\.(?:tables|schema|databases|indexes|indices|dbinfo|fullschema|show)(?:[ \t]+[A-Za-z0-9_%]+)?"
)


def _curl(shape: Shape, _: Sequence[Word], scene: Scene) -> Answer | None:
    table = tables().lists["curl"]
    urls = addresses([*shape.values(table["url"]), *shape.operands])
    headers = header_names(shape.values(table["header"]))
    if urls is None or headers is None or not urls:
        return None
    if any("%output" in word.text or word.text.startswith("@") for word in shape.values(table["format"])):
        return None
    output = _outputs(shape, table, scene, len(urls))
    if output is None:
        return None
    method = _curl_method(shape, table)
    body = (shape.has(*table["body"]) and not shape.has(*table["get"])) or shape.has(*table["upload"])
    found = method_class(method, headers, body)
    if found is EffectClass.READ_ONLY:
        return output
    if shape.has(*table["follow"]):
        # A redirect repeats the write somewhere that is not known (EC-17).
        return unknown("curl follows redirects of a write")
    return join([output, Answer(found, wider(host_member(url) for url in urls))])


def _curl_method(shape: Shape, table: Mapping[str, list[str]]) -> str:
    asked = [word.text for word in shape.values(table["method"])]
    if asked:
        return asked[-1]
    if shape.has(*table["upload"]):
        return "PUT"
    if shape.has(*table["body"]) and not shape.has(*table["get"]):
        return "POST"
    return "HEAD" if shape.has(*table["head"]) else "GET"


def _outputs(shape: Shape, table: Mapping[str, list[str]], scene: Scene, urls: int) -> Answer | None:
    """The files curl writes; None when there are several or their names come from afar."""
    named = [word for word in shape.values(table["output"]) if word.text != "-"]
    if shape.has(*table["remote_name"]):
        named.append(Word("."))
    if len(named) > 1 or (named and urls > 1):
        return None
    if not named:
        return READS
    if "#" in named[0].text:
        return None
    reach, paths = written(named, scene)
    return Answer(EffectClass.IDEMPOTENT_WRITE, wider(reach), paths=paths) if reach else READS


def _wget(shape: Shape, _: Sequence[Word], scene: Scene) -> Answer | None:
    table = tables().lists["wget"]
    urls = addresses(shape.operands)
    headers = header_names(shape.values(table["header"]))
    if not urls or headers is None or method_class("GET", headers, False) is not EffectClass.READ_ONLY:
        return None
    if shape.has(*table["spider"]):
        return READS
    output = shape.values(table["output"])
    if output and output[-1].text in ("-", "/dev/null", "/dev/stdout"):
        return READS
    if output and len(urls) == 1:
        reach, paths = written(output[-1:], scene)
        return Answer(EffectClass.IDEMPOTENT_WRITE, wider(reach), paths=paths)
    if output:
        return None
    # The name of the file differs when one is already there.
    reach, paths = written(shape.values(table["folder"]) or [Word(".")], scene)
    hosts = [host_member(url) for url in urls]
    return Answer(EffectClass.NON_IDEMPOTENT, wider(reach, hosts), paths=paths)


def addresses(words: Iterable[Word]) -> list[str] | None:
    """Addresses with their scheme; None when one is not of the web or cannot be told."""
    found = []
    allowed = tables().lists["http"]["schemes"]
    for word in words:
        if not word.certain or word.text == "-":
            return None
        scheme = _SCHEME.match(word.text)
        if scheme is not None and scheme[1].lower() not in allowed:
            return None
        found.append(word.text if scheme else "http://" + word.text)
    return found


def header_names(words: Iterable[Word]) -> dict[str, str] | None:
    """Headers by name; None when one is read from a file."""
    found: dict[str, str] = {}
    for word in words:
        if word.text.startswith("@"):
            return None
        name, _, value = word.text.partition(":")
        found[name.strip()] = value.strip()
    return found


def _gh_api(shape: Shape, _: Sequence[Word], scene: Scene) -> Answer | None:
    headers = header_names(shape.values(["-H", "--header"]))
    if headers is None:
        return None
    methods = [word.text.upper() for word in shape.values(["-X", "--method"])]
    fields = shape.has("-f", "-F", "--raw-field", "--field", "--input")
    method = methods[-1] if methods else "POST" if fields else "GET"
    if shape.operands[0].text.strip("/") == "graphql" and not fields:
        return None
    found = method_class(method, headers, False)
    if fields and found is not EffectClass.IDEMPOTENT_WRITE and found is not EffectClass.NON_IDEMPOTENT:
        found = EffectClass.UNKNOWN
    if found is EffectClass.READ_ONLY:
        return READS
    absolute = _SCHEME.match(shape.operands[0].text)
    return Answer(found, (host_member(shape.operands[0].text),) if absolute else forge_hosts(shape, scene))


def _psql(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    texts = [word.text for word in shape.values(["-c", "--command"])]
    if not texts:
        return READS if shape.has("-l", "--list") else None
    reach = _connection(shape)
    return join(_statement(text, Dialect.POSTGRES, reach, _LISTING) for text in texts)


def _connection(shape: Shape) -> tuple[str, ...]:
    """`db:server/database` when the arguments name both (EC-30)."""
    hosts = [word.text for word in shape.values(["-h", "--host"])]
    names = [word.text for word in shape.values(["-d", "--dbname", "-D", "--database"])]
    names += [word.text for word in shape.operands[:1]]
    plain = [name for name in names if re.fullmatch(r"[A-Za-z0-9_-]+", name)]
    if len(hosts) == 1 and len(names) == 1 and plain and re.fullmatch(r"[A-Za-z0-9.-]+", hosts[0]):
        return (f"db:{hosts[0]}/{plain[0]}",)
    return (EVERYTHING,)


def _statement(
    text: str, dialect: Dialect, reach: tuple[str, ...], listing: re.Pattern[str], *, read_only: bool = False
) -> Answer:
    if listing.fullmatch(text.strip()):
        return READS
    found = classify_sql(text, dialect, read_only=read_only, reach=reach)
    return Answer(found.effect_class, found.reach, why=" ".join(found.notes))


def _sqlite(shape: Shape, _: Sequence[Word], scene: Scene) -> Answer | None:
    file, *texts = shape.operands
    if not all(word.literal and not word.glob for word in texts) or "?" in file.text:
        return None
    places = None if file.text == ":memory:" else spots(file, scene)
    reach = tuple(f"db:file{path}" for path in places) if places else (EVERYTHING,)
    read_only = shape.has("-readonly")
    return join(
        _statement(word.text, Dialect.SQLITE, reach, _SQLITE_LISTING, read_only=read_only) for word in texts
    )


def _mysql(shape: Shape, _: Sequence[Word], __: Scene) -> Answer | None:
    texts = [word.text for word in shape.values(["-e", "--execute"])]
    if not texts:
        return None
    never = re.compile(r"(?!)")
    return join(_statement(text, Dialect.MYSQL, _connection(shape), never) for text in texts)


JUDGES: dict[str, Callable[[Shape, Sequence[Word], Scene], Answer | None]] = {
    "curl": _curl,
    "wget": _wget,
    "gh_api": _gh_api,
    "psql": _psql,
    "sqlite": _sqlite,
    "mysql": _mysql,
}
