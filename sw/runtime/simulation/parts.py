"""A module with many instances, compiled once: what stands in its place in the Verilog, and the C++ that joins the two.

Every output of such a module comes from registers and memories alone, never in the same cycle from an input (a test of the
generator's Verilog holds it to that). So an instance is evaluated once a cycle, when its inputs have settled at the clock's
edge, and not whenever one of them changes; and because no instance waits for another one in that cycle, threads can share
them, see ``part_group.hpp``.

A cycle of a large module is more code than a processor keeps at hand, so that a third of the time would go into fetching it
anew for each instance. Verilator cuts the cycle into functions, and each of them is called for all instances before the next one.
"""

import re
from dataclasses import dataclass

__all__ = ["FLATTEN", "PREFIX", "STEPS", "Port", "both_edges", "glue", "ports", "stand_in", "steps"]

PREFIX = "Vpart"
CLOCK = "clk"
# Yosys passes: without the module's inner borders Verilator's C++ does the same with a fifth fewer instructions.
FLATTEN = ("proc", "flatten", "opt", "splitnets -driver", "opt_clean -purge")
# Options for functions of a few kilobytes of machine code, called from where `steps` finds them.
STEPS = ("--output-split-cfuncs", "1000", "--inline-cfuncs", "0")
_PORT = re.compile(r"^\s*(input|output)\s+logic\s+(?:\[(\d+):0\]\s*)?(\w+)(?: = \S+)?,?$", re.MULTILINE)
_EDGE = re.compile(r"@\(posedge (\w+)\)")
_CALL = re.compile(rf"{PREFIX}___024root___(?:ico|nba)_\w+(?=\(vlSelf\);)")
# What else stands in a function that does nothing but call others when its clock has an edge.
_AROUND = re.compile(
    rf"VL_DEBUG_IF\(.*\);|{PREFIX}__Syms\* const __restrict vlSymsp .*;|auto& vlSelfRef = .*;|// Body|"
    r"if \(\(1ULL & vlSelfRef\.__V(?:ico|nba)Triggered\[0U\]\)\) \{|\}"
)


@dataclass(frozen=True)
class Port:
    """A port of a module: its name, its width in bits, which way it goes."""

    name: str
    width: int
    output: bool

    @property
    def member(self) -> str:
        """The port in Verilator's C++, which writes the second of two underscores as its code."""
        return self.name.replace("__", "___05F")


def ports(text: str) -> list[Port]:
    """The ports that a module of the generator's Verilog declares, in order."""
    found = [Port(name, int(high or 0) + 1, way == "output") for way, high, name in _PORT.findall(text)]
    if not any(port.name == CLOCK for port in found):
        raise ValueError(f"A module that is compiled once needs a port {CLOCK}; this one has none")
    return found


def both_edges(text: str) -> str:
    """The Verilog with a cycle at every edge of the clock, so that one evaluation is one cycle."""
    return _EDGE.sub(r"@(edge \1)", text)


def stand_in(module: str, text: str) -> str:
    """Verilog of a module with the same ports, which hands its inputs to the compiled one at the clock's edge."""
    all_ports = ports(text)
    inputs = [p for p in all_ports if not p.output and p.name != CLOCK]
    outputs = [p for p in all_ports if p.output]
    declared = ",\n".join(
        f"  {'output logic' if p.output else 'input wire'} [{p.width - 1}:0] {p.name}" for p in all_ports
    )
    taken = "".join(f", input bit [{p.width - 1}:0] {p.name}" for p in inputs)
    shown = "".join(f", output bit [{p.width - 1}:0] {p.name}" for p in outputs)
    names_in = "".join(f", {p.name}" for p in inputs)
    names_out = "".join(f", {p.name}" for p in outputs)
    return f"""\
module {module} (
{declared}
);
  import "DPI-C" function chandle fl_part_open();
  import "DPI-C" function void fl_part_close(input chandle part);
  import "DPI-C" function bit fl_part_step(input chandle part{taken});
  import "DPI-C" function void fl_part_look(input chandle part, input bit turn{shown});
  chandle part;
  logic turn = 0;
  initial part = fl_part_open();
  final fl_part_close(part);
  // The turn that a step gives back is what brings the look at the outputs behind it.
  always @(posedge {CLOCK}) turn <= fl_part_step(part{names_in});
  always_comb fl_part_look(part, turn{names_out});
endmodule
"""


