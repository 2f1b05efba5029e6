"""Monitors inside the compiled simulation: Verilog beside the design that counts what its performance counters should say.

They look at the ports of the machine's units (handshakes, states, lines written into the SRAM), never at the events that the
counters are shown, and follow the definitions of ``docs/counters.md``. The design's Verilog is not changed. Each monitor counts
from the start of a run to its end and keeps what it counted until the next one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from sw.runtime.registers import PHASES

from . import parts

__all__ = ["FIRST_INTERVAL", "MOST_SAMPLES", "NAMES", "PROBES_FILE", "SAMPLES_BASE", "probes"]

PROBES_FILE = "probes.vh"
# Loading, computing and draining; then the others of a run.
RUN_PHASES = (
    "loading a tile",
    "computing",
    "draining",
    "checking the scheme",
    "waiting for the next tile",
    "assembling",
)
INSIDE_ELEMENT = "pe_stall_input", "pe_stall_output"
# What is counted: named as the counter that has to be equal, or else a help for bounds and sums.
NAMES = (
    "cycles",
    "macs",
    "merged",
    "jobs",
    "leaves",
    "pe_busy",
    *INSIDE_ELEMENT,
    "sram_read_conflicts",
    "phase_next_tile",
    "phase_load_a",
    "phase_load_b",
    "phase_compute",
    "phase_drain",
    "stall_a_empty",
    "stall_load",
    "stall_lookup",
    "stall_dispatch",
    "stall_collect",
    "stall_write",
    "stall_conversion",
    "buffer_peak_a",
    "buffer_peak_b",
    "buffer_peak_c",
    # Rows whose last word went to the C accessor, rows of the tiles taken, those tiles among them that have work.
    "rows_left",
    "rows_given",
    "tiles_given",
    # Most lines of B's partition that its accessor says it holds, and that were written for one tile; of C's partition those
    # written for two tiles in a row.
    "loaded_b",
    "lines_b",
    "lines_c",
    # Cycles in which something is waited for while no rows are computed.
    "stalls_elsewhere",
    # Beats that came from memory, and went to it.
    "beats_read",
    "beats_written",
    # 1 where the elements are compiled by themselves, so that nothing inside them is seen.
    "closed_elements",
)
# What converts an operand on its way in: what makes tiles of it, and where they leave.
CONVERTING = {"converted_a": ("row_shaper", "selections"), "converted_b": ("segment_shaper", "segments")}
# What converts C on its way out.
LEAVING = "converted_c"
# Behind these the busy cycles of each PE. So many times in a run all of them are noted, first after so many cycles each; where
# more would be noted each second one goes and the interval doubles. ``probe_index`` from SAMPLES_BASE on: how many were noted,
# the interval, and the notes one after the other.
MOST_SAMPLES = 128
FIRST_INTERVAL = 16
SAMPLES_BASE = 1 << 16
NOTHING = "64'd0"
MACHINE = "under_test.machine"
CONTROL = f"{MACHINE}.tile_control.run_control"
ENGINE = f"{MACHINE}.engine"
_INSTANCE = re.compile(r"^  (\w+) (?:#\(.*\) )?(\w+) \($", re.MULTILINE)


def probes(sources: Mapping[str, str], *, closed: bool = False) -> str:
    """What ``shell.v`` includes for a design's Verilog by file name. Nothing is counted of an engine that is not Fiberloom's.

    ``closed``: the elements are compiled by themselves, so that nothing inside them is seen.
    """
    texts = {name.rpartition(".")[0]: text for name, text in sources.items()}
    if "machine" not in texts:
        return "assign probe_value = 64'd0;\n"

    def instances(module: str) -> dict[str, str]:
        return {instance: name for name, instance in _INSTANCE.findall(texts[module])}

    modules = instances("machine")
    modules |= {f"engine.{instance}": name for instance, name in instances(modules["engine"]).items()}
    if modules["engine"].startswith("gustavson_engine"):
        pes = sum(re.fullmatch(r"engine\.pe\d+", instance) is not None for instance in modules)
        watched = _gustavson(pes, closed)
    elif modules["engine"].startswith("weight_stationary_engine"):
        of_array = instances(modules["engine.array"])
        watched = _weight_stationary(sum(re.fullmatch(r"pe\d+", instance) is not None for instance in of_array))
    else:
        return "assign probe_value = 64'd0;\n"

    @cache
    def widths(unit: str) -> dict[str, int]:
        return {port.name: port.width for port in parts.ports(texts[modules[unit]])}

    converting = [unit for unit in (*CONVERTING, LEAVING) if unit in modules]
    return _text(watched, lambda unit, port: widths(unit)[port], converting)


def _moves(port: str) -> str:
    return f"({MACHINE}.{port}__valid & {MACHINE}.{port}__ready)"


def _line(port: str) -> str:
    return f"{MACHINE}.{port}__payload__address"


def _total(terms: list[str]) -> str:
    return " + ".join(f"64'({term})" for term in terms)


@dataclass(frozen=True, kw_only=True)
class _Watched:
    """What is counted of an intra-tile engine, as Verilog.

    Parameters
    ----------
    busy: for each PE, that it is.
    steps: what is added in a cycle, by monitor. stalls: what rows wait for; computing_stalls: while rows are computed alone.
    occupied: lines of the SRAM that it holds, by tensor. ports: of the SRAM that it reads from.
    closed: nothing inside the PEs is seen.
    declared, begin, under_way: what is followed, where it is declared, at a run's begin, in each cycle.
    """

    busy: list[str]
    steps: dict[str, str]
    stalls: dict[str, str]
    computing_stalls: dict[str, str]
    occupied: dict[str, str]
    ports: int
    closed: bool
    declared: list[str] = field(default_factory=list)
    begin: list[str] = field(default_factory=list)
    under_way: list[str] = field(default_factory=list)


def _weight_stationary(pes: int) -> _Watched:
    """All PEs take a cycle of the bus at once."""
    array = "engine.array"
    busy = _moves(f"{array}.bus")
    return _Watched(
        busy=[busy] * pes,
        steps={
            "macs": f"64'({ENGINE}.array.event_macs)",
            "merged": f"64'({_moves('engine.feeder.nonzeros')})",
            "pe_busy": f"{busy} ? 64'd{pes} : 64'd0",
        },
        stalls={"stall_collect": f"({ENGINE}.joiner.rows__valid & ~{ENGINE}.joiner.rows__ready)"},
        computing_stalls={},
        occupied={},
        ports=3,
        closed=True,
    )


def _gustavson(pes: int, closed: bool) -> _Watched:
    """Follows the jobs of each PE."""
    busy, mac, merged, ended, starved, blocked = [], [], [], [], [], []
    declared, begin, under_way = [], [], []
    for n in range(pes):
        pe = f"engine.pe{n}"
        comes = _moves(f"{pe}.leaves")
        last = f"{MACHINE}.{pe}.leaves__payload__last"
        fiber_last = f"{MACHINE}.{pe}.fiber__payload__last"
        declared.append(f"reg [31:0] probe_jobs{n}; reg probe_open{n};")
        under_way += [
            f"probe_jobs{n} = probe_jobs{n} + 32'({comes} & ~probe_open{n}) - 32'({_moves(f'{pe}.fiber')} & {fiber_last});",
            f"if ({comes}) probe_open{n} = ~{last};",
        ]
        begin += [f"probe_jobs{n} = 0;", f"probe_open{n} = 0;"]
        busy.append(f"(probe_jobs{n} != 0)")
        mac.append(f"{MACHINE}.{pe}.event_mac")
        merged.append(f"{MACHINE}.{pe}.event_merged")
        ended.append(f"({comes} & {last})")
        starved.append(
            f"({MACHINE}.{pe}.tree.root.waiting_jobs.o__valid & ~{MACHINE}.{pe}.tree.root.out.i__valid"
            f" & {MACHINE}.{pe}.tree.root.out.i__ready)"
        )
        blocked.append(f"({MACHINE}.{pe}.packer.words.i__ready == 0)")
    taken = [
        f"({_moves(f'engine.pe{n}.leaves')} & ({MACHINE}.engine.pe{n}.leaves__payload__length != 0))"
        for n in range(pes)
    ]
    counted = {
        "macs": _total(mac),
        "merged": _total(merged),
        "jobs": _total(ended),
        "leaves": _total(taken),
        "pe_busy": _total(busy),
    }
    if not closed:
        counted |= {"pe_stall_input": _total(starved), "pe_stall_output": _total(blocked)}
    rows = f"{ENGINE}.dispatcher.rows"
    return _Watched(
        busy=busy,
        steps=counted,
        stalls={
            "stall_dispatch": f"(({rows}.groups__valid & ~{rows}.groups__ready) | {rows}.merge | {rows}.merging)",
            "stall_collect": f"(({ENGINE}.collector.head0.o__valid | {ENGINE}.collector.head1.o__valid)"
            f" & ~{ENGINE}.collector.out.i__valid)",
        },
        computing_stalls={
            "stall_a_empty": f"(~{ENGINE}.fiber_lookup.selections__valid & ~{ENGINE}.fiber_lookup.leaves__valid"
            f" & ~{ENGINE}.leaf_queue.o__valid)"
        },
        occupied={"b": f"{ENGINE}.segment_streamer.occupied", "c": f"{ENGINE}.partial_streamer.occupied"},
        ports=pes + 2,
        closed=closed,
        declared=declared,
        begin=begin,
        under_way=under_way,
    )


def _steps(watched: _Watched) -> dict[str, str]:
    """What is added in a cycle to what is counted of the machine."""
    gate = f"{MACHINE}.selection_gate"
    waiting = f"{gate}.nonzero.o__valid & ~{gate}.selections__valid & ~{CONTROL}.assembling"
    loading, computing, draining, *others = (f"({CONTROL}.phase == {PHASES.index(phase)})" for phase in RUN_PHASES)
    between = " | ".join(others)
    anywhere = {
        "stall_load": f"({waiting} & probe_opened)",
        **watched.stalls,
        "stall_write": f"({MACHINE}.accessor_c.collected__valid & ~{MACHINE}.accessor_c.collected__ready)",
    }
    accessor_c = f"{MACHINE}.accessor_c"
    row_leaves = f"({_moves('accessor_c.collected')} & {accessor_c}.collected__payload__last & ~{accessor_c}.scratch)"
    given = _moves("tile_control.run_control.tiles")
    return {
        "cycles": "64'd1",
        "sram_read_conflicts": "probe_lost",
        "phase_next_tile": f"64'({between})",
        "phase_load_a": f"64'({loading} & {CONTROL}.loading_a)",
        "phase_load_b": f"64'({loading} & ~{CONTROL}.loading_a)",
        "phase_compute": f"64'({computing})",
        "phase_drain": f"64'({draining})",
        **{
            name: f"64'({computing} & {condition} & ~{anywhere['stall_load']})"
            for name, condition in watched.computing_stalls.items()
        },
        "stall_lookup": f"64'({computing} & ~{ENGINE}.fiber_lookup.selections__ready)",
        **{name: f"64'{condition}" for name, condition in anywhere.items()},
        "rows_left": f"64'({row_leaves} & ~{CONTROL}.assembling)",
        "rows_given": f"{given} ? 64'({CONTROL}.tiles__payload__size_i) : 64'd0",
        "tiles_given": f"64'({given} & ({CONTROL}.tiles__payload__carry == 0))",
        "beats_read": "64'(mem_rvalid & m_axi_rready)",
        "beats_written": "64'(m_axi_wvalid & mem_wready)",
        "stalls_elsewhere": f"64'(~{computing} & ({' | '.join(anywhere.values())}))",
    }


def _peaks(watched: _Watched) -> dict[str, str]:
    """What is counted at its most, or stays as it is."""
    more = {tensor: f" + 64'({watched.occupied[tensor]})" if tensor in watched.occupied else "" for tensor in "bc"}
    return {
        "buffer_peak_a": f"64'({MACHINE}.accessor_a.occupied)",
        "buffer_peak_b": f"({CONTROL}.assembling ? 64'd0 : 64'({MACHINE}.accessor_b.occupied)){more['b']}",
        "buffer_peak_c": f"64'({MACHINE}.accessor_c.occupied){more['c']}",
        "loaded_b": f"64'({MACHINE}.accessor_b.occupied)",
        "lines_b": "64'(probe_b_lines)",
        "lines_c": "64'(probe_held0) + 64'(probe_held1)",
        "closed_elements": f"64'd{int(watched.closed)}",
    }


def _text(watched: _Watched, width: Callable[[str, str], int], converting: list[str]) -> str:
    address = width("accessor_b", "sram_write__0__payload__address")
    steps, peaks = _steps(watched) | watched.steps, _peaks(watched)
    if converting:
        # A tile of the operand in progress, and an item of it that could move; a row of C that waits.
        asked = []
        for unit in converting:
            if unit == LEAVING:
                asked.append(f"({MACHINE}.{unit}.words__valid & ~{MACHINE}.{unit}.words__ready)")
                continue
            shaper, port = (f"{MACHINE}.{unit}.{name}" for name in CONVERTING[unit])
            asked.append(f"({MACHINE}.{unit}.enable & ~{shaper}.idle & ~{port}__valid & {port}__ready)")
        steps["stall_conversion"] = f"64'({' | '.join(asked)})"
    lost = [
        f"({MACHINE}.banked_sram.read_request__{n}__valid & ~{MACHINE}.banked_sram.read_request__{n}__ready)"
        for n in range(watched.ports + 2)  # of accessors A and B, too
    ]
    counted = []
    for n, name in enumerate(NAMES):
        if name in peaks:
            counted.append(f"if (({peaks[name]}) > probe[{n}]) probe[{n}] = {peaks[name]};")
        else:
            counted.append(f"probe[{n}] = probe[{n}] + ({steps.get(name, NOTHING)});")
    counted += [
        f"if ({condition}) probe[{len(NAMES) + n}] = probe[{len(NAMES) + n}] + 64'd1;"
        for n, condition in enumerate(watched.busy)
    ]
    all_probes = len(NAMES) + len(watched.busy)
    lines_b = "\n".join(
        f"        if ({_moves(port)} && probe_b_seen[{_line(port)}] != probe_b_load) begin\n"
        f"            probe_b_seen[{_line(port)}] = probe_b_load; probe_b_lines = probe_b_lines + 1;\n        end"
        for port in ("accessor_b.sram_write__0", "accessor_b.sram_write__1")
    )
    lines_c = "\n".join(_half(_moves(p), _line(p)) for p in ("accessor_c.sram_write__0", "accessor_c.sram_write__1"))
    row_passes = f"({_moves('selection_gate.nonzero.o')} & {MACHINE}.selection_gate.selections__payload__last)"
    parts_of = {
        "pes": "\n    ".join(watched.declared),
        "begin": "\n            ".join(watched.begin),
        "under_way": "\n        ".join(watched.under_way),
        "counted": "\n            ".join(counted),
    }
    return f"""\
