#!/bin/sh
# Installs the SPARQL engine that tests and benchmarks start for themselves, where it is missing: Virtuoso 7, from the
# packages of Debian or Ubuntu. Only its programs are installed: nothing is started, and no service is set up.
set -eu

program=virtuoso-t
package=virtuoso-opensource-7-bin

if command -v "$program" >/dev/null 2>&1; then
    exit 0
fi

fail() {
    echo "$1" >&2
    echo "Tests that need Virtuoso are skipped without it; where the variable CI is set, they fail." >&2
    exit 1
}

if ! command -v apt-get >/dev/null 2>&1; then
    fail "There is no apt-get here: install Virtuoso 7 by hand, so that $program is on the PATH."
elif [ "$(id -u)" -eq 0 ]; then
    as_root=env
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root="sudo -n env"
else
    fail "Only an administrator can install it: run apt-get install $package as root."
fi

echo "Installing $package (its programs only, no service) …"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_it() {
    $as_root DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$package" >"$log" 2>&1
}
# The lists of packages may be missing, as in a fresh container, or too old.
if ! install_it && ! { $as_root apt-get update -qq >"$log" 2>&1 && install_it; }; then
    cat "$log" >&2
    fail "apt-get could not install $package; what it said stands above."
fi
command -v "$program" >/dev/null 2>&1 || fail "$package is installed, but $program is not on the PATH."
