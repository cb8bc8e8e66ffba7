"""Two containers on one volume: children of a crash test in process name spaces of their own.

Owns: making a name space with an init that lives as long as the test wants, running
children inside it, and ending it whole. Does not own: what must be true afterwards.

Where the kernel refuses name spaces, a container is pretended: its children live with all
others and only say that they are elsewhere. What surefoot concludes from its own records is
then tested all the same; that a real process cannot be seen is not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from surefoot.testing.child import ChildSpec
from surefoot.testing.crash import MARK, Ended, end_leftovers, leftovers, run_child
from surefoot.testing.nursery import kill_group

_MAKE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
_ENTER = ("nsenter", "--pid", "--mount")
_AS_USER = ("--user", "--map-root-user")
_INIT = ("sh", "-c", "echo up; cat; :")
"""An init that ends when its standard input does, and adopts whatever is orphaned inside."""


@dataclass(frozen=True, slots=True)
class Container:
    """A process name space; `prefix` enters it, and is empty when it is pretended."""

    name: str
    directory: Path
    prefix: tuple[str, ...] = ()
    init: int = 0

    @property
    def real(self) -> bool:
        """Whether the kernel made it."""
        return bool(self.prefix)

    def run(self, spec: ChildSpec) -> Ended:
        """Run a child in here to its end."""
        return run_child(self._told(spec), self.directory, prefix=self.prefix)

    @contextlib.contextmanager
    def started(self, spec: ChildSpec) -> Iterator[subprocess.Popen[bytes]]:
        """Start a child in here and leave it running; its group is killed at the end.

        It writes `trace-NAME.txt` and `report-NAME.json` of this container's name.
        """
        spec = dataclasses.replace(
            self._told(spec),
            trace=str(self.directory / f"trace-{self.name}.txt"),
            report=str(self.directory / f"report-{self.name}.json"),
        )
        path = self.directory / f"started-{self.name}.json"
        path.write_text(spec.to_json(), encoding="utf-8")
        command = [*self.prefix, sys.executable, "-m", "surefoot.testing.child", str(path)]
        environ = {**os.environ, MARK: str(self.directory)}
        null = subprocess.DEVNULL
        with subprocess.Popen(
            command, stdin=null, stdout=null, stderr=null, start_new_session=True, env=environ
        ) as process:
            try:
                yield process
            finally:
                kill_group(process.pid)

    def kill(self) -> None:
        """End everything in here at once, as when a container is removed."""
        if self.real:
            os.kill(self.init, signal.SIGKILL)
        else:
            for pid in leftovers(self.directory):  # none may see another one die
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            end_leftovers(self.directory)

    def _told(self, spec: ChildSpec) -> ChildSpec:
        return spec if self.real else dataclasses.replace(spec, name_space=f"pid:[{self.name}]")


@contextlib.contextmanager
def container(name: str, directory: Path) -> Iterator[Container]:
    """A container whose children belong to the site in `directory`; it ends with the block."""
    for user in ((), _AS_USER):
        with _made(user) as init:
            if init is not None:
                enter = (*_ENTER, f"--target={init}", *(("--user", "--preserve-credentials") if user else ()))
                yield Container(name, directory, enter, init)
                return
    yield Container(name, directory)


@contextlib.contextmanager
def _made(user: tuple[str, ...]) -> Iterator[int | None]:
    """The pid of a new init as it is seen from here; None when the kernel or the machine refuses."""
    if shutil.which(_MAKE[0]) is None or shutil.which(_ENTER[0]) is None:
        yield None
        return
    command = [_MAKE[0], *user, *_MAKE[1:], *_INIT]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null) as process:
        said = process.stdout.readline() if process.stdout is not None else b""
        try:
            yield _child_of(process.pid) if said == b"up\n" else None
        finally:
            process.kill()


def _child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
