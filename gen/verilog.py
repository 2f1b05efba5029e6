"""Design to Verilog: one file for each distinct module, a file list and a manifest."""

import gc
import hashlib
import inspect
import json
import re
import tempfile
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from amaranth.hdl import UnusedElaboratable

from rtl.lib.block import Block

from . import __version__
from .cells import CELLS, cell_text
from .design import Design, DesignError
from .docstrings import block_text, member_meaning, without_roles
from .elaborate import accelerator
from .folder import GENERATOR, MANIFEST, write_folder
from .keywords import KEYWORDS
from .names import short_names
from .platform import EmittedModule, ModuleEmitter
from .writer import Child, write_module
from .yosys import quoted, run_jobs

__all__ = [
    "FILE_LIST",
    "MANIFEST",
    "Verilog",
    "check_name",
    "converted",
    "design_digest",
    "emit",
    "emit_design",
    "netlist",
]

FILE_LIST = "files.f"
WIDTH = 120
# Of a line of a module's ports: the direction, the type with its range, and the name, behind which a value may stand.
_PORT_NAME = re.compile(r" *\w+ +logic (?:\[[^]]*\] )?(\w+)")


@dataclass(frozen=True, kw_only=True)
class Verilog:
    """The Verilog of one block and all below it.

    files : dict[str, str]
        File name to text, ``files.f`` and ``manifest.json`` among them. Modules stand in the order in which they can be
        compiled: children first.
    top : str
        Name of the top module.
    modules : tuple[EmittedModule, ...]
        Each build of a module of which there are several, too.
    """

    files: dict[str, str]
    top: str
    modules: tuple[EmittedModule, ...]

    @property
    def sources(self) -> list[str]:
        """Names of the Verilog files, children first."""
        return [name for name in self.files if name.endswith(".sv")]

    def write(self, folder: Path) -> list[Path]:
        """Writes the files in place of those of an earlier design. Raises OSError."""
        return write_folder(folder, self.files)

    def manifest(self, sources: str, files: Iterable[str]) -> str:
        """The manifest of a folder that has the Verilog in the folder ``sources`` and these files in all."""
        document = json.loads(self.files[MANIFEST])
        for module in document["modules"]:
            module["file"] = f"{sources}/{module['file']}"
        return _json(document | {"files": sorted({*files, MANIFEST})})


def _json(document: object) -> str:
    return json.dumps(document, indent=2) + "\n"


def design_digest(design: Design) -> str:
    """Short digest of all fields of a design; equal designs have equal digests."""
    # A field that later versions have counts where it is set: else the Verilog is that of an earlier version.
    since = {name for tensor in "abc" if not getattr(design.memory, name := f"converts_{tensor}")}
    return hashlib.sha256(design.model_dump_json(exclude={"memory": since}).encode()).hexdigest()[:12]


def emit_design(design: Design, name: str | None = None) -> Verilog:
    """The accelerator of ``design``, its top called ``name``. Raises DesignError for a design without hardware."""
    return emit(accelerator(design), name=name, origin=f"design {design.name} ({design_digest(design)})")


def check_name(name: str) -> None:
    """Refuses what is no name of a module. Raises DesignError."""
    if not re.fullmatch(r"[A-Za-z_]\w{0,39}", name, re.ASCII) or name in KEYWORDS:
        allowed = "a letter or _, then at most 39 letters, digits and _, and no keyword of SystemVerilog"
        raise DesignError(f"--name {name}: must be {allowed}")


def emit(block: Block, *, origin: str, thorough: bool = False, name: str | None = None) -> Verilog:
    """Any block with everything below it; ``origin`` goes into the heads of the files.

    ``name``: of the top module, and what the others' names then begin with, so that two designs can be in one project.

    The text depends on the block and on the versions of Fiberloom, Amaranth and Yosys, on nothing else.
    """
    top, found = converted(block, thorough=thorough, name=name)
    modules = tuple(found.values())
    bodies = _bodies(modules)
    builds: dict[str, list[EmittedModule]] = {}
    for module in modules:
        builds.setdefault(module.verilog, []).append(module)
    shown = {name: _instances(alike[0], found) for name, alike in builds.items()}
    files = {f"{name}.sv": _head(alike[0], shown[name], origin) + bodies[name] for name, alike in builds.items()}
    manifest = {
        "generator": f"{GENERATOR} {__version__}",
        "origin": origin,
        "top": top.verilog,
        "modules": [
            {
                "name": name,
                "file": f"{name}.sv",
                "block": _block_path(alike[0].block),
                "instances": shown[name],
                "sha256": hashlib.sha256(files[f"{name}.sv"].encode()).hexdigest(),
            }
            for name, alike in builds.items()
        ],
    }
    files[FILE_LIST] = "".join(f"{name}.sv\n" for name in builds)
    files[MANIFEST] = _json(manifest | {"files": sorted({*files, MANIFEST})})
    return Verilog(files=files, top=top.verilog, modules=modules)


