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


def fail(text):
    sys.exit("setup: " + text)


def main():
    python, stamp = sys.argv[1:3]
    extra = sys.argv[3] if len(sys.argv) > 3 else "dev"
    with open("pyproject.toml", "rb") as project:
        digest = hashlib.sha256(project.read())
    # The checkout is installed by its path: a copy elsewhere needs its own installation.
    digest.update(os.path.realpath(".").encode())
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
    with open(stamp, "w") as file:
        file.write(wanted)
    print("setup: done", flush=True)


def run(command, complaint):
    try:
        subprocess.run(command, check=True)
    except subprocess.CalledProcessError:
        fail(complaint)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
