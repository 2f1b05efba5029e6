# Read by .ci/run: the system's tools that tests need.

# install_tools PYTHON: installs what is missing where that may be done, and says what could not be. It never fails: a test
# that misses a tool does.
install_tools() {
    packages=
    command -v iverilog >/dev/null 2>&1 || packages=iverilog
    has_browser || packages="$packages chromium fonts-dejavu-core"
    has_libpython "$1" || packages="$packages $("$1" -c 'import sys; print("libpython%d.%d-dev" % sys.version_info[:2])')"
    [ -n "$packages" ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        echo "ci: missing, and only root with apt-get may install it:" $packages >&2
        return 0
    fi
    echo "== apt-get install" $packages
    apt-get update -qq || echo "ci: apt-get update failed" >&2
    for package in $packages; do
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$package" >/dev/null ||
            echo "ci: could not be installed: $package" >&2
    done
}

# has_browser: whether there is one that tests look at pages with.
has_browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome
} >/dev/null 2>&1

# has_libpython PYTHON: whether its shared library is where a simulator finds it, its own or the system's of that version.
has_libpython() {
    "$1" - <<'PYTHON'
import ctypes, os, sys, sysconfig

name = "libpython%d.%d.so" % sys.version_info[:2]
try:
    ctypes.CDLL(name + ".1.0")
except OSError:
    folders = [sysconfig.get_config_var("LIBDIR") or "", os.path.join(sys.base_prefix, "lib")]
    sys.exit(not any(os.path.exists(os.path.join(folder, name)) for folder in folders))
PYTHON
}
