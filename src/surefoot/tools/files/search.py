"""The tools glob and grep, and the diff surfaces show: asked of the killable worker.

Owns: their arguments, deadlines and words. Does not own: the search itself
(`searching`), the process (`tools.worker`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from surefoot.core.model import EffectTrace, State
from surefoot.machine import boot_ms
from surefoot.runtime.tools import Arguments, Body, LiveAttempt, Outcome, Tool
from surefoot.tools.files.paths import PATH, READ, Located, ledger_files, locate, path_subjects, shown
from surefoot.tools.files.plans import failed
from surefoot.tools.worker import Worker, WorkerStopped

SECONDS = 20.0
GLOB_NAMES = 500
GREP_ROWS = 500
_PATTERN = {"type": "string", "minLength": 1, "maxLength": 4096}


async def unified_diff(
    worker: Worker, before: str, after: str, *, name: str = "file", seconds: float = 5.0
) -> str:
    """The diff of two texts, made where it can be killed.

    Raises:
        WorkerStopped: it took too long.
    """
    answer: str = await worker.ask(
        {"operation": "diff", "before": before, "after": after, "name": name}, seconds
    )
    return answer


def _seconds(attempt: LiveAttempt, budget: float) -> float:
    if attempt.deadline_boot_ms is None:
        return budget
    left = attempt.deadline_boot_ms - boot_ms()
    return max(0.1, min(budget, left / 1000))


async def _asked(worker: Worker, request: Mapping[str, Any], attempt: LiveAttempt, budget: float) -> Any:
    """The worker's answer, or the outcome that says why there is none."""
    seconds = _seconds(attempt, budget)
    try:
        return await worker.ask(request, seconds)
    except WorkerStopped as stopped:
        if stopped.code == "time_limit":
            text = f"The search was stopped after {seconds:g} s. Use a simpler pattern or a smaller folder."
            return failed("time_limit", text)
        text = "The process that searches died. Nothing was changed; try a simpler search."
        return Outcome(
            text, State.FAILED, error_kind="worker_died", effect_trace=EffectTrace.NONE, transient=True
        )
    except ValueError as error:
        return failed("pattern", f"{error}.")


def _folder(located: Located, *, file_too: bool) -> Outcome | None:
    path = shown(located.path)
    if os.path.isdir(located.resolved) or (file_too and os.path.isfile(located.resolved)):  # noqa: PTH112, PTH113
        return None
    if os.path.lexists(located.resolved):
        return failed("not_a_folder", f"{path} is not a folder.")
    return failed("not_found", f"{path} does not exist.")


def _glob_body(worker: Worker, budget: float) -> Body:
    async def body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        located = locate(arguments.get("path") or ".", attempt.place)
        wrong = _folder(located, file_too=False)
        if wrong is not None:
            return wrong
        request = {
            "operation": "glob",
            "folder": located.resolved,
            "pattern": arguments["pattern"],
            "ignored_too": arguments.get("ignored_too", False),
            "limit": GLOB_NAMES,
        }
        answer = await _asked(worker, request, attempt, budget)
        if isinstance(answer, Outcome):
            return answer
        return Outcome(_names(answer, located))

    return body


def _names(answer: Mapping[str, Any], located: Located) -> str:
    names = [shown(name) for name in answer["names"]]
    if not names:
        text = f"No file below {shown(located.path)} matches."
    else:
        text = "\n".join(names)
    if answer["total"] > len(names):
        text += f"\n[{answer['total'] - len(names)} more of {answer['total']} not shown; narrow the pattern]"
    return text + _cut(answer)


def _cut(answer: Mapping[str, Any]) -> str:
    return "\n[the tree is too large; only a part of it was looked at]" if answer["cut"] else ""


def _grep_body(worker: Worker, budget: float) -> Body:
    async def body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
        located = locate(arguments.get("path") or ".", attempt.place)
        wrong = _folder(located, file_too=True)
        if wrong is not None:
            return wrong
        request = {
            "operation": "grep",
            "folder": located.resolved,
            "pattern": arguments["pattern"],
            "glob": arguments.get("glob"),
            "ignore_case": arguments.get("ignore_case", False),
            "around": arguments.get("around", 0),
            "output": arguments.get("output", "lines"),
            "ignored_too": arguments.get("ignored_too", False),
            "limit": arguments.get("limit", 100),
            "ledger_files": sorted(ledger_files(attempt.services)),
        }
        answer = await _asked(worker, request, attempt, budget)
        if isinstance(answer, Outcome):
            return answer
        return Outcome(_matches(answer, located))

    return body


def _matches(answer: Mapping[str, Any], located: Located) -> str:
    if not answer["rows"]:
        return f"No line below {shown(located.path)} matches." + _cut(answer)
    text = "\n".join(answer["rows"])
    if answer["full"]:
        text += f"\n[stopped at {len(answer['rows'])} rows; there may be more: raise `limit` or narrow the search]"
    return text + _cut(answer)


def search_tools(worker: Worker, *, seconds: float = SECONDS) -> tuple[Tool, Tool]:
    """`glob` and `grep`."""
    ignored = {"type": "boolean", "description": "Look into files that .gitignore names too."}
    glob = Tool(
        name="glob",
        description=(
            "Find files by a name pattern such as `src/**/*.py` or `**/*.{ts,tsx}`, relative to `path`; newest "
            "first. `*` stays inside one folder, `**` goes through any number. Skips `.git` and what the "
            "repository's .gitignore files name."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {**_PATTERN, "description": "Pattern over the path below `path`."},
                "path": {**PATH, "description": "Folder to look in; the working directory by default."},
                "ignored_too": ignored,
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        body=_glob_body(worker, seconds),
        effect=READ,
        aliases=("Glob", "find_files"),
        rule_name="Glob",
        subjects=path_subjects("path"),
        summary=lambda a: f"glob {a.get('pattern')}",
    )
    grep = Tool(
        name="grep",
        description=(
            "Search text files line by line with a regular expression (Python syntax). Rows read "
            "`path:line:text`. Skips binary files, `.git` and what .gitignore names."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {**_PATTERN, "description": "Regular expression."},
                "path": {**PATH, "description": "Folder or file; the working directory by default."},
                "glob": {**_PATTERN, "description": "Only files whose name matches, e.g. `*.py`."},
                "ignore_case": {"type": "boolean"},
                "around": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 20,
                    "description": "Lines of context.",
                },
                "output": {"type": "string", "enum": ["lines", "files", "count"]},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": GREP_ROWS,
                    "description": "Rows (100).",
                },
                "ignored_too": ignored,
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        body=_grep_body(worker, seconds),
        effect=READ,
        aliases=("Grep", "search", "search_files"),
        rule_name="Grep",
        subjects=path_subjects("path"),
        summary=lambda a: f"grep {a.get('pattern')}",
    )
    return glob, grep
