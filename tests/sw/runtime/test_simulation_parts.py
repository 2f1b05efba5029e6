"""Modules that the compiled simulation compiles once: their stand-in, their threads, and what the generator owes them."""

from pathlib import Path

import pytest

from gen.design import load_design
from gen.yosys import YosysError, quoted, run_jobs
from sw.runtime.simulation import build as builder
from sw.runtime.simulation import parts
from sw.runtime.simulation.build import build
from sw.runtime.simulation.engine import SettingError, _repeated, simulation_threads
from sw.runtime.simulation.loader import Simulation
from sw.runtime.simulation.sources import GENERATOR_ROOMS, accelerator_sources, tree_hash

COPIER = (Path(__file__).parent / "copier.v").read_text()
SCRATCH = 0x14
LANES = 5
# A port of each kind of C++ type, names that Verilator writes in its own way, and a state that differs in every cycle.
LANE = """
module lane (
  input logic clk,
  input logic rst,
  input logic [31:0] word__in,
  input logic [69:0] wide__in,
  input logic [10:0] short___in,
  output logic [31:0] word__out,
  output logic [69:0] wide__out,
  output logic flag
);
  reg [69:0] state;
  reg [63:0] long_state;
  assign word__out = state[69:38] ^ long_state[40:9];
  assign wide__out = {state[34:0], state[69:35]} + 1;
  assign flag = ^state;
  always_ff @(posedge clk)
    if (rst) state <= 0;
    else state <= state * 5 + wide__in + {word__in, short___in};
  always_ff @(posedge clk)
    if (rst) long_state <= 0;
    else long_state <= long_state * 3 + {word__in, 21'd0, short___in};
endmodule
"""
CHAIN = f"""
    wire [31:0] words [0:{LANES}];
    wire [69:0] wides [0:{LANES}];
    wire [{LANES}:0] flags;
    assign words[0] = scratch;
    assign wides[0] = {{words[{LANES}], 6'd9, scratch}};
    assign flags[0] = scratch[3];
    genvar n;
    generate for (n = 0; n < {LANES}; n = n + 1)
        lane made(.clk(aclk), .rst(!aresetn), .word__in(words[n]), .wide__in(wides[n]), .short___in({{10'd77, flags[n]}}),
                  .word__out(words[n + 1]), .wide__out(wides[n + 1]), .flag(flags[n + 1]));
    endgenerate
endmodule
"""


def chained() -> dict[str, str]:
    """A copier whose scratch register feeds a chain of lanes, and shows what comes out of its end."""
    text = COPIER.replace("s_axil_rdata <= scratch;", f"s_axil_rdata <= words[{LANES}] ^ wides[{LANES}][69:38];")
    assert text != COPIER
    body, end = text.rsplit("endmodule", 1)
    return {"copier.v": body + CHAIN + end, "lane.sv": LANE}


def story(library: Path, threads: int) -> list[int]:
    """What the chain shows after one write and another, a reset between them, and many cycles."""
    seen = []
    with Simulation(library, [], threads=threads) as simulation:
        for value in (1, 0x80000001, 0xFFFFFFFF):
            simulation.write(SCRATCH, value)
            seen += [simulation.read(SCRATCH) for _ in range(400)]
            simulation.reset()
            seen.append(simulation.read(SCRATCH))
    return seen


def test_compiled_once_is_the_same_in_every_cycle():
    flat = story(build(chained(), top="copier", data_bits=128, optimize="-O0"), threads=1)
    assert len(set(flat)) > 1000
    once = build(chained(), top="copier", data_bits=128, optimize="-O0", repeated="lane")
    assert story(once, threads=1) == flat
    assert story(once, threads=3) == flat


def test_simulations_of_one_library_have_their_own_instances():
    once = build(chained(), top="copier", data_bits=128, optimize="-O0", repeated="lane")
    alone = story(once, threads=2)
    with Simulation(once, [], threads=2) as other:
        other.write(SCRATCH, 12345)
        before = other.read(SCRATCH)
        assert story(once, threads=2) == alone
        assert other.read(SCRATCH) != before


def translated(folder: Path) -> str:
    """The C++ that joins a lane to the simulation, with Verilator's own files beside it."""
    for name, text in chained().items():
        (folder / name).write_text(text)
    builder._once(folder, builder.verilator(), [*builder.SPEED, *builder.QUIET], "lane", chained())
    return (folder / "part" / "parts.cpp").read_text()


def test_a_cycle_goes_through_the_instances_function_by_function(tmp_path):
    """With the Verilator that is installed: another one may write its C++ otherwise."""
    glue = translated(tmp_path)
    assert "Vpart___024root___nba_sequent__TOP__0((*part)->model.rootp);" in glue
    assert "(*part)->whole();" not in glue


