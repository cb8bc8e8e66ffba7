"""Pure. The line that installs an extra into this very installation (UX-140).

Owns: which kinds of installation are told apart. Does not own: which extra is missing, and what its
packages are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Installation:
    """Where this program runs: `sys.prefix`, `sys.executable`, and whether a pip is in it."""

    prefix: str
    executable: str
    has_pip: bool

    @property
    def pip(self) -> str:
        """The words in front of `install` that reach this installation and no other."""
        if self.has_pip:
            return f"{quoted(self.executable)} -m pip install"
        return f"uv pip install --python {quoted(self.executable)}"


def install_line(extra: str, where: Installation, *, alone: tuple[str, ...] = ()) -> str:
    """The command for a shell. `alone` are packages that are added without their own requirements."""
    wanted = f"'surefoot[{extra}]'"
    folder = where.prefix.replace("\\", "/")
    if "/pipx/venvs/" in folder:
        lines = [f"pipx install --force {wanted}"]
        lines += [f"pipx runpip surefoot install --no-deps {one}" for one in alone]
    elif "/uv/tools/" in folder:
        lines = [f"uv tool install --force {wanted}"]
        lines += [f"uv pip install --python {quoted(where.executable)} --no-deps {one}" for one in alone]
    else:
        lines = [f"{where.pip} {wanted}", *(f"{where.pip} --no-deps {one}" for one in alone)]
    return " && ".join(lines)


def quoted(path: str) -> str:
    """A path as one word of a shell."""
    plain = all(letter.isalnum() or letter in "/._-+" for letter in path)
    return path if plain else "'" + path.replace("'", "'\\''") + "'"