def converted(
    block: Block, *, thorough: bool = False, name: str | None = None
) -> tuple[EmittedModule, dict[str, EmittedModule]]:
    """The block's module, and every distinct module by name, children first. See :class:`ModuleEmitter`, and :func:`emit`."""
    emitter = ModuleEmitter(thorough=thorough)
    with _no_garbage_collection(), warnings.catch_warnings():
        # Blocks make other blocks only to read their latency.
        warnings.simplefilter("ignore", UnusedElaboratable)
        try:
            top = emitter.add(block).name
        except KeyboardInterrupt:
            # Unfinished objects are deleted when the interpreter ends, after the filter above is gone.
            UnusedElaboratable._MustUse__silence = True
            raise
    names = short_names({name: module.block for name, module in emitter.modules.items()})
    prefix = "" if name is None else f"{name}_"
    names = {full: prefix + short for full, short in names.items()} | ({} if name is None else {top: name})
    modules = {names[full]: module.renamed(names, prefix) for full, module in emitter.modules.items()}
    return modules[names[top]], modules


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Elaboration makes millions of objects that live to its end: the search for dead ones takes a fifth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _bodies(modules: Sequence[EmittedModule]) -> dict[str, str]:
    """Verilog of each module, without head."""
    children = {
        module.name: Child(module=module.verilog, outputs=module.outputs, parameters=module.parameters)
        for module in modules
    }
    return {
        module.verilog: cell_text(CELLS[type(module.block)], modules[-1].parameters, module.verilog)
        if module.parameters
        else _explained(module, write_module(module.rtlil, children).text)
        for module in modules
    }


def _explained(module: EmittedModule, text: str) -> str:
    """The text with what the block's docstring says of a member above the first port of it."""
    texts = [block_text(type(module.block))]
    lines = text.splitlines(keepends=True)
    end = lines.index(");\n")
    found, told = lines[:1], ("", "")
    for line in lines[1:end]:
        name, meaning = member_meaning(_PORT_NAME.findall(line)[0], texts)
        # Members that one text is about stand below it together.
        if name != told[0] and meaning != told[1]:
            found += [f"  // {part}\n" for part in textwrap.wrap(_quoted(meaning), WIDTH - 5)]
        told = name, meaning
        found.append(line)
    return "".join([*found, *lines[end:]])


def _quoted(text: str) -> str:
    """Names between quotes: a backtick begins a macro in Verilog."""
    return " ".join(without_roles(text).replace("::", ".").replace("``", "'").replace("`", "'").split())


def netlist(modules: Sequence[EmittedModule]) -> str:
    """The same modules in one text with multiplexers instead of ``always_comb``.

    Icarus 11 takes a part of a vector in ``always_comb`` for the whole vector, and so finds loops that do not exist. In some
    blocks it then never settles within a time step.
    """
    with tempfile.TemporaryDirectory(prefix="fiberloom-") as scratch:
        jobs = []
        for module in modules:
            source, target = (Path(scratch) / f"{module.name}{suffix}" for suffix in (".il", ".sv"))
            source.write_text(module.rtlil, encoding="utf-8")
            jobs.append(
                [
                    f"read_rtlil {quoted(source)}",
                    "proc",
                    "flatten -noscopeinfo",
                    "memory_collect",
                    "opt_clean",
                    f"write_verilog -noattr {quoted(target)}",
                ]
            )
        run_jobs(jobs)
        return "\n".join(
            _tidy(module.name, (Path(scratch) / f"{module.name}.sv").read_text(encoding="utf-8")) for module in modules
        )


def _tidy(name: str, text: str) -> str:
    """Without Yosys' banner and empty comments."""
    modules = re.findall(r"(?m)^module (\S+?) ?\(", text)
    if modules != [name]:
        raise ValueError(f"Module {name} should be one module in Verilog, not {', '.join(modules)}")
    text = re.sub(r"(?m)^/\* Generated by .*\*/\n", "", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def _block_path(block: Block) -> str:
    return f"{type(block).__module__}.{type(block).__qualname__}"


def _instances(module: EmittedModule, modules: Mapping[str, EmittedModule]) -> dict[str, int]:
    """Verilog modules below this one, and how many instances it has of each."""
    found: dict[str, int] = {}
    for child, count in module.children:
        name = modules[child].verilog
        found[name] = found.get(name, 0) + count
    return found


def _head(module: EmittedModule, instances: Mapping[str, int], origin: str) -> str:
    """Comment before a module: where it comes from, what it is, its parameters, its children."""
    summary = _quoted((inspect.getdoc(type(module.block)) or "").split("\n\n")[0])
    title = f"{module.verilog}: {summary}" if summary else module.verilog
    lines = [
        *textwrap.wrap(title, WIDTH - 3),
        "",
        f"Generated by Fiberloom {__version__} for {origin}. Do not edit.",
        f"Source: {_block_path(module.block)}",
    ]
    if instances:
        lines += ["", "Instances:"] + [f"  {count} x {name}" for name, count in instances.items()]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines) + "\n"
