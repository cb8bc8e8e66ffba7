#!/usr/bin/env bash
# Compile the pinned requirement files from pyproject.toml. No registry address is written.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${VENV:-.venv}/bin
compile() {
    "$bin/python" -m piptools compile --quiet --generate-hashes --allow-unsafe --strip-extras \
        --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-annotate --no-header \
        --output-file "$1" "${@:2}"
}
compile requirements/base.txt pyproject.toml
compile requirements/dev.txt pyproject.toml requirements/dev.in --extra postgres
compile requirements/local.txt pyproject.toml --extra local
compile requirements/postgres-server.txt requirements/postgres-server.in
