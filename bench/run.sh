#!/usr/bin/env bash
# All measurements, as Markdown on standard output; progress on standard error.
#   bench/run.sh            as pasted into docs/explanation/performance.md
#   bench/run.sh --quick    fewer rounds, in about a minute
set -euo pipefail
cd "$(dirname "$0")/.."

python="${VENV:-.venv}/bin/python"
peers=".venv-bench"
case "${1:-}" in
  "" | --quick) quick="${1:-}" ;;
  *) echo "usage: bench/run.sh [--quick]" >&2; exit 2 ;;
esac
test -x "$python" || { echo "bench: $python is missing; run: make setup" >&2; exit 1; }

# The peers live in an environment of their own, so that nothing of theirs is installed beside surefoot.
if ! cmp --silent bench/requirements.txt "$peers/.installed"; then
  echo "bench: installing the peers into $peers" >&2
  test -x "$peers/bin/python" || "$python" -m venv "$peers"
  "$peers/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
    -r bench/requirements.txt >&2
  cp bench/requirements.txt "$peers/.installed"
fi

"$python" -c 'import sys; sys.path.insert(0, "bench")
from pathlib import Path; from timing import machine; print(machine(Path.cwd()) + "\n")'
"$python" bench/calls.py $quick
"$python" bench/append_path.py $quick
"$python" bench/reopening.py $quick
"$python" bench/evidence.py $quick
"$python" bench/starting.py $quick
"$python" bench/supervised.py $quick
"$python" bench/peers.py "$peers/bin/python" $quick
