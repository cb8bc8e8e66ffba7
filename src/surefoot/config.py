"""Settings with their origin: which value holds, and who set it.

Owns: the frozen `Settings`, precedence (UX-22), what a project may not set
(UX-24), endpoints that an environment variable alone makes usable. Does not
own: the list of settings (`settings_table`), files and places (`settings_files`).

Order, highest first: managed, flags, environment, project own, project shared,
user, built in. A wrong value is a `SettingsError` that names file, line and what
is allowed; an unknown or forbidden key is a warning.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from surefoot.errors import ProviderCredentials, SettingsError
from surefoot.ledger.places import project_name, project_root
from surefoot.settings_files import (
    Found,
    Instructions,
    Places,
    is_trusted,
    left_out,
    places,
    project_files,
    read_instructions,
    read_settings,
    set_trust,
)
from surefoot.settings_hooks import CLASSES, HookSetting, read_hooks
from surefoot.settings_table import (
    EXAMPLE,
    LIMITS,
    MODE_ALIASES,
    SETTINGS,
    UNIONS,
    VENDOR_KEYS,
    Form,
    forbidden_in_project,
    form_of,
    inner_table,
    nearest,
)

BUILT_IN = "built in"
SMALL_TOOLS = ["read", "list", "glob", "grep", "write", "edit", "shell"]
"""What the built-in small model is offered: more tools are more than it can choose from."""
NOT_SETTINGS = frozenset({"SUREFOOT_HOME", "SUREFOOT_TOOL_RECOVERY_RETRY"})
KEY_COMMAND_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a value: `source` is a level of UX-22, `where` a file with line, a variable or a flag."""

    source: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.source} ({self.where})" if self.where else self.source


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model server. The key itself is never kept here (UX-26)."""

    name: str
    url: str = ""
    wire: str = "chat"
    contract: str = "compat/chat"
    model: str | None = None
    key_env: str | None = None
    key_command: tuple[str, ...] = ()
    hosted_tools: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Names of the only tools this model is offered, as far as `--tools` says nothing; empty offers all."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request; their values may be secret."""
    effort: str | None = None
    """How much the model reasons, in a word of its contract; None leaves it to the server."""
    reasoning_protocol: str | None = None
    embedded: bool = False
    """The server of the extra `local`, started by surefoot itself."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The endpoint and model of a run."""

    endpoint: Endpoint
    model: str
    effort: str | None = None
    """Of `--effort`, else of the endpoint."""

    def __str__(self) -> str:
        return f"{self.endpoint.name}/{self.model}"


@dataclass(frozen=True, slots=True)
class Recovery:
    """The table `recovery`; meanings as in the example file."""

    barrier: str = "reach"
    on_unknown: str = "stop"
    automatic: str = "on"
    inspect_on_resume: bool = True
    inspect_seconds: float = 10
    resume_retry: str = "safe"
    crash_attempts: int = 2
    release_stopped_checks: bool = True
    max_requests_per_step: int = 6
    accept_elicitation: bool = True
    assurance_for_irreversible: str = "same-user"
    policy: Mapping[str, str] = field(default_factory=dict)
    """Tool → what is done about an unknown call of it without asking (TR-122)."""


