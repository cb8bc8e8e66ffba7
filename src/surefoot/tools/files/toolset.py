"""The built-in file tools, declared together because they share what the model has seen.

Owns: `file_tools`. Does not own: the tools themselves, and their registration (`app`).
"""

from __future__ import annotations

from surefoot.runtime.tools import Tool
from surefoot.tools.files.disk import Disk
from surefoot.tools.files.moving import moving_tools
from surefoot.tools.files.plans import SeenFiles
from surefoot.tools.files.reading import reading_tools
from surefoot.tools.files.search import search_tools
from surefoot.tools.files.writing import edit_tools, write_tool
from surefoot.tools.worker import Worker
from surefoot.verifiers.files import FilesVerifier


def file_tools(
    *, worker: Worker | None = None, verifier: FilesVerifier | None = None, disk: Disk | None = None
) -> tuple[Tool, ...]:
    """read, list, glob, grep, write, edit, multi_edit, delete, move and make_directory.

    `worker` is shared with whoever else searches and is closed by its maker; one made
    here ends with the program. `verifier` should know the ledger's files and write roots.
    """
    seen = SeenFiles()
    looks = verifier or FilesVerifier()
    return (
        *reading_tools(seen),
        *search_tools(worker or Worker()),
        write_tool(seen, looks, disk),
        *edit_tools(seen, looks, disk),
        *moving_tools(seen, looks, disk),
    )
