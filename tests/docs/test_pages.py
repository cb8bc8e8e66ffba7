"""Every printed claim: commands, settings, links, errors, fields and examples."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import console

from surefoot import errors
from surefoot.config import load_settings
from surefoot.core.model import receipt_fields
from surefoot.settings_table import EXAMPLE, LIMITS, SETTINGS
from surefoot.surfaces import verdict
from surefoot.surfaces.cli.entry import COMMANDS, commands, help_text
from surefoot.surfaces.cli.talk import run, talk

ROOT = console.ROOT
TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = sorted([*(ROOT / name for name in TOP), *(ROOT / "docs").rglob("*.md")])
PLAYED = [page for page in PAGES if console.blocks(page.read_text(encoding="utf-8"), "console")]
EXAMPLES = sorted((ROOT / "docs_src").glob("*.py"))


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def first_cells(page: str) -> list[str]:
    """The names in backticks of the first column of all tables of a page."""
    found = []
    for line in text_of(page).splitlines():
        if line.startswith("| `"):
            found += re.findall(r"`([^`]+)`", line.split("|")[1])
    return found


@pytest.mark.parametrize("page", PLAYED, ids=name)
def test_every_console_block_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    found = console.faults(page.read_text(encoding="utf-8"), tmp_path)
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name(page)}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings]
            assert anchor in slugs, f"{name(page)}: {target}; headings are {slugs}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_toml_block_loads_without_a_warning(page: Path, tmp_path: Path) -> None:
    for block in console.blocks(page.read_text(encoding="utf-8"), "toml"):
        (tmp_path / "config.toml").write_text(block, encoding="utf-8")
        settings = load_settings({}, {"SUREFOOT_HOME": str(tmp_path)}, tmp_path)
        assert not settings.warnings, f"{name(page)}: {settings.warnings}"
        assert tomllib.loads(block)


def test_ux_28_the_example_file_loads_and_holds_every_key_it_shows(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(EXAMPLE, encoding="utf-8")
    settings = load_settings({}, {"SUREFOOT_HOME": str(tmp_path), "GITHUB_TOKEN": "x"}, tmp_path)
    assert not settings.warnings
    assert str(settings.chosen()) == "deepseek/deepseek-chat"


def test_ux_9_every_error_code_has_a_page_and_every_page_a_code() -> None:
    def tree(kind: type[errors.SurefootError]) -> Iterator[type[errors.SurefootError]]:
        yield kind
        for child in kind.__subclasses__():
            yield from tree(child)

    codes = {kind.code for kind in tree(errors.SurefootError) if kind.__module__ == "surefoot.errors"}
    folder = ROOT / "docs/errors"
    assert {page.stem for page in folder.glob("SF-*.md")} == codes
    index = (folder / "index.md").read_text(encoding="utf-8")
    for code in codes:
        text = (folder / f"{code}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {code}\n")
        for heading in ("## What it means", "## What to do", "## Common causes"):
            assert heading in text, code
        assert f"[{code}]({code}.md)" in index


def leaves(command: click.Command, path: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for one in command.list_commands(context):
            inner = command.get_command(context, one)
            if inner is not None and not inner.hidden:
                yield from leaves(inner, f"{path} {one}")
    else:
        yield path


def test_the_page_of_commands_names_every_command_and_no_other() -> None:
    real = {*leaves(commands, "surefoot"), "surefoot recover"}
    real |= {f"surefoot {word}" for word, (_, told) in COMMANDS.items() if not told}  # other names
    listed = {
        " ".join(cell.split()[:3])
        for cell in first_cells("reference/commands.md")
        if re.match(r"surefoot [a-z]+", cell)
    }
    assert listed == real


def test_the_page_of_commands_names_every_flag_of_a_run_and_no_other() -> None:
    real = {option for command in (talk, run) for one in command.params for option in one.opts}
    real -= {"words"}
    real |= {"-h", "--help", "-V", "--version"}
    listed = {cell for cell in first_cells("reference/commands.md") if cell.startswith("-")}
    assert listed - {"-r REF"} == real


def test_the_help_names_every_command_once() -> None:
    told = help_text().split("Commands:")[1]
    for word, (_, told_help) in COMMANDS.items():
        assert len(re.findall(rf"^  {word} ", told, re.MULTILINE)) == bool(told_help)


def test_the_page_of_settings_has_every_setting_with_its_default() -> None:
    listed = {cell for cell in first_cells("reference/settings.md") if not cell.isupper()}
    listed = {cell for cell in listed if not re.match(r"[A-Z_]+(=1)?$", cell)}
    assert listed == set(SETTINGS)
    text = text_of("reference/settings.md")
    for key, form in LIMITS.items():
        assert f"| `limits.{key}` | `{form.default}` {form.unit} |" in text, key
    for path, form in SETTINGS.items():
        if form.allowed and not path.startswith("mcp."):
            line = next(line for line in text.splitlines() if line.startswith(f"| `{path}` |"))
            assert all(f"`{word}`" in line for word in form.allowed), path
            assert form.default is None or f"| `{form.default}` |" in line, path


def test_the_page_of_the_receipt_has_every_field() -> None:
    assert first_cells("reference/receipt.md") == [key for _, key in receipt_fields()]


def test_the_page_of_exit_codes_has_every_code_with_its_subtype() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", text_of("reference/exit-codes.md"), re.MULTILINE)
    assert {int(code): word for code, word in rows} == dict(verdict.SUBTYPES)
    order = re.search(r"first of ([\d, ]+) is given", text_of("reference/exit-codes.md"))
    assert order is not None
    assert tuple(int(code) for code in order.group(1).split(", ")) == verdict.ORDER
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for code in verdict.SUBTYPES:
        assert re.search(rf"^\| .*\b{code}\b.* \|", readme, re.MULTILINE), code


def test_the_page_of_json_has_every_field_of_the_result() -> None:
    document = verdict.result_document(verdict.Ending(), verdict.Tally())
    text = text_of("reference/output-json.md")
    head = text.split("## The lines")[0]
    listed = re.findall(
        r"`(\w+)`", "\n".join(line.split("|")[1] for line in head.splitlines() if line.startswith("| `"))
    )
    assert set(listed) == set(document)


def test_the_page_of_promises_has_every_promise() -> None:
    promises = tomllib.loads((ROOT / "tests/promises/promises.toml").read_text(encoding="utf-8"))["promises"]
    assert first_cells("explanation/what-is-promised.md") == list(promises)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_ux_153_every_example_runs_and_stands_in_a_page(example: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "SUREFOOT_HOME": str(tmp_path / "home")}
    ended = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    source = example.read_text(encoding="utf-8").strip()
    assert any(source in page.read_text(encoding="utf-8") for page in PAGES), "no page shows it whole"


@pytest.mark.parametrize("name", ["guard_payment.py", "declare_tool.py"])
def test_ux_149_wrapping_a_function_of_ones_own_takes_six_lines_at_most(name: str) -> None:
    body = ast.parse((ROOT / "docs_src" / name).read_text(encoding="utf-8")).body
    imports = [one for one in body if isinstance(one, ast.Import) and one.names[0].name == "surefoot"]
    block = next(one for one in body if isinstance(one, ast.With))
    guards = [one for one in block.body if "session.guard(" in ast.unparse(one)]
    header = block.body[0].lineno - block.lineno
    lines = header + sum((one.end_lineno or 0) - one.lineno + 1 for one in [*imports, *guards])
    assert len(imports) == len(guards) == 1
    assert lines <= 6


def test_the_guarded_payment_is_made_once(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "docs_src/guard_payment.py")], cwd=tmp_path, check=True)
    assert len((tmp_path / "charges.txt").read_text().splitlines()) == 1


def test_every_scripted_model_belongs_to_a_page() -> None:
    named = {
        found.group(1)
        for page in PAGES
        if (found := re.search(r"<!-- model: ([\w-]+) -->", page.read_text(encoding="utf-8")))
    }
    assert named == {path.stem for path in (ROOT / "docs_src/models").glob("*.json")} | {"NAME"} & named


def test_make_targets_that_pages_name_exist() -> None:
    made = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"(?:`|\$ |^)make ([a-z-]+)\b", page.read_text(encoding="utf-8"), re.M):
            assert target in made, f"{name(page)}: make {target}"
