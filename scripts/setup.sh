#!/usr/bin/env bash
# Install all dependencies into .venv/ and jars/, locked by hash; a no-op if they are up to date.
#
# uv, itself installed from a hash-locked file, installs the Python packages, or pip if uv can't
# reach the index. Maven fetches the jars concurrently. PYTHON selects another python3.11.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
venv=$root/.venv
stamp=$venv/.setup
python=

refuse() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

# Find the first Python 3.11 that runs; a pyenv shim on the PATH may not.
find_python() {
    local name names=(python3.11 python3 python)
    [ -z "${PYTHON:-}" ] || names=("$PYTHON")
    for name in "${names[@]}"; do
        if "$name" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
            python=$name
            return
        fi
    done
}

# Report everything that is missing at once, each with what to install.
check_machine() {
    local missing=()
    find_python
    if [ -z "$python" ]; then
        missing+=("Python 3.11 was not found${PYTHON:+ as $PYTHON}; install it: apt-get install python3.11 python3.11-venv, or set PYTHON")
        command -v "${JAVA_HOME:+$JAVA_HOME/bin/}java" >/dev/null || missing+=("java was not found; install JDK 17: apt-get install openjdk-17-jdk-headless")
        command -v mvn >/dev/null || missing+=("mvn was not found; install Maven: apt-get install maven")
    else
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            missing+=("$python has no venv; install it: apt-get install python3.11-venv")
        local line
        while IFS= read -r line; do
            missing+=("$line")
        done < <("$python" -m scripts.fetch_jars --check)
    fi
    [ -w "$root" ] || missing+=("$root is not writable by $(id -un); clone it as the user who sets it up")
    [ ${#missing[@]} -eq 0 ] || refuse "${missing[@]}"
}

# Digest of what the installation depends on: the locks, this script, and the project's path.
wanted() {
    { cat requirements.bootstrap.txt requirements.lock scripts/setup.sh; echo "$venv"; } | sha256sum
}

install_packages() {
    # The venv of a moved project is recreated, since its scripts contain the old path.
    if [ ! -x "$venv/bin/python" ] || ! grep -qsxF "$venv" "$venv/.place"; then
        rm -rf "$venv"
        "$python" -m venv "$venv"
        echo "$venv" >"$venv/.place"
    fi
    local pip=("$venv/bin/python" -m pip --disable-pip-version-check)
    "${pip[@]}" install -q --require-hashes --only-binary :all: -r requirements.bootstrap.txt
    sync_by_uv || {
        echo "setup: uv failed; trying pip, which is slower" >&2
        "${pip[@]}" install -q --require-hashes --no-build-isolation -r requirements.lock
    }
    write_command
    wanted >"$stamp"
}

# pyspark is a source archive of jars: building its wheel without compression saves the most time,
# and without build isolation only the locked setuptools is used.
sync_by_uv() (
    cache=${UV_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/}/.cache}/uv}
    if mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]; then
        export UV_CACHE_DIR=$cache
    else
        export UV_CACHE_DIR=$venv/.uv-cache
    fi
    # Pass the environment's pip settings for the index on to uv, which ignores pip's own files.
    [ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}
    [ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE=${SSL_CERT_FILE:-$PIP_CERT}
    VIRTUAL_ENV=$venv "$venv/bin/uv" --quiet --no-config --system-certs pip sync \
        --require-hashes --no-build-isolation \
        --config-settings-package=pyspark:--build-option=--compression=stored \
        requirements.bootstrap.txt requirements.lock
)

# The command works from any folder, and processes that it starts import this project first.
write_command() {
    cat >"$venv/bin/cdclake" <<EOF
#!/bin/sh
# Written by scripts/setup.sh.
export CDCLAKE_PROJECT='$root'
exec '$venv/bin/python' -P -c 'import os, sys
sys.path.insert(0, os.environ.pop("CDCLAKE_PROJECT"))
from cdclake.cli.main import main
main()' "\$@"
EOF
    chmod 755 "$venv/bin/cdclake"
}

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(wanted)" ]; then
    exec "$venv/bin/python" -m scripts.fetch_jars
fi
check_machine
"$python" -m scripts.fetch_jars &
jars=$!
trap 'kill "$jars" 2>/dev/null || true' EXIT
install_packages
echo "python: packages installed"
wait "$jars" || refuse "the jars could not be fetched, see above"
trap - EXIT
"$venv/bin/cdclake" --help >/dev/null # compiles the command's imports, and checks that it runs
echo "setup: done, the command is $venv/bin/cdclake"
