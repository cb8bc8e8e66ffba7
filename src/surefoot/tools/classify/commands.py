"""Pure. One simple command: from its words to an answer, by the tables.

Owns: how names, families, wrappers and rules are looked up and applied (EC-21 to EC-30).
Does not own: the grammar (`grammar`), how parts are joined (`shell`), programs in other
languages (`scripts`), what a client's arguments mean (`clients`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from surefoot.core.effects import EVERYTHING, wider
from surefoot.core.model import EffectClass
from surefoot.tools.classify import clients, programs
from surefoot.tools.classify.grammar import UNSEEN, NotUnderstood, Word
from surefoot.tools.classify.naming import said_by, said_by_wrapper
from surefoot.tools.classify.repositories import forge_hosts, forge_names, remote_names, repository
from surefoot.tools.classify.rules import Rule, Shape, load, read, read_until, tables
from surefoot.tools.classify.scene import READS, Answer, Scene, join, spots, unknown, written

_NAME = re.compile(r"[A-Za-z0-9_./+-]+")
_BY_SETTINGS = frozenset({"git", "gh"})
"""Commands that run programs which the settings of a repository name."""
Judge = Callable[[Shape, Sequence[Word], Scene], Answer | None]
JUDGES: dict[str, Judge] = {**programs.JUDGES, **clients.JUDGES}


def judge(words: Sequence[Word], scene: Scene) -> Answer:
    """What the command made of `words` does; the first word is its name."""
    name = command_name(words[0])
    if name is None:
        return unknown("the name of the command is not literal")
    arguments = unbundled(name, words[1:])
    answer = _dispatch(name, arguments, scene)
    if name in tables().wrappers:
        said = said_by_wrapper(name, arguments)
    else:
        said = said_by(name, arguments, scene, answer)
    return replace(answer, clients=_clients(words, answer), said=(*answer.said, *said))


def command_name(word: Word) -> str | None:
    """The literal name; a full path into a folder of the system counts as its last part."""
    if not word.literal or word.glob or not word.text or word.text.startswith("~"):
        return None
    folder, slash, last = word.text.rpartition("/")
    if slash and folder in tables().lists["system_folders"]:
        return last
    return word.text


def unbundled(name: str, arguments: Sequence[Word]) -> Sequence[Word]:
    """`tar xf a` as `tar -xf a`, when the file name belongs to the last letter."""
    if name not in tables().lists["bundled"] or not arguments:
        return arguments
    first = arguments[0]
    if first.certain and first.text.isalpha() and "f" not in first.text[:-1]:
        return [Word("-" + first.text), *arguments[1:]]
    return arguments


def _dispatch(name: str, arguments: Sequence[Word], scene: Scene) -> Answer:
    table = tables()
    if name in table.lists["interpreters"]:
        inner = _program(arguments, scene)
        if inner is not None:
            return inner
    found = _by_rules(name, arguments, scene)
    if found is not None:
        reading = found.effect_class is EffectClass.READ_ONLY
        if reading and scene.nested and name in table.lists["insert_after_name"]:
            return unknown(f"{name!r} cannot be kept to reading where it stands")
        return _in_project(name, found, scene) if reading else found
    for rule in table.wrappers.get(name, ()):
        inner = _wrapped(rule, arguments, scene)
        if inner is not None:
            return inner
    answer = unknown(f"no rule says what {name!r} does with these arguments")
    return replace(answer, inner=_behind(name, arguments)) if name in table.lists["opaque"] else answer


def _behind(name: str, arguments: Sequence[Word]) -> tuple[str, ...]:
    """What an opaque wrapper seems to run, so that a rule that denies it is met."""
    rest = list(arguments)
    while rest and (rest[0].text.startswith("-") or "=" in rest[0].text):
        rest = rest[1:]
    return (shown(rest),) if rest else ()


def _program(arguments: Sequence[Word], scene: Scene) -> Answer | None:
    """`sh -c 'text'`: the literal text is parsed in turn, three levels deep (EC-21)."""
    if len(arguments) < 2 or arguments[0].text not in tables().lists["program_options"]:
        return None
    text = arguments[1]
    if not arguments[0].literal or not text.literal or text.glob:
        return None
    if scene.depth >= 3:
        return unknown("programs are nested more than three levels deep")
    return scene.program(text.text, replace(scene, depth=scene.depth + 1, nested=True))


def _wrapped(rule: Rule, arguments: Sequence[Word], scene: Scene) -> Answer | None:
    """The class of what is wrapped (EC-25)."""
    if rule.judge == "env":
        arguments = _after_assignments(arguments)
        rest: Sequence[Word] = arguments
        shape: Shape | None = Shape()
    else:
        shape, rest = read_until(arguments, rule, stop=True)
    if shape is None or len(rest) < rule.skip or not all(w.literal for w in rest[: rule.skip]):
        return None
    rest = list(rest[rule.skip :])
    if rule.judge == "joined":
        return _joined(rest, scene)
    if rule.unseen:
        rest = _unseen(shape, rest)
    if not rest:
        return None
    if rest[0].text.startswith("-"):
        return None
    answer = judge(rest, replace(scene, nested=True))
    if rule.unseen and answer.effect_class is not EffectClass.READ_ONLY:
        answer = replace(answer, reach=(EVERYTHING,), paths=())
    return replace(answer, inner=(shown(rest), *answer.inner))


def _joined(rest: Sequence[Word], scene: Scene) -> Answer | None:
    """`watch` gives its words, joined, to a shell."""
    if not rest or not all(word.literal and not word.glob for word in rest):
        return None
    text = " ".join(word.text for word in rest)
    return scene.program(text, replace(scene, depth=scene.depth + 1, nested=True))


def _unseen(shape: Shape, rest: Sequence[Word]) -> list[Word]:
    """The wrapped command with the arguments that are only known when it runs."""
    if not rest:
        return [Word("echo"), UNSEEN]
    marks = [word.text for word in shape.values(["-I", "--replace"])] or (
        ["{}"] if shape.has("--replace") else []
    )
    seen = [
        programs.hidden(word, marks) if any(mark in word.text for mark in marks) else word for word in rest
    ]
    return seen if marks else [*seen, UNSEEN]


def _after_assignments(arguments: Sequence[Word]) -> Sequence[Word]:
    """What follows harmless assignments of `env`; options of `env` are left for no rule to match."""
    rest = list(arguments)
    while (
        rest
        and rest[0].literal
        and harmless_assignment(rest[0].text.partition("=")[0])
        and "=" in rest[0].text
    ):
        rest = rest[1:]
    return [] if rest and "=" in rest[0].text else rest


def harmless_assignment(name: str) -> bool:
    """Whether setting `name` changes neither programs nor meaning (EC-26)."""
    return any(fnmatchcase(name, pattern) for pattern in tables().lists["assignments"])


def _by_rules(name: str, arguments: Sequence[Word], scene: Scene) -> Answer | None:
    table = tables()
    family = table.families.get(name)
    if family is not None:
        shape, rest = read_until(arguments, family.before, stop=True)
        if shape is not None and rest:
            inner = _moved(name, shape, scene)
            found = _subcommand(name, rest, inner, family.depth)
            if found is not None:
                return _at_settings(name, found, inner)
    return _first(table.rules.get(name, ()), name, arguments, scene)


def _at_settings(name: str, answer: Answer, scene: Scene) -> Answer:
    """Note where git reads settings; a reader that does so nobody knows where cannot be kept one (EC-59)."""
    if name not in _BY_SETTINGS:
        return answer
    if scene.bases is None and answer.effect_class is EffectClass.READ_ONLY:
        return unknown(f"it is not certain in which repository {name!r} would run")
    return replace(answer, repositories=scene.bases or ())


def _in_project(name: str, answer: Answer, scene: Scene) -> Answer:
    """Note where a package client reads its project, whose files can make it run programs (EC-59)."""
    if name not in load("environment")["projects"]:
        return answer
    if scene.bases is None:
        return unknown(f"it is not certain in which project {name!r} would run")
    return replace(answer, projects=tuple((name, base) for base in scene.bases))


def _moved(name: str, shape: Shape, scene: Scene) -> Scene:
    """`-C folder` before a subcommand moves the base."""
    for word in shape.values(["-C"]):
        scene = replace(scene, bases=spots(word, scene))
    return scene


def _subcommand(name: str, rest: Sequence[Word], scene: Scene, depth: int) -> Answer | None:
    for length in range(min(depth, len(rest)), 0, -1):
        head = rest[:length]
        if not all(word.literal and not word.glob for word in head):
            continue
        key = " ".join([name, *(word.text for word in head)])
        if scene.nested and key in _amended():
            continue
        found = _first(tables().rules.get(key, ()), name, rest[length:], scene)
        if found is not None:
            return found
    return None


def _amended() -> frozenset[str]:
    """Commands that read safely only with further options, which a nested text cannot be given (EC-59)."""
    return frozenset(f"git {name}" for name in tables().lists["git_insert"])


def _first(rules: Sequence[Rule], name: str, arguments: Sequence[Word], scene: Scene) -> Answer | None:
    for rule in rules:
        shape = read(arguments, rule)
        if shape is None:
            continue
        answer = Answer(rule.effect_class, check=rule.check)
        if rule.judge is not None:
            judged = _judged(rule, shape, name, arguments, scene)
            if judged is None:
                continue
            if judged is not READS:
                answer = judged
        reach, paths = _reach(rule, shape, scene)
        return replace(answer, reach=wider(answer.reach, reach), paths=(*answer.paths, *paths))
    return None


def _judged(rule: Rule, shape: Shape, name: str, arguments: Sequence[Word], scene: Scene) -> Answer | None:
    if rule.judge == "find":
        return _find(arguments, scene)
    if rule.judge == "check_words":
        return Answer(rule.effect_class, check=programs.check_words(name, arguments))
    return JUDGES[rule.judge or ""](shape, arguments, scene)


def _reach(rule: Rule, shape: Shape, scene: Scene) -> tuple[tuple[str, ...], tuple[str, ...]]:
    reach: list[str] = []
    paths: list[str] = []
    for source in rule.reach:
        found = _names(source, shape, scene)
        if isinstance(found, tuple):
            reach.extend(found)
            continue
        more, written_paths = written(found, scene)
        reach.extend(more)
        paths.extend(written_paths)
    return tuple(reach), tuple(paths)


def _names(source: str, shape: Shape, scene: Scene) -> tuple[str, ...] | list[Word]:
    """Members, or the words that name paths, for one source of a rule's reach."""
    operands = list(shape.operands)
    by_operand = {"operands": operands, "rest": operands[1:], "last": operands[-1:], "first": operands[:1]}
    if source in by_operand:
        return by_operand[source] or [UNSEEN]
    if source == "cwd":
        return [Word(".")]
    if source.startswith("opt:"):
        names = source.removeprefix("opt:").split("|")
        return shape.values(names) or ([Word(".")] if "." in names else [UNSEEN])
    by_place: dict[str, Callable[[], tuple[str, ...]]] = {
        "repo": lambda: repository(scene),
        "remote": lambda: remote_names(shape, scene),
        "forge": lambda: forge_names(shape, scene),
        "forge_host": lambda: forge_hosts(shape, scene),
        EVERYTHING: lambda: (EVERYTHING,),
    }
    return by_place[source]()