@dataclass(frozen=True, slots=True)
class Permissions:
    """Mode and rules; deny beats ask beats allow, whatever their source."""

    mode: str = "default"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolWord:
    """What a settings file says of all calls of one tool (EC-8)."""

    name: str
    effect_class: str
    reach: tuple[str, ...] | None
    """None is `*`."""
    reason: str
    """Why, as the owner says it in listings; empty for a project's."""
    source: str
    """`owner`, or `project`, which can only make stricter."""
    where: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a run needs to know of its person. Frozen; made by `load_settings`."""

    model: str | None
    language: str
    endpoints: Mapping[str, Endpoint]
    recovery: Recovery
    limits: Mapping[str, float]
    permissions: Permissions
    packs: tuple[str, ...]
    mcp_servers: Mapping[str, Mapping[str, Any]]
    """As in the file; keys of `mcp.servers.<name>` in their own nesting."""
    places: Places
    root: Path
    """Repository root, or the directory outside a repository."""
    trusted: bool
    tool_words: tuple[ToolWord, ...] = ()
    http_services: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The tables `tools.http.services.*`, as in the file."""
    hooks: tuple[HookSetting, ...] = ()
    offered_tools: tuple[str, ...] | None = None
    """Names of the only tools to offer (`--tools`); None offers all."""
    effort: str | None = None
    """How much the model reasons in this run (`--effort`); None leaves it to the endpoint's own setting."""
    added_folders: tuple[Path, ...] = ()
    """Folders beside the project that may be worked in (`--add-dir`), real paths."""
    system_text: tuple[str | None, str | None] = (None, None)
    """Words in the place of our system text, and words behind it (`--system-prompt`, `--append-system-prompt`)."""
    values: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """One line each, for standard error."""

    def chosen(self) -> Chosen:
        """Endpoint and model of `-m`, of `model`, or the first endpoint that has a key.

        Raises:
            SettingsError: none is named and none is usable, or the name is not configured.
        """
        wanted = self.model or self._first_usable()
        name, _, model = wanted.partition("/")
        endpoint = self.endpoints.get(name)
        if endpoint is None and name in VENDOR_KEYS:
            variable = VENDOR_KEYS[name]
            raise SettingsError(
                f"There is no key for {name!r}: the variable {variable} is not set, and no [endpoints.{name}] stands"
                f" in {self.places.settings_file}.",
                next_command=f"export {variable}=…",
            )
        if endpoint is None:
            known = ", ".join(sorted(self.endpoints)) or "none"
            raise SettingsError(
                f"No endpoint is named {name!r} (known: {known}). Add [endpoints.{name}] to"
                f" {self.places.settings_file}, or name another with -m ENDPOINT/MODEL.",
                next_command="surefoot config show --example",
            )
        model = model or endpoint.model or ""
        if not model:
            raise SettingsError(f"Endpoint {name!r} has no model. Name one with -m {name}/MODEL.")
        return Chosen(endpoint, model, self.effort or endpoint.effort)

    def _first_usable(self) -> str:
        for name, endpoint in self.endpoints.items():
            if not endpoint.embedded:
                return name
        raise SettingsError(
            "No model is configured. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or DEEPSEEK_API_KEY, add an endpoint to"
            f" {self.places.settings_file}, or use the built-in small model with -m local.",
            next_command="surefoot config show --example",
        )

    def rows(self) -> list[tuple[str, Any, Origin]]:
        """Every setting with a value: path, value, origin; in order of the table."""
        return [(path, value, self.origins[path]) for path, value in self.values.items()]