def test_what_is_not_known_is_evaluated_as_a_whole(tmp_path, monkeypatch):
    translated(tmp_path)
    text = next((tmp_path / "part").glob("*root__0.cpp")).read_text()
    known = parts.steps(text)
    assert known
    call = f"{known[-1]}(vlSelf);"
    assert parts.steps(text.replace(call, f"{call}\n        vlSelfRef.other = 1;")) == []
    assert (
        parts.steps(text.replace("if ((1ULL & vlSelfRef.__VnbaTriggered", "if ((2ULL & vlSelfRef.__VnbaTriggered"))
        == []
    )
    assert parts.steps("") == []
    once = build(chained(), top="copier", data_bits=128, optimize="-O0", repeated="lane")
    monkeypatch.setattr(parts, "steps", lambda text: [])
    # A level that no other build has, so that it is not taken from the cache.
    whole = build(chained(), top="copier", data_bits=128, optimize="-Og", repeated="lane")
    assert whole != once
    assert story(whole, threads=2) == story(once, threads=2)


def test_a_module_without_clock_cannot_be_compiled_once():
    with pytest.raises(ValueError, match=r"^A module that is compiled once needs a port clk; this one has none$"):
        parts.ports("module and2(a, b, c);\n  input a;\n  input b;\n  output c;\nendmodule\n")


def test_ports_are_those_of_the_module():
    found = {port.name: (port.width, port.output) for port in parts.ports(LANE)}
    assert found["wide__out"] == (70, True)
    assert found["short___in"] == (11, False)
    assert list(found) == ["clk", "rst", "word__in", "wide__in", "short___in", "word__out", "wide__out", "flag"]


@pytest.mark.parametrize("value", ["0", "-1", "two", "65", ""])
def test_threads_that_cannot_be(monkeypatch, value):
    monkeypatch.setenv("FIBERLOOM_THREADS", value)
    with pytest.raises(SettingError, match=rf"^FIBERLOOM_THREADS is '{value}'; allowed: 1 to 64$"):
        simulation_threads(load_design("tiny"))


def seen_at_once(folder: Path, sources: dict[str, str], top: str) -> bool:
    """Whether an input of the module shows at an output without a register between."""
    for name, text in sources.items():
        (folder / name).write_text(text)
    commands = [f"read_verilog -sv {quoted(folder / name)}" for name in sources]
    commands += [f"hierarchy -top {top}", "proc", "flatten", "opt_clean"]
    # Reads of memories are followed to their addresses: before `memory_dff` all of them are combinational.
    commands += [f"select -set cone {top}/o:* %ci*:-$dff,$dffe,$sdff,$adff", f"select -assert-none @cone {top}/i:* %i"]
    try:
        run_jobs([commands], workers=1)
    except YosysError as error:
        assert "selection is not empty" in str(error), error
        return True
    return False


def test_processing_elements_show_nothing_of_their_inputs_in_the_same_cycle(tmp_path):
    """What makes one evaluation a cycle enough (sw/runtime/simulation/parts.py)."""
    design = load_design("edge")
    sources = accelerator_sources(design)
    element = _repeated(design, sources)
    assert element is not None
    assert not seen_at_once(tmp_path, sources, element)


@pytest.mark.parametrize("change", ["pe.acf_a=coo", "pe.vector=4", "pe.buffer_entries=32"])
def test_verilog_is_remembered_for_one_engine(change: str) -> None:
    """What the engine alone is made of counts, too: else one design would run on another's hardware."""
    assert accelerator_sources(load_design("flex_tiny", [change])) != accelerator_sources(load_design("flex_tiny"))


def test_weight_stationary_elements_are_compiled_with_the_rest(tmp_path):
    """Their outputs answer inputs in the same cycle: alone, eight of them would stand still."""
    design = load_design("flex")
    sources = accelerator_sources(design)
    assert _repeated(design, sources) is None
    assert seen_at_once(tmp_path, sources, "weight_stationary_pe")


def test_a_path_through_a_module_is_seen(tmp_path):
    """The check above can fail."""
    assert not seen_at_once(tmp_path, {"lane.sv": LANE}, "lane")
    leaky = LANE.replace("assign flag = ^state;", "assign flag = ^state ^ word__in[3];")
    assert seen_at_once(tmp_path, {"lane.sv": leaky}, "lane")


def test_verilog_is_kept_for_the_generator_that_made_it() -> None:
    """A change of the generator's rooms is seen; a room that is not there is no room without changes."""
    for room in GENERATOR_ROOMS:
        assert tree_hash((room,)) != tree_hash(GENERATOR_ROOMS)
    with pytest.raises(FileNotFoundError):
        tree_hash(("runtime",))
