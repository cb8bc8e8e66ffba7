"""The warm server: a clean process that forks a supervisor for each command.

Owns: its start without site, settings or project code, receiving requests as descriptors,
and forking. Does not own: the command (`supervisor`). It never reads a request, so it holds
no secret and no command. It ends when the agent does; the supervisors stay.

Started with an interpreter that imports nothing of surefoot but the three small modules
beside this one: `BOOTSTRAP` puts empty packages in place of those whose `__init__` could do more.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys

from surefoot.tools.processes import kernel, supervisor

CHANNEL = 3
"""Descriptor of the control channel (warm) or of the request (cold)."""
PLACE = 4
"""Descriptor of the run folder when started cold."""

BOOTSTRAP = """\
import sys, types
root = sys.argv[1]
for name in ("surefoot", "surefoot.tools", "surefoot.tools.processes"):
    module = types.ModuleType(name)
    module.__path__ = ["/".join([root, *name.split(".")])]
    sys.modules[name] = module
from surefoot.tools.processes import server
server.main(sys.argv[2])
"""


def main(mode: str) -> None:
    """Serve until the agent is gone (`warm`), or supervise one command (`cold`)."""
    # What our starter left open by mistake would otherwise stay open as long as any command.
    os.closerange(CHANNEL + 1 if mode == "warm" else PLACE + 1, 1 << 20)
    if mode == "cold":
        supervisor.supervise(socket.socket(fileno=CHANNEL), PLACE)
        return
    # The kernel reaps the supervisors, so that none stays behind as a zombie of ours.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    kernel.become_undumpable()
    gc.disable()
    gc.freeze()
    with socket.socket(fileno=CHANNEL) as channel:
        while _serve(channel):
            pass


def _serve(channel: socket.socket) -> bool:
    """Take one request: a byte with the descriptors of its connection and its run folder."""
    try:
        word, descriptors, _, _ = socket.recv_fds(channel, 1, 2, socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return False
    if not word:
        return False
    if len(descriptors) == 2 and os.fork() == 0:
        status = 1
        try:
            channel.close()
            os.setsid()
            supervisor.supervise(socket.socket(fileno=descriptors[0]), descriptors[1])
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    for descriptor in descriptors:
        os.close(descriptor)
    return True