@dataclass(slots=True)
class _Sum:
    """What was gathered so far while levels are laid over each other."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def lay(self, path: str, value: Any, origin: Origin) -> None:
        """A higher level replaces a lower one; lists of rules are joined."""
        before = self.values.get(path)
        if path not in UNIONS or origin.source == BUILT_IN or not before:
            self.values[path], self.origins[path] = value, origin
            return
        self.values[path] = [*before, *(rule for rule in value if rule not in before)]
        sources = f"{self.origins[path].source}, {origin.source}"
        self.origins[path] = Origin(sources, f"{self.origins[path].where}, {origin.where}")


def load_settings(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    directory: Path,
    *,
    trust: bool | None = None,
) -> Settings:
    """Read every level and say what holds.

    `flags` maps setting paths to values given on the command line. `trust` replaces
    the store's answer for this run only; None asks the store, and nobody is asked.

    Raises:
        SettingsError: a file cannot be read or a value has the wrong form; exit 2.
    """
    where, root = places(environ), project_root(directory)
    total = _Sum()
    for path, form in SETTINGS.items():
        if form.default is not None and "*" not in path:
            total.lay(path, form.default, Origin(BUILT_IN))
    for path, value, variable in _endpoints_of_environment(environ):
        total.lay(path, value, Origin(BUILT_IN, variable))
    _lay_file(total, read_settings(where.settings_file), "user")
    trusted = is_trusted(where, root) if trust is None else trust
    _lay_project(total, root, trusted)
    _lay_environment(total, environ)
    for path, value in flags.items():
        if value is not None:
            total.lay(path, _checked(path, value, "the command line"), Origin("flags"))
    for file in where.managed_files:
        _lay_managed(total, read_settings(file))
    return _built(total, where, root, trusted)


def _lay_file(total: _Sum, found: Iterable[Found], source: str) -> None:
    for one in found:
        value = _accepted(total, one)
        if value is not None:
            total.lay(one.path, value, Origin(source, one.where))


def _lay_project(total: _Sum, root: Path, trusted: bool) -> None:
    if not trusted:
        names = left_out(root)
        if names:
            total.warnings.append(
                f"{root} is not trusted, so this was left out: {', '.join(names)}."
                f" `surefoot trust {root}` accepts it."
            )
        return
    shared, own = project_files(root)
    for files, source in ((shared, "project shared"), (own, "project own")):
        for file in files:
            for one in read_settings(file):
                value = _accepted(total, one)
                if value is None:
                    continue
                why = forbidden_in_project(one.path, value)
                if not why and _is_laxer(one.path, value, total.values.get(one.path)):
                    continue  # what holds already is stricter
                if why:
                    total.warnings.append(f"{one.where}: {one.path} was ignored: {why}.")
                else:
                    total.lay(one.path, value, Origin(source, one.where))


def _is_laxer(path: str, value: Any, before: Any) -> bool:
    """Whether a project's class of a tool is less strict than the one laid before it."""
    is_class = path.startswith("tools.") and path.endswith(".class")
    return is_class and before is not None and CLASSES.index(value) < CLASSES.index(before)


def _lay_managed(total: _Sum, found: list[Found]) -> None:
    final: list[str] = next((one.value for one in found if one.path == "final"), [])
    for one in found:
        value = _accepted(total, one)
        if value is None or one.path == "final":
            continue
        if one.path in final:  # what others added to a list does not count either
            total.values.pop(one.path, None)
        total.lay(one.path, value, Origin("managed, final" if one.path in final else "managed", one.where))


def _accepted(total: _Sum, one: Found) -> Any:
    """The value, or None with a warning when surefoot knows no such setting."""
    if form_of(one.path) is None:
        if inner_table(one.path):
            if one.value == {}:
                return None
            raise SettingsError(f"{one.where}: {one.path} must be a table, written as [{one.path}].")
        near = nearest(one.path)
        hint = f"; did you mean {near}?" if near else ""
        total.warnings.append(f"{one.where}: {one.path} is not a setting of surefoot{hint}")
        return None
    return _checked(one.path, one.value, one.where)


def _checked(path: str, value: Any, where: str) -> Any:
    form = form_of(path)
    if form is None:
        raise SettingsError(f"{where}: {path} is not a setting of surefoot.")
    problem = form.problem(value)
    if problem:
        raise SettingsError(
            f"{where}: {path} must be {problem}.", next_command="surefoot config show --example"
        )
    return MODE_ALIASES.get(value, value) if path == "permissions.mode" else value


def variable_of(path: str) -> str:
    """The environment variable of a setting (UX-22)."""
    return "SUREFOOT_" + path.replace(".", "_").replace("-", "_").upper()


def _lay_environment(total: _Sum, environ: Mapping[str, str]) -> None:
    paths = [
        path for path in SETTINGS if "*" not in path and path != "final" and SETTINGS[path].kind != "hooks"
    ]
    names = {path.split(".")[1] for path in total.values if path.startswith("endpoints.")}
    stars = [path for path in SETTINGS if path.startswith("endpoints.*.")]
    paths += [star.replace("*", name) for star in stars for name in sorted(names)]
    for path in paths:
        variable = variable_of(path)
        given = environ.get(variable)
        if given is None and path == "recovery.barrier":
            variable = "SUREFOOT_BARRIER"
            given = environ.get(variable)
        if given is None or variable in NOT_SETTINGS:
            continue
        form = form_of(path)
        value = _from_text(given, form) if form else given
        total.lay(path, _checked(path, value, variable), Origin("environment", variable))


