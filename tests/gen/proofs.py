"""Proofs by Yosys that Verilog does what RTLIL says, module by module: children and memories stay outside.

Registers are matched by their names, so each cycle's step is proved for every state; initial values are compared as text.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gen.cells import cell_text
from gen.platform import EmittedModule
from gen.synth import black_box
from gen.writer import Child, write_module
from gen.yosys import quoted

__all__ = ["cell_proof", "initial_values", "proof"]

_MEMORY = re.compile(r"(?m)^  memory width (\d+) size \d+ \\(\S+)$")
_PORTS = ("RD_CLK", "RD_EN", "RD_ARST", "RD_SRST", "RD_ADDR", "RD_DATA", "WR_CLK", "WR_EN", "WR_ADDR", "WR_DATA")


def proof(
    module: EmittedModule, others: Mapping[str, EmittedModule], folder: Path, text: str | None = None
) -> list[str]:
    """Yosys commands; ``text`` is what stands in place of the module's Verilog."""
    folder.mkdir(parents=True, exist_ok=True)
    # Here every build of a module that is one for all sizes is a module of its own.
    written = write_module(
        module.rtlil, {name: Child(module=name, outputs=other.outputs) for name, other in others.items()}
    )
    (folder / "gate.sv").write_text(text or written.text)
    (folder / "gold.il").write_text(_without_open_pins(module.rtlil, written.text, others))
    children = [black_box(others[name].rtlil) for name, _ in module.children]
    (folder / "boxes.il").write_text("\n".join([*children, *_memory_boxes(module.rtlil), "# end\n"]))
    (folder / "masks.v").write_text("\n".join(["module unused; endmodule", *_masks(module.rtlil)]))
    aliases = []
    nets = set(re.findall(r"(?m)^  wire .*\\(\S+)$", module.rtlil))
    for net, fields in written.fields.items():
        for name, low, width in fields:
            if name not in nets:
                aliases += [f"add -wire {name} {width}", f"connect -set {name} {net}[{low + width - 1}:{low}]"]
    return _commands(module, folder, aliases)


# What the registers of modules that are written by hand are called in their Amaranth source.
_BY_HAND = {
    "stream_queue": {
        "count": "level",
        "several.write_index": "write_index",
        "several.read_index": "read_index",
        "several.block.valid": "o__valid",
        "several.block.head": "o__payload",
        "several.genblk1.pair.slot0": "slot0",
        "several.genblk1.pair.slot1": "slot1",
        "single.item": "o__payload",
    },
    "stream_register": {"item": "o__payload", "valid": "o__valid"},
    "stream_skid": {"item": "o__payload", "valid": "o__valid"},
}


_RING = "several.genblk1.ring."


def cell_proof(module: EmittedModule, folder: Path) -> list[str]:
    """Yosys commands for a module that is one for all sizes, with the parameters of this build."""
    folder.mkdir(parents=True, exist_ok=True)
    text = cell_text(module.verilog, module.parameters)
    text = re.sub(rf"(?m)^module {module.verilog} ", f"module {module.name} ", text)
    (folder / "gate.sv").write_text(text)
    (folder / "gold.il").write_text(module.rtlil)
    (folder / "boxes.il").write_text("\n".join([*_memory_boxes(module.rtlil), "# end\n"]))
    (folder / "masks.v").write_text("\n".join(["module unused; endmodule", *_masks(module.rtlil)]))
    widths = {name: width for width, name in re.findall(r"(?m)^  wire width (\d+) .*\\(\S+)$", module.rtlil)}
    aliases = []
    for own, name in _BY_HAND[module.verilog].items():
        if name in widths:
            aliases += [f"add -wire {own} {widths[name]}", f"connect -set {own} {name}"]
    return _commands(module, folder, aliases, "several.block." if "BLOCK_MEMORY" in dict(module.parameters) else _RING)


def initial_values(module: EmittedModule) -> dict[str, int]:
    """What each register of the RTLIL begins with."""
    found = re.findall(r"(?m)^  attribute \\init \d+'([01]+)\n(?:  attribute .*\n)*  wire .*\\(\S+)$", module.rtlil)
    return {name: int(bits, 2) for bits, name in found}