reg [63:0] probe [0:{all_probes - 1}];
integer probe_n, probe_m;
// Notes of all of them, some cycles apart.
reg [63:0] probe_notes [0:{MOST_SAMPLES * all_probes - 1}];
reg [31:0] probe_noted, probe_interval, probe_since;
{parts_of["pes"]}
// SRAM requests that lost their bank, counted in the cycle after.
reg [63:0] probe_lost;
// Lines written since B's present load began: each is marked with the load's number.
reg [31:0] probe_b_load, probe_b_lines, probe_b_seen [0:{(1 << address) - 1}];
// Lines of each half of C's partition: written for the tile in progress, and when its last tile ended.
reg [31:0] probe_c_tile, probe_c_seen [0:{(1 << address) - 1}];
reg [31:0] probe_half0, probe_half1, probe_held0, probe_held1;
reg probe_new0, probe_new1;
// Whether nonzeros of A may be looked up: with windows only those of the present one's rows.
reg probe_placed;
reg [31:0] probe_left;
wire probe_windows = {CONTROL}.scheme__gathered;
wire probe_opened = probe_windows ? (probe_left != 0) : ~probe_placed;
initial begin
    probe_b_load = 1; probe_c_tile = 1;
end
assign probe_value = probe_index < {SAMPLES_BASE} ? probe[probe_index]
    : probe_index == {SAMPLES_BASE} ? 64'(probe_noted)
    : probe_index == {SAMPLES_BASE + 1} ? 64'(probe_interval) : probe_notes[probe_index - {SAMPLES_BASE + 2}];

