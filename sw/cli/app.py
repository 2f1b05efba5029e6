"""The command ``fiberloom``: finds the command asked for, imports only that one, and turns errors into exit codes."""

import errno
import importlib
import importlib.util
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from sw import notes, plugins

from .reasons import Interrupted
from .streams import taken_over

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
    "analyze": "Analyse an architecture, a workload, its sparse features and a mapping.",
    "analyse": "The same as analyze.",
    "sweep": "Designs x tilings x operands, in parallel.",
    "tensor": "Tiles for a tensor times matrices, and their traffic.",
    "data": "List, fetch, describe and save matrices.",
    "doctor": "Which tools, packages and caches are here, what is missing and how to get it.",
    "help": "Help on a command or a topic.",
}
# The variable in which a shell says how it wants completions; typer's, after the program's name.
COMPLETION = "_FIBERLOOM_COMPLETE"
BAD_INPUT = 2
INTERRUPTED = 130
INTERNAL_ERROR = 70
UNWRITABLE = 74
# Refusals by a disk, a permission or a limit of the system, and a missing file without a name (the folder for temporary
# files): not the program's fault, wherever they are raised.
REFUSED = {
    getattr(errno, name)
    for name in ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ETXTBSY")
}


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
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    from . import options

    @app.callback(invoke_without_command=True)
    def root(
        context: typer.Context,
        version: bool = typer.Option(False, "--version", help="Print the version and exit."),
        verbose: options.Verbose = False,
    ) -> None:
        if version:
            typer.echo(f"fiberloom {_version()}")
            raise typer.Exit()
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

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
    3 a tool is missing; 74 standard output or a file cannot be written; 130 interrupted. Anything else is a defect of the
    program: a traceback and 70.
    """
    # A shell that asks for completions gives no words of its own.
    asked = None if arguments is not None else os.environ.get(COMPLETION)
    words = list(sys.argv[1:] if arguments is None else arguments) or ([] if asked else ["--help"])
    notes.want_details(False)
    with _ended_by_sigterm(), taken_over() as output:
        try:
            code = _run(words)
            sys.stdout.flush()
        finally:
            _tidy()
        if output.error is not None:
            why = output.error.strerror or output.error
            code = _complain(f"standard output: cannot be written ({why})", code or UNWRITABLE)
    return code


def _run(words: list[str]) -> int:
    completing = os.environ.get(COMPLETION) if not words else None
    typed = _typed_so_far() if completing else words
    wanted = next((word for word in typed if not word.startswith("-")), None)
    try:
        if completing:
            wanted = wanted if wanted in available() else None
        elif wanted is not None and wanted not in available():
            from gen.design import did_you_mean

            what = f"{wanted}: not in this version" if wanted in COMMANDS else f"no such command {wanted!r}"
            hint = "" if wanted in COMMANDS else did_you_mean(wanted, available())
            return _complain(f"{what}: must be one of {', '.join(available())}{hint}", BAD_INPUT)
        # Before the options are described: help lists what these files bring.
        plugins.load(_named(words, "--plugin"))
        application = build(wanted)
        # A command that has several shows them, as the program does.
        words += ["--help"] if words == [wanted] and application.registered_groups else []
        code = application(args=words, prog_name="fiberloom", standalone_mode=False)
        # Typer's own exception for Ctrl-C.
        if code == INTERRUPTED:
            return _complain(str(Interrupted()), INTERRUPTED)
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return _complain(str(Interrupted()), INTERRUPTED)
    except MemoryError as error:
        detail = " ".join(str(error).split())
        return _complain("not enough memory for these operands" + (f" ({detail})" if detail else ""), BAD_INPUT)
    except Exception as error:  # noqa: BLE001 - the outermost door: defects leave with a code of their own
        return _failed(error)


def _typed_so_far() -> list[str]:
    """The words after the program's name in the line that a shell wants to complete."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:]


def _named(words: Sequence[str], option: str) -> Iterator[Path]:
    """Files that the option names, before the command has parsed its own."""
    given = words[: words.index("--")] if "--" in words else words
    for place, word in enumerate(given):
        if word == option and place + 1 < len(given):
            yield Path(given[place + 1])
        elif word.startswith(f"{option}="):
            yield Path(word.partition("=")[2])


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM, with which a system ends its programs, is an interrupt like Ctrl-C: unfinished files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tidy() -> None:
    """Removes the folders that the command made and left empty; it made none if it never loaded the module that makes them."""
    output = sys.modules.get("sw.cli.output")
    if output is not None:
        output.remove_empty()


def _failed(error: Exception) -> int:
    code = getattr(error, "exit_code", None)
    # Of mistakes in the words the line says all; of other refusals who asks for more sees where they come from.
    if notes.detailed() and code not in (BAD_INPUT, INTERRUPTED):
        traceback.print_exc()
    if isinstance(error, OSError) and (error.errno in REFUSED or (error.errno == errno.ENOENT and not error.filename)):
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror}", UNWRITABLE)
    if not isinstance(code, int) and (blamed := plugins.blamed(error)) is not None:
        return _complain(blamed, BAD_INPUT)
    if not isinstance(code, int):
        if not notes.detailed():
            traceback.print_exc()
        return INTERNAL_ERROR
    from .failures import no_number

    # Option parsing raises its own kind, with the message in a method.
    render = getattr(error, "format_message", None)
    text = render() if callable(render) else str(error)
    if (option := getattr(error, "option_name", None)) and (near := getattr(error, "possibilities", None)):
        from gen.design import did_you_mean

        text = f"No such option: {option}{did_you_mean(option, near)}"
    text = no_number(error) or text
    if not text.strip():
        return code
    return _complain(text, code)


def _complain(text: str, code: int) -> int:
    print(f"fiberloom: {' '.join(text.split())}", file=sys.stderr)
    return code