def _commands(module: EmittedModule, folder: Path, aliases: Iterable[str], prefix: str = "") -> list[str]:
    name = module.name
    memories = [memory for _, memory in _MEMORY.findall(module.rtlil)]
    commands = [f"read_rtlil {quoted(folder / part)}" for part in ("boxes.il", "gold.il")]
    commands += [f"read_verilog {quoted(folder / 'masks.v')}", *_prepared(name, memories), f"rename {name} gold"]
    commands += ["cd gold", *aliases, "cd", f"read_verilog -sv {quoted(folder / 'gate.sv')}"]
    commands += [*_prepared(name, memories, prefix), f"rename {name} gate", "flatten gold gate"]
    commands += [f"rename -hide gold/w:{memory}.WR_DATA gate/w:{memory}.WR_DATA" for memory in memories]
    commands += ["expose -evert gold/c:* gate/c:*", "opt_clean gold gate", "equiv_make gold gate both", "cd both"]
    return [
        *commands,
        "opt_expr",
        "opt_merge",
        "opt_clean",
        "equiv_simple",
        "equiv_induct -seq 2",
        "equiv_status -assert",
    ]


def _prepared(name: str, memories: Iterable[str], prefix: str = "") -> list[str]:
    """Processes and memories of a module as cells, each memory as a box of its own."""
    found = ["proc -norom", f"opt_expr -mux_undef {name}", f"opt_clean {name}", "memory_share -nosat -nowiden"]
    found += ["memory_collect", "memory_nordff"]
    for memory in memories:
        found += [f"cd {name}", f"rename {prefix}{memory} {memory}", "cd"] if prefix else []
        found.append(f"chtype -set mask_{memory} {name}/{memory}")
    return found


def _without_open_pins(rtlil: str, verilog: str, others: Mapping[str, EmittedModule]) -> str:
    """RTLIL without the outputs of children that the Verilog leaves open, since nothing reads them."""
    instances = re.findall(r"(?m)^  \w+ (?:#\(.*\) )?(\w+) \(\n((?:    .*\n)*)  \);", verilog)
    left_open = {instance: set(re.findall(r"\.(\w+)\(\)", pins)) for instance, pins in instances}
    kept = []
    instance, outputs = "", frozenset[str]()
    for line in rtlil.splitlines(keepends=True):
        cell = re.match(r"  cell \\(\S+) \\(\S+)$", line)
        outputs = others[cell[1]].outputs if cell else outputs
        instance = cell[2] if cell else "" if line == "  end\n" else instance
        pin = re.match(r"    connect \\(\S+) ", line)
        if not (pin and pin[1] in outputs and pin[1] in left_open.get(instance, ())):
            kept.append(line)
    return "".join(kept)


def _memory_sizes(rtlil: str) -> Iterable[tuple[str, dict[str, int]]]:
    cells = re.findall(r"(?m)^  cell \$mem(rd|wr)_v2 \S+\n((?:    .*\n)*)", rtlil)
    for width, memory in _MEMORY.findall(rtlil):
        own = [(kind, int(re.search(r"ABITS (\d+)", body)[1])) for kind, body in cells if f'"\\\\{memory}"' in body]
        reads, writes = (sum(kind == wanted for kind, _ in own) for wanted in ("rd", "wr"))
        bits = max(bits for _, bits in own)
        yield (
            memory,
            dict(
                zip(
                    _PORTS,
                    (reads, reads, reads, reads, reads * bits, reads * int(width))
                    + (writes, writes * int(width), writes * bits, writes * int(width)),
                    strict=True,
                )
            ),
        )


def _memory_boxes(rtlil: str) -> Iterable[str]:
    for memory, sizes in _memory_sizes(rtlil):
        ports = [
            f"  wire width {width} {'output' if port == 'RD_DATA' else 'input'} {n} \\{port}"
            for n, (port, width) in enumerate(sizes.items(), start=1)
        ]
        yield "\n".join(["attribute \\blackbox 1", f"module \\box_{memory}", *ports, "end"])


def _masks(rtlil: str) -> Iterable[str]:
    """Modules that hide from a memory what is not written: there the two may differ."""
    for memory, sizes in _memory_sizes(rtlil):
        ports = [
            f"{'output' if port == 'RD_DATA' else 'input'} [{width - 1}:0] {port}" for port, width in sizes.items()
        ]
        pins = [f".{port}({'WR_DATA & WR_EN' if port == 'WR_DATA' else port})" for port in sizes]
        yield f"module mask_{memory}({', '.join(ports)});\n  box_{memory} box({', '.join(pins)});\nendmodule"
