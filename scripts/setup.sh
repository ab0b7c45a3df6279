#!/usr/bin/env bash
# Everything that cdclake runs on, into .venv/ and jars/: locked by hash, and free when it is there.
#
# Python packages come by uv, itself installed from a hash-locked file; by pip where uv can't reach
# the index. Maven fetches the jars meanwhile. PYTHON names another python3.11.
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

# The first Python 3.11 there is; a pyenv shim may be on the PATH and still not run.
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

# Says all that is missing at once, each with what to install.
check_machine() {
    local missing=()
    find_python
    if [ -z "$python" ]; then
        missing+=("Python 3.11 was not found${PYTHON:+ as $PYTHON}; install it: apt-get install python3.11 python3.11-venv, or set PYTHON")
        command -v java >/dev/null || missing+=("java was not found; install JDK 17 or newer: apt-get install openjdk-17-jdk-headless")
        command -v mvn >/dev/null || missing+=("mvn was not found; install Maven: apt-get install maven")
    else
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            missing+=("$python has no venv; install it: apt-get install python3.11-venv")
        local line
        while IFS= read -r line; do
            missing+=("$line")
        done < <("$python" scripts/fetch_jars.py --check)
    fi
    [ -w "$root" ] || missing+=("$root is not writable by $(id -un); clone it as the user who sets it up")
    [ ${#missing[@]} -eq 0 ] || refuse "${missing[@]}"
}

# What the installed packages depend on: the locks, this script, and where the project is.
wanted() {
    { cat requirements.bootstrap.txt requirements.lock scripts/setup.sh; echo "$venv"; } | sha256sum
}

install_packages() {
    # A project that was moved takes no venv along: its scripts name the old place.
    if [ ! -x "$venv/bin/python" ] || ! grep -qsxF "$venv" "$venv/.place"; then
        rm -rf "$venv"
        "$python" -m venv "$venv"
        echo "$venv" >"$venv/.place"
    fi
    local pip=("$venv/bin/python" -m pip --disable-pip-version-check)
    "${pip[@]}" install -q --require-hashes --only-binary :all: -r requirements.bootstrap.txt
    sync_by_uv || {
        echo "setup: uv did not succeed, trying pip, which is slower" >&2
        "${pip[@]}" install -q --require-hashes --no-build-isolation -r requirements.lock
    }
    write_command
    wanted >"$stamp"
}

# pyspark is a source archive of jars: packing its wheel without compression saves the most time,
# and without build isolation nothing but the locked setuptools takes part.
sync_by_uv() (
    cache=${UV_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/}/.cache}/uv}
    if mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]; then
        export UV_CACHE_DIR=$cache
    else
        export UV_CACHE_DIR=$venv/.uv-cache
    fi
    # What pip is told of the index by the environment holds for uv too; pip's own files do not.
    [ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}
    [ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE=${SSL_CERT_FILE:-$PIP_CERT}
    VIRTUAL_ENV=$venv "$venv/bin/uv" --quiet --no-config --system-certs pip sync \
        --require-hashes --no-build-isolation \
        --config-settings-package=pyspark:--build-option=--compression=stored \
        requirements.bootstrap.txt requirements.lock
)

# The command works from any folder, and what it starts finds the project first.
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
    exec "$venv/bin/python" scripts/fetch_jars.py
fi
check_machine
"$python" scripts/fetch_jars.py &
jars=$!
trap 'kill "$jars" 2>/dev/null || true' EXIT
install_packages
echo "python: packages installed"
wait "$jars" || refuse "the jars could not be fetched, see above"
trap - EXIT
"$venv/bin/cdclake" --help >/dev/null # compiles what the command imports, and proves that it runs
echo "setup: done, the command is $venv/bin/cdclake"
