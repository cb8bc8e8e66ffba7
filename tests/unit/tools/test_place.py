"""Where a session works: what is read of a repository's own files, whatever bytes they hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from surefoot.tools.place import find_place
from surefoot.verifiers.repository import common_folder

SETTINGS = b'[user]\n\tname = J\xfcrgen\n[remote "origin"]\n\turl = git@example.org:o/n.git\n'


@pytest.mark.parametrize("name", [b"plain", b"gr\xfcn", "grün 目录".encode()])
def test_ec_6_a_remote_is_known_whatever_the_encoding_of_the_settings_and_the_paths_of_git(
    tmp_path: Path, name: bytes
) -> None:
    whole = tmp_path / os.fsdecode(name)
    private = whole / ".git" / "worktrees" / "side"
    private.mkdir(parents=True)
    (whole / ".git" / "config").write_bytes(SETTINGS)
    (private / "commondir").write_text("../..\n")
    side = tmp_path / "side"
    side.mkdir()
    (side / ".git").write_bytes(b"gitdir: " + os.fsencode(private) + b"\n")
    for directory in (whole, side):
        assert find_place(directory).remotes == {"origin": "example.org/o/n"}
        assert common_folder(directory) == (whole / ".git").resolve()
