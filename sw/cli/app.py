"""The command ``fiberloom``: finds the command asked for, imports only that one, and turns errors into exit codes."""

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Sequence

import typer

__all__ = ["COMMANDS", "main"]

# Commands in the order of the help text; each is `command` in the module of its name, or `group` where it has several.
COMMANDS = {
    "run": "Schedule, run, verify and report one multiplication.",
    "schedule": "Choose a tile scheme and write it.",
    "compare": "Every tiling on one operand pair: a table and a plot.",
    "generate": "Write the accelerator as Verilog, with headers, register docs and constraints.",
    "synth": "Cells and logic depth of each block.",
    "convert": "Convert a tensor between storage formats.",
    "formats": "Choose the storage and compute formats for two operands.",
    "model": "Analyse an architecture, a workload, its sparse optimisations and a mapping.",
    "sweep": "Designs x tilings x operands, in parallel.",
    "tensor": "Tiles for a tensor times matrices, and their traffic.",
    "data": "List, fetch, describe and save matrices.",
}
BAD_INPUT = 2
INTERRUPTED = 130
INTERNAL_ERROR = 70


def available() -> list[str]:
    """Commands this installation has."""
    return [name for name in COMMANDS if importlib.util.find_spec(f"sw.cli.{name}") is not None]


def _stub() -> None:
    """Stands for a command that is only listed."""


def build(wanted: str | None) -> typer.Typer:
    """The application with ``wanted`` as a real command and the others as names in the help text."""
    app = typer.Typer(
        name="fiberloom",
        help="Generates tiled sparse tensor accelerators, runs them on real matrices and checks every value.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @app.callback(invoke_without_command=True)
    def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
        if version:
            typer.echo(f"fiberloom {_version()}")
            raise typer.Exit()

    for name in available():
        function: Callable[..., None] = _stub
        if name == wanted:
            module = importlib.import_module(f"sw.cli.{name}")
            if hasattr(module, "group"):
                app.add_typer(module.group, name=name, help=COMMANDS[name], short_help=COMMANDS[name])
                continue
            function = module.command
        app.command(name, help=COMMANDS[name] if function is _stub else None, short_help=COMMANDS[name])(function)
    return app


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("fiberloom")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code.

    0 done and verified; 1 the result differs from the golden one; 2 bad input or option, one line on standard error;
    3 a tool is missing; 130 interrupted. Anything else is a defect of the program: a traceback and 70.
    """
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    wanted = next((word for word in words if not word.startswith("-")), None)
    try:
        if wanted is not None and wanted not in available():
            what = f"{wanted}: not in this version" if wanted in COMMANDS else f"no such command {wanted!r}"
            return _complain(f"{what}: must be one of {', '.join(available())}", BAD_INPUT)
        code = build(wanted)(args=words, prog_name="fiberloom", standalone_mode=False)
        return _flushed(code if isinstance(code, int) else 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit:
        # Typer's way to say that the reader of the help text has gone.
        return _flushed(0)
    except MemoryError:
        return _complain("not enough memory for these operands", BAD_INPUT)
    except Exception as error:  # noqa: BLE001 - the outermost door: defects leave with a code of their own
        return _failed(error)


def _flushed(code: int) -> int:
    """The code, also when nobody reads the output any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Keeps the interpreter from complaining when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _failed(error: Exception) -> int:
    code = getattr(error, "exit_code", None)
    if not isinstance(code, int):
        traceback.print_exc()
        return INTERNAL_ERROR
    # Option parsing raises its own kind, with the message behind a method.
    render = getattr(error, "format_message", None)
    text = render() if callable(render) else str(error)
    if not text.strip():
        return code
    return _complain(text, code)


def _complain(text: str, code: int) -> int:
    if code == INTERRUPTED:
        return code
    print(f"fiberloom: {' '.join(text.split())}", file=sys.stderr)
    return code