always @(posedge aclk) begin
    if ({MACHINE}.start) begin
        for (probe_n = 0; probe_n < {all_probes}; probe_n = probe_n + 1) probe[probe_n] = 0;
        {parts_of["begin"]}
        probe_lost = 0; probe_b_lines = 0; probe_b_load = probe_b_load + 1;
        probe_half0 = 0; probe_half1 = 0; probe_held0 = 0; probe_held1 = 0; probe_new0 = 1; probe_new1 = 1;
        probe_c_tile = probe_c_tile + 1;
        probe_placed = 0; probe_left = 0;
        probe_noted = 0; probe_interval = {FIRST_INTERVAL}; probe_since = 0;
    end else if (~{MACHINE}.done) begin
        // Lines written up to now: peaks are of what stands at a load's or a tile's end.
        if ({_moves("accessor_c.tile")} | {CONTROL}.quiet) begin
            if (~probe_new0) probe_held0 = probe_half0;
            if (~probe_new1) probe_held1 = probe_half1;
        end
        {parts_of["counted"]}
        {parts_of["under_way"]}
        probe_lost = {_total(lost)};
        if (probe_placed) probe_left = {CONTROL}.load__payload__size_i;
        else if ({row_passes}) probe_left = probe_left - 1;
        probe_placed = {CONTROL}.placed;
        if ({_moves("tile_control.run_control.load")}) begin
            probe_b_load = probe_b_load + 1; probe_b_lines = 0;
        end
{lines_b}
        if ({_moves("accessor_c.tile")}) begin
            probe_new0 = 1; probe_new1 = 1; probe_c_tile = probe_c_tile + 1;
        end
{lines_c}
        probe_since = probe_since + 1;
        if (probe_since == probe_interval) begin
            probe_since = 0;
            if (probe_noted == {MOST_SAMPLES}) begin
                for (probe_n = 0; probe_n < {MOST_SAMPLES // 2}; probe_n = probe_n + 1)
                    for (probe_m = 0; probe_m < {all_probes}; probe_m = probe_m + 1)
                        probe_notes[probe_n * {all_probes} + probe_m]
                            = probe_notes[(2 * probe_n + 1) * {all_probes} + probe_m];
                probe_noted = {MOST_SAMPLES // 2};
                probe_interval = 2 * probe_interval;
                // This moment is in the middle of the first longer interval.
                probe_since = {{1'b0, probe_interval[31:1]}};
            end else begin
                for (probe_m = 0; probe_m < {all_probes}; probe_m = probe_m + 1)
                    probe_notes[probe_noted * {all_probes} + probe_m] = probe[probe_m];
                probe_noted = probe_noted + 1;
            end
        end
    end
end
"""


def _half(moves: str, line: str) -> str:
    """A line that the C accessor writes: the first one of a tile in its half of the partition begins that half anew.

    Those of scratch fibers lie behind both halves.
    """
    upper = f"({line} - {MACHINE}.accessor_c.base >= {MACHINE}.accessor_c.lines / 2)"
    of_rows = f"{line} - {MACHINE}.accessor_c.base < {MACHINE}.accessor_c.lines"
    cases = []
    for half in range(2):
        cases.append(
            f"if ({upper} == 1'd{half}) begin\n"
            f"                if (probe_new{half}) probe_half{half} = 0;\n"
            f"                probe_new{half} = 0; probe_half{half} = probe_half{half} + 1;\n            end"
        )
    return (
        f"        if ({moves} && {of_rows} && probe_c_seen[{line}] != probe_c_tile) begin\n"
        f"            probe_c_seen[{line}] = probe_c_tile;\n            "
        + "\n            ".join(cases)
        + "\n        end"
    )