def _from_text(text: str, form: Form) -> Any:
    """What a person means by the text of a variable; a text that does not fit is refused by its form."""
    if form.kind == "switch":
        return {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False}.get(
            text.lower(), False if text.lower() in ("off", "no") else text
        )
    if form.kind in ("number", "seconds"):
        try:
            return int(text)
        except ValueError:
            pass
        try:
            return float(text)
        except ValueError:
            return text
    if form.kind == "words":
        if text.lstrip().startswith("["):
            try:
                return json.loads(text)
            except ValueError:
                return text
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _endpoints_of_environment(environ: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    """Endpoints that need no settings: a vendor's usual variable is enough (UX-26)."""
    made: list[tuple[str, Any, str]] = []
    if environ.get("OPENAI_API_KEY"):
        url = environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        made += _endpoint("openai", url, "openai/chat", "gpt-4.1-mini", "OPENAI_API_KEY")
    if environ.get("DEEPSEEK_API_KEY"):
        url = environ.get("DEEPSEEK_BASE_URL") or "https://api.deepseek.com"
        made += _endpoint("deepseek", url, "deepseek/chat", "deepseek-chat", "DEEPSEEK_API_KEY")
    if environ.get("ANTHROPIC_API_KEY"):
        # As the vendor's SDK reads it: the variable ends before the version.
        url = (environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com").rstrip("/") + "/v1"
        contract = "anthropic/anthropic"
        made += _endpoint("anthropic", url, contract, "claude-sonnet-4-5", "ANTHROPIC_API_KEY")
    made += [
        ("endpoints.local.wire", "chat", ""),
        ("endpoints.local.contract", "llamacpp/chat", ""),
        ("endpoints.local.model", "smollm2", ""),
        ("endpoints.local.tools", SMALL_TOOLS, ""),
    ]
    return made


def _endpoint(name: str, url: str, contract: str, model: str, key_env: str) -> list[tuple[str, Any, str]]:
    wire = contract.partition("/")[2]
    values = {"url": url, "wire": wire, "contract": contract, "model": model, "key_env": key_env}
    return [(f"endpoints.{name}.{key}", value, key_env) for key, value in values.items()]


def _built(total: _Sum, where: Places, root: Path, trusted: bool) -> Settings:
    values = total.values
    ordered = sorted(values, key=_place_in_table)
    endpoints = {name: _endpoint_of(name, keys) for name, keys in _tables(values, "endpoints").items()}
    policy = _table(values, "recovery.policy")
    recovery = {key: value for key, value in _table(values, "recovery").items() if "." not in key}
    rules = {key: tuple(value) for key, value in _table(values, "permissions").items() if key != "mode"}
    return Settings(
        model=values.get("model"),
        language=values["language"],
        endpoints=MappingProxyType(endpoints),
        recovery=Recovery(**recovery, policy=MappingProxyType(policy)),
        limits=MappingProxyType({name: values[f"limits.{name}"] for name in LIMITS}),
        permissions=Permissions(mode=values["permissions.mode"], **rules),
        packs=tuple(values["packs.use"]),
        mcp_servers=MappingProxyType(_tables(values, "mcp.servers")),
        places=where,
        root=root,
        trusted=trusted,
        tool_words=_tool_words(total),
        http_services=MappingProxyType(_tables(values, "tools.http.services")),
        hooks=read_hooks(values),
        values=MappingProxyType({path: values[path] for path in ordered}),
        origins=MappingProxyType({path: total.origins[path] for path in ordered}),
        warnings=tuple(total.warnings),
    )


def _place_in_table(path: str) -> tuple[int, str]:
    tables = (
        "model", "language", "screen_reader", "endpoints", "recovery", "limits", "packs", "permissions", "tools",
        "hooks", "mcp",
    )  # fmt: skip
    head = path.split(".")[0]
    return (tables.index(head) if head in tables else len(tables), path)


def _table(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    head = name + "."
    return {path[len(head) :]: value for path, value in values.items() if path.startswith(head)}


def _tables(values: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """The tables below `name`, in their own nesting."""
    found: dict[str, dict[str, Any]] = {}
    for path, value in _table(values, name).items():
        first, *rest = path.split(".")
        table = found.setdefault(first, {})
        for part in rest[:-1]:
            table = table.setdefault(part, {})
        if rest:
            table[rest[-1]] = value
    return found


_WORD_KEYS = ("class", "reach", "reason")


def _tool_words(total: _Sum) -> tuple[ToolWord, ...]:
    """What is said of tools, with who said the class. Raises `SettingsError` for a word that is not whole."""
    found = []
    for name, keys in _tables(total.values, "tools").items():
        said = [key for key in _WORD_KEYS if key in keys]
        if not said:
            continue
        at = f"tools.{name}"
        if "class" not in keys:
            raise SettingsError(
                f"{total.origins[f'{at}.{said[0]}'].where}: {at}.{said[0]} needs {at}.class beside it."
            )
        origin = total.origins[f"{at}.class"]
        source = "project" if origin.source.startswith("project") else "owner"
        if source == "owner" and not str(keys.get("reason", "")).strip():
            raise SettingsError(
                f"{origin.where}: {at}.class needs {at}.reason beside it, which listings show."
                f' Write why, as in reason = "the server drops repeats".'
            )
        reach = tuple(keys["reach"]) if "reach" in keys else None
        reason = str(keys.get("reason", ""))
        found.append(ToolWord(name, keys["class"], reach, reason, source, origin.where))
    return tuple(found)


def _endpoint_of(name: str, keys: Mapping[str, Any]) -> Endpoint:
    wire = keys.get("wire", "chat")
    return Endpoint(
        name=name,
        url=keys.get("url", ""),
        wire=wire,
        contract=keys.get("contract", f"compat/{wire}"),
        model=keys.get("model"),
        key_env=keys.get("key_env"),
        key_command=tuple(keys.get("key_command", ())),
        hosted_tools=tuple(keys.get("hosted_tools", ())),
        tools=tuple(keys.get("tools", ())),
        headers=MappingProxyType(dict(keys.get("headers", {}))),
        effort=keys.get("effort"),
        reasoning_protocol=keys.get("reasoning_protocol"),
        embedded=name == "local" and not keys.get("url"),
    )


def read_key(endpoint: Endpoint, environ: Mapping[str, str] | None = None) -> str | None:
    """The key of an endpoint, or None for a server that needs none. Never logged, never shown.

    Raises:
        ProviderCredentials: a key is configured and cannot be had; names the variable or command.
    """
    variables = os.environ if environ is None else environ
    if endpoint.key_env and variables.get(endpoint.key_env):
        return variables[endpoint.key_env].strip()
    if endpoint.key_command:
        return _key_from_command(endpoint)
    if endpoint.key_env:
        raise ProviderCredentials(
            f"No key for endpoint {endpoint.name!r}: set the variable {endpoint.key_env}.",
            next_command=f"export {endpoint.key_env}=…",
        )
    return None


def _key_from_command(endpoint: Endpoint) -> str:
    shown = endpoint.key_command[0]
    try:
        done = subprocess.run(
            list(endpoint.key_command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=KEY_COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = type(error).__name__
        raise ProviderCredentials(
            f"The key command {shown!r} of endpoint {endpoint.name!r} did not answer ({reason})."
            " Run it by hand and correct key_command."
        ) from None
    key = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0 or not key:
        raise ProviderCredentials(
            f"The key command {shown!r} of endpoint {endpoint.name!r} gave no key"
            f" (exit code {done.returncode}). Run it by hand and correct key_command."
        )
    return key


__all__ = [
    "EXAMPLE",
    "Chosen",
    "Endpoint",
    "Instructions",
    "Origin",
    "Permissions",
    "Places",
    "Recovery",
    "Settings",
    "ToolWord",
    "is_trusted",
    "load_settings",
    "places",
    "project_name",
    "project_root",
    "read_instructions",
    "read_key",
    "set_trust",
    "variable_of",
]
