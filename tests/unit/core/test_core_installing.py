"""The line that installs an extra, for each kind of installation."""

from __future__ import annotations

import pytest

from surefoot.core.installing import Installation, install_line


@pytest.mark.parametrize(
    ("where", "line"),
    [
        (("/v", "/v/bin/python", True), "/v/bin/python -m pip install 'surefoot[postgres]'"),
        (("/v", "/my v/python", True), "'/my v/python' -m pip install 'surefoot[postgres]'"),
        (("/v", "/v/bin/python", False), "uv pip install --python /v/bin/python 'surefoot[postgres]'"),
        (("/h/.local/share/pipx/venvs/surefoot", "/x", True), "pipx install --force 'surefoot[postgres]'"),
        (("/h/.local/share/uv/tools/surefoot", "/x", False), "uv tool install --force 'surefoot[postgres]'"),
    ],
)
def test_ux_140_the_line_fits_this_kind_of_installation(where: tuple[str, str, bool], line: str) -> None:
    assert install_line("postgres", Installation(*where)) == line


def test_ux_140_what_comes_without_its_requirements_follows_in_the_same_line() -> None:
    pipx = Installation("/h/pipx/venvs/surefoot", "/x", True)
    assert install_line("local", pipx, alone=("model",)).endswith(
        "'surefoot[local]' && pipx runpip surefoot install --no-deps model"
    )