def _find(arguments: Sequence[Word], scene: Scene) -> Answer | None:
    """`find`: its own tests and actions, and the commands it runs."""
    parsed = programs.read_find(arguments)
    if parsed is None:
        return None
    answers = [READS]
    for command in parsed.commands:
        answer = judge(command, replace(scene, nested=True, listed=True))
        if answer.effect_class is not EffectClass.READ_ONLY:
            answer = replace(answer, reach=(EVERYTHING,), paths=())
        answers.append(replace(answer, inner=(shown(command), *answer.inner)))
    if parsed.deletes:
        reach, paths = written(parsed.starts or [Word(".")], scene)
        answers.append(Answer(EffectClass.NON_IDEMPOTENT, wider(reach), paths=paths))
    if parsed.files:
        reach, paths = written(parsed.files, scene)
        answers.append(Answer(EffectClass.IDEMPOTENT_WRITE, wider(reach), paths=paths))
    return join(answers)


def _clients(words: Sequence[Word], answer: Answer) -> tuple[str, ...]:
    """Clients whose end may say something about somebody else's work (EC-57, EC-58)."""
    if answer.effect_class is EffectClass.READ_ONLY:
        return answer.clients
    found = clients_in([word.text for word in words], whole=answer.effect_class is EffectClass.UNKNOWN)
    if (
        not all(word.literal for word in words)
        and words[0].text.rpartition("/")[2] in load("exits")["only_with"]
    ):
        found = (*found, words[0].text.rpartition("/")[2])
    return tuple(sorted({*answer.clients, *found}))


def clients_in(texts: Sequence[str], *, whole: bool) -> tuple[str, ...]:
    """Known clients named first, or with `whole` anywhere, in the words of a command or a line."""
    table = load("exits")
    known = {*table["lost_reply"], *table["services"]["names"]}
    words = [part.rpartition("/")[2] for text in texts for part in _NAME.findall(text)]
    heads = words if whole else words[:1]
    needed = table["only_with"]
    return tuple(sorted({name for name in heads if name in known and needed.get(name, name) in words}))


def shown(words: Sequence[Word]) -> str:
    """A simple command as permission rules see it: one blank between words, quotes only where needed."""
    return " ".join(_shown(word) for word in words)


def _shown(word: Word) -> str:
    if not word.literal:
        return word.text
    if not word.text or any(char in " \t\n;&|<>()$`\"'\\" for char in word.text):
        return "'" + word.text.replace("'", "'\\''") + "'"
    return word.text


__all__ = ["NotUnderstood", "command_name", "harmless_assignment", "judge", "shown"]
