"""The child process that serves the embedded model. Started by `providers.local`, never imported by it.

Owns: loading the model file and one llama.cpp server on loopback. Does not own: when it
starts and ends. Reads one line of JSON from standard input, answers one line on standard
output (`{"url": …}` or `{"failed": …}`), and ends when standard input closes: the
agent's death, however it came, closes it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> int:
    """Serve until standard input closes."""
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the native library prints must not mix with the report
    try:
        given = json.loads(sys.stdin.readline())
        server = _serve(given)
    except (ValueError, KeyError, OSError, ImportError, RuntimeError) as error:
        _say(report, {"failed": f"{type(error).__name__}: {error}"[:500]})
        return 1
    _say(report, {"url": server.listening_address})
    sys.stdin.read()
    # Leaving at once: a generation that nobody reads any more must not delay the end.
    os._exit(0)


def _say(report: Any, value: dict[str, str]) -> None:
    report.write(json.dumps(value) + "\n")
    report.flush()


def _serve(given: dict[str, Any]) -> Any:
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = given["path"]
    settings.model_alias = {given["name"]}
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.api_keys = [given["key"]]
    settings.ui = False
    settings.offline = True
    settings.endpoint_slots = False
    settings.n_ctx = given["window_tokens"]
    settings.n_parallel = 1
    settings.n_predict = given["output_tokens"]
    settings.cpuparams.n_threads = given["threads"]
    settings.cpuparams_batch.n_threads = given["threads"]
    # Threads that spin while they wait are slower, not faster, on a machine that also works.
    settings.cpuparams.poll = 0
    settings.cpuparams_batch.poll = 0
    settings.sampling.temp = 0.0
    return xllamacpp.Server(settings)


if __name__ == "__main__":
    sys.exit(main())