def steps(text: str) -> list[str]:
    """The functions that are a cycle, in order, in Verilator's C++ of the module (all its files, ``text``).

    First those that follow what changed at the inputs, then those of the clock's edge. None when the C++ is not of the form
    that is known, with nothing but calls: the whole evaluation is right then as well.
    """
    found = []
    for phase in ("ico", "act", "nba"):
        body = re.search(
            rf"^void {PREFIX}___024root___eval_{phase}\({PREFIX}___024root\* vlSelf\) {{\n(.*?)^}}", text, re.M | re.S
        )
        for line in body.group(1).splitlines() if body else ():
            call = _CALL.search(line)
            if call is None and not _AROUND.fullmatch(line.strip()):
                return []
            found += [call.group()] if call else []
    return found if any("___nba_" in name for name in found) else []


def glue(text: str, translated: str) -> str:
    """C++ of the functions that :func:`stand_in` imports, for a model compiled with ``PREFIX``.

    ``text`` is the module's Verilog, ``translated`` Verilator's C++ of it.
    """
    all_ports = ports(text)
    found = steps(translated)
    declared = "\n".join(f"void {name}({PREFIX}___024root *);" for name in found)
    calls = "\n".join(
        f"        for (Part *const *part = first; part != last; part++) {name}((*part)->model.rootp);" for name in found
    )
    whole = "        for (Part *const *part = first; part != last; part++) (*part)->whole();"
    inputs = [p for p in all_ports if not p.output and p.name != CLOCK]
    outputs = [p for p in all_ports if p.output]
    taken = "".join(f", const svBitVecVal *{p.name}" for p in inputs)
    shown = "".join(f", svBitVecVal *{p.name}" for p in outputs)
    put = "\n".join(f"    put(part.model.{p.member}, {p.name});" for p in inputs)
    get = "\n".join(f"    get({p.name}, part.model.{p.member});" for p in outputs)
    return f"""\
#include "{PREFIX}.h"
#include "{PREFIX}___024root.h"
#include "part_group.hpp"
#include "part_scope.hpp"
#include "svdpi.h"
#include "verilated.h"

#include <cstring>
#include <memory>

{declared}

namespace {{
struct Part {{
    VerilatedContext context;
    {PREFIX} model{{&context, ""}};
    std::shared_ptr<PartGroup<Part>> group;
    bool waits = false;

    void whole() {{
        model.{CLOCK} = !model.{CLOCK};
        model.eval();
    }}

    static void cycle(Part *const *first, Part *const *last) {{
{calls or whole}
    }}
}};

template <typename T> void put(T &port, const svBitVecVal *from) {{
    uint64_t value = from[0];
    if (sizeof(T) > 4) value |= static_cast<uint64_t>(from[1]) << 32;
    port = static_cast<T>(value);
}}
template <std::size_t N> void put(VlWide<N> &port, const svBitVecVal *from) {{ std::memcpy(port.data(), from, 4 * N); }}
template <typename T> void get(svBitVecVal *to, const T &port) {{
    to[0] = static_cast<svBitVecVal>(port);
    if (sizeof(T) > 4) to[1] = static_cast<svBitVecVal>(static_cast<uint64_t>(port) >> 32);
}}
template <std::size_t N> void get(svBitVecVal *to, const VlWide<N> &port) {{ std::memcpy(to, port.data(), 4 * N); }}
}}  // namespace

extern "C" void *fl_part_open() {{
    auto part = std::make_unique<Part>();
    PartScope &scope = *part_scope;
    if (!scope.group) scope.group = std::make_shared<PartGroup<Part>>(scope.threads);
    part->group = std::static_pointer_cast<PartGroup<Part>>(scope.group);
    part->group->add(part.get());
    part->model.eval();
    return part.release();
}}
extern "C" void fl_part_close(void *handle) {{
    std::unique_ptr<Part> part(static_cast<Part *>(handle));
    part->model.final();
}}
extern "C" svBit fl_part_step(void *handle{taken}) {{
    Part &part = *static_cast<Part *>(handle);
{put}
    part.group->enter(&part);
    return !part.model.{CLOCK};
}}
extern "C" void fl_part_look(void *handle, svBit{shown}) {{
    const Part &part = *static_cast<Part *>(handle);
    part.group->run();
{get}
}}
"""
