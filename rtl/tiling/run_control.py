"""Run control: checks the scheme, then takes each tile through loading, computing and draining."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from ..lib.block import digest
from ..lib.divide import CeilingDivider
from ..lib.unit import Unit
from ..regs.map import ERRORS, ORDERS, PHASES
from ..types import COORDINATE_WIDTH, tile
from .loop_order import rank_at
from .tuning import tune_config

__all__ = ["Phase", "RunControl", "partition", "scheme"]

ERROR_CODES = {error.name: error.code for error in ERRORS}

# Cycles that everything must have been quiet before what was written counts as being in memory: longer than any
# register on the way between two units that both look idle.
QUIET_CYCLES = 6
# Cycles in which the elements must have been looked up before the next window: two more than what tells of it needs.
SELECTED_CYCLES = 3


# What the machine is doing, for counters and for a driver that asks why nothing happens. LOAD_B is the phase of A's tile, too,
# where that is kept.
Phase = enum.Enum("Phase", {name.upper(): number for number, name in enumerate(PHASES)})


def partition() -> data.StructLayout:
    """Part of the banked SRAM: ``lines`` lines from ``base`` on."""
    return data.StructLayout({"base": COORDINATE_WIDTH, "lines": COORDINATE_WIDTH})


def scheme() -> data.StructLayout:
    """The tile scheme as the registers hold it. ``windows``: k is cut in a window of its own for each tile along i.

    ``listed``, with ``windows``: k counts places in a list of rows of B.
    """
    part = partition()
    return data.StructLayout(
        {
            "extent": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "tile": data.ArrayLayout(COORDINATE_WIDTH, 3),
            "order": 8,
            "buffering": data.StructLayout({"a": 1, "b": 1, "c": 1}),
            "a": part,
            "b": part,
            "c": part,
            "fifo_b": COORDINATE_WIDTH,
            "windows": 1,
            "listed": 1,
        }
    )


class RunControl(Unit):
    """One tile at a time: load the parts of buffered operands that are not in place, compute, wait until C is in memory.

    Rows are computed while B's part is still being loaded: what is not there yet is waited for fiber by fiber. Only where
    tile shapes are tuned the load comes first, as its counts decide what the next tile is.

    Windows of k run into one another: their rows of A and of C follow each other in memory, so accessors A and C take all
    rows of the run as one tile, and the next window begins when the last element of A of this one has been looked up, while its
    rows are still being merged. What it loads may go where rows of B lie that no tile uses any more: with ``ring.ahead`` the
    rows of C of all tiles before this one have to be out by then, else those of this one, too.

    Parameters
    ----------
    lanes : int
        64-bit elements in a line, power of two.
    sram_lines : int
        Lines of the banked SRAM: no partition may end beyond.
    tuning : bool
        Tile shapes may change between tiles.
    b_fibers : str
        The rank that numbers B's fibers, each of which has an entry of metadata.
    offsets : dict[str, int]
        Register offsets that name a bad field in the error detail: ``tile_i``, ``tile_j``, ``tile_k``, ``shape_i``,
        ``shape_j``, ``shape_k``, ``a_lines``, ``b_lines``, ``c_lines``. Others are not looked at.

    Members
    -------
    scheme : In
        Constant from ``start`` to ``done``.
    start : In(1)
        Pulse: the run begins.
    tiles_per_rank : Out(ArrayLayout(3))
        Tile counts, valid from the start of the walk on; where shapes are tuned those of the smallest tiles.
    tune : In(tune_config)
        The register. ``enable`` is an error without ``tuning``.
    placed : Out(1)
        Pulse: the present tile can be computed.
    walk : Out(1)
        Pulse: the tiling controller begins.
    tiles : In(stream)
        From the tiling controller.
    load, load_a, compute_a, compute_c : Out(stream)
        The tile for accessors B and A to load, for A and C to work on.
    present : Out(tile)
        The tile that is being loaded or computed.
    loading_b : Out(1)
        The present tile's B part is being loaded while rows are computed.
    load_idle, load_a_idle : In(1)
        Accessor B, A has nothing to do.
    assemble : Out(1), assembling : Out(1)
        Pulse: the assembly pass begins; it is running.
    restart_rows : Out(1)
        Pulse with ``assemble``: accessor C appends rows from the begin of their region again.
    quiet : In(1)
        Nothing is in flight anywhere.
    rows_left : In(COORDINATE_WIDTH)
        Rows of its tile that accessor C does not have yet.
    selected : In(1)
        With windows: the elements of A of the present tile's rows have been looked up.
    phase : Out(Phase)
        What the machine is doing now.
    running : Out(1)
        A run is in progress.
    done : Out(1), error : Out(8), detail : Out(64)
        The run has ended; with which error.
    fault : In(8), fault_detail : In(64)
        An error that a unit reports; nonzero ends the run.
    loading_a : Out(1)
        In the loading phase: an A tile is being loaded.
    event_loaded, event_loaded_a : Out(1)
        A B tile, an A tile has been loaded; what its accessor says of it holds.
    misaligned : In(1), misaligned_offset : In(12)
        An address register does not hold a multiple of the line size: which one.
    """

    def __init__(
        self, *, lanes: int, sram_lines: int, offsets: dict[str, int], tuning: bool = False, b_fibers: str = "k"
    ) -> None:
        self.lanes = lanes
        self.tuning = bool(tuning)
        self.sram_lines = sram_lines
        self.offsets = offsets
        self.b_fibers = b_fibers
        super().__init__(
            {
                "scheme": In(scheme()),
                "tune": In(tune_config()),
                "placed": Out(1),
                "start": In(1),
                "tiles_per_rank": Out(data.ArrayLayout(COORDINATE_WIDTH, 3)),
                "walk": Out(1),
                "tiles": In(stream.Signature(tile())),
                "load": Out(stream.Signature(tile())),
                "load_a": Out(stream.Signature(tile())),
                "compute_a": Out(stream.Signature(tile())),
                "compute_c": Out(stream.Signature(tile())),
                "present": Out(tile()),
                "load_idle": In(1),
                "load_a_idle": In(1),
                "rows_left": In(COORDINATE_WIDTH),
                "selected": In(1),
                "assemble": Out(1),
                "assembling": Out(1),
                "restart_rows": Out(1),
                "quiet": In(1),
                "phase": Out(Phase),
                "running": Out(1),
                "done": Out(1),
                "error": Out(8),
                "detail": Out(64),
                "fault": In(8),
                "fault_detail": In(64),
                "misaligned": In(1),
                "misaligned_offset": In(12),
                "loading_a": Out(1),
                "loading_b": Out(1),
                "event_loaded": Out(1),
                "event_loaded_a": Out(1),
            }
        )

    def parameters(self) -> dict[str, Any]:
        sizes: dict[str, Any] = {"l": self.lanes, "s": self.sram_lines} | ({"t": 1} if self.tuning else {})
        sizes |= {} if self.b_fibers == "k" else {"f": self.b_fibers}
        return sizes | {"o": digest(self.offsets)}

    def events(self) -> Mapping[str, Value]:
        loading, computing, draining = (self.phase == phase for phase in (Phase.LOAD_B, Phase.COMPUTE, Phase.DRAIN))
        return {
            "cycles": self.running,
            "phase_next_tile": self.running & ~loading & ~computing & ~draining,
            "phase_load_a": self.loading_a,
            "phase_load_b": loading & ~self.loading_a,
            "phase_compute": computing,
            "phase_drain": draining,
            "loads_a": self.event_loaded_a,
        }

    def build(self, platform: Any) -> Module:
        m = Module()
        want = self.scheme
        m.d.comb += self.running.eq((self.phase != Phase.IDLE) & (self.phase != Phase.DONE))
        dividers = [CeilingDivider(width=COORDINATE_WIDTH) for _ in range(3)]
        for r, divider in enumerate(dividers):
            m.submodules[f"tiles_{'ijk'[r]}"] = divider
            m.d.comb += [
                divider.dividend.eq(want.extent[r]),
                divider.divisor.eq(self._grain(r)),
                self.tiles_per_rank[r].eq(divider.quotient),
            ]

        code = Signal(8)
        detail = Signal(64)
        self._check(m, code, detail)

        present = self.present
        loaded = Signal()
        loading = Signal()
        loaded_k = Signal(COORDINATE_WIDTH)
        loaded_j = Signal(COORDINATE_WIDTH)
        a_loaded = Signal()
        a_loading = Signal()
        a_loaded_i = Signal(COORDINATE_WIDTH)
        a_loaded_k = Signal(COORDINATE_WIDTH)
        quiet_for = Signal(range(QUIET_CYCLES + 1))
        a_taken = Signal()
        c_taken = Signal()
        rows_done = self.rows_left == 0
        settled = quiet_for == QUIET_CYCLES
        with m.If(~self.quiet):
            m.d.sync += quiet_for.eq(0)
        with m.Elif(~settled):
            m.d.sync += quiet_for.eq(quiet_for + 1)

        # A tile that begins at the same place may have become larger or smaller. Of a window all rows may have been kept.
        loaded_sizes = [Signal(COORDINATE_WIDTH, name=f"loaded_size_{name}") for name in ("j", "k", "a_k")]
        in_place = loaded & (loaded_k == present.begin_k) & (loaded_j == present.begin_j)
        a_in_place = a_loaded & (a_loaded_i == present.begin_i) & (a_loaded_k == present.begin_k)
        if self.tuning:
            in_place = in_place & (loaded_sizes[0] == present.size_j) & (loaded_sizes[1] == present.size_k)
            a_in_place = a_in_place & (loaded_sizes[2] == present.size_k)
        in_place = Mux(want.windows, present.ring.kept == present.size_k, in_place)
        # Windows: rows of C that may be missing when the present one is loaded, and two cycles after it came whether no more are.
        first_before = Signal(COORDINATE_WIDTH)  # row of the tile before
        may_miss = Signal(COORDINATE_WIDTH)
        free = Signal()
        m.d.sync += [
            may_miss.eq(want.extent[0] - Mux(present.ring.ahead, first_before, present.begin_i)),
            free.eq(self.rows_left <= may_miss),
        ]
        selected_for = Signal(range(SELECTED_CYCLES + 1))
        with m.If(~self.selected | (self.phase != Phase.COMPUTE)):
            m.d.sync += selected_for.eq(0)
        with m.Elif(selected_for != SELECTED_CYCLES):
            m.d.sync += selected_for.eq(selected_for + 1)
        # Compared in the first cycle of a tile's loading phase.
        compared = Signal()
        weighed = Signal()  # `free` is of the present tile
        in_place_b, in_place_a = Signal(), Signal()
        m.d.sync += weighed.eq(compared)
        with m.If(~compared):
            m.d.sync += [in_place_b.eq(in_place), in_place_a.eq(a_in_place)]
        # One load at a time, and where windows follow each other no sooner than there is room.
        may_load = ~want.windows | (weighed & free & ~self.loading_b)
        m.d.comb += [
            self.load.payload.eq(present),
            self.load_a.payload.eq(present),
            self.compute_a.payload.eq(present),
            self.compute_c.payload.eq(present),
        ]
        with m.If(want.windows):
            # Once for all rows; the first tile's are the first ones.
            m.d.comb += [port.payload.size_i.eq(want.extent[0]) for port in (self.compute_a, self.compute_c)]
            m.d.comb += [self.compute_a.payload.begin_k.eq(0), self.compute_a.payload.carry.eq(0)]
        phase = self.phase

        def enter(state: Phase) -> None:
            m.d.sync += phase.eq(state)

        def begin_early() -> None:
            """Compute beside the load that is taken now."""
            m.d.comb += [self.placed.eq(1), self.event_loaded_a.eq(a_loading)]
            m.d.sync += [a_loading.eq(0), self.loading_b.eq(1)]
            enter(Phase.COMPUTE)

        with m.Switch(phase):
            with m.Case(Phase.IDLE):
                with m.If(self.start):
                    for divider in dividers:
                        m.d.comb += divider.start.eq(1)
                    enter(Phase.CHECK)
            with m.Case(Phase.CHECK):
                # What was found about the scheme has long been in registers when the division is done.
                with m.If(dividers[0].done):
                    with m.If(code != 0):
                        m.d.sync += [self.error.eq(code), self.detail.eq(detail)]
                        enter(Phase.DONE)
                    with m.Else():
                        m.d.comb += self.walk.eq(1)
                        enter(Phase.NEXT_TILE)
            with m.Case(Phase.NEXT_TILE):
                with m.If(self.tiles.valid):
                    m.d.comb += self.tiles.ready.eq(1)
                    m.d.sync += [present.eq(self.tiles.payload)]
                    m.d.sync += [taken.eq(taken & want.windows) for taken in (a_taken, c_taken)]
                    m.d.sync += first_before.eq(present.begin_i)
                    m.d.sync += compared.eq(0)
                    enter(Phase.LOAD_B)
            with m.Case(Phase.LOAD_B):
                m.d.sync += compared.eq(1)
                # A first, then B: one at a time they share the SRAM's write ports.
                with m.If(~compared):
                    pass
                with m.Elif(want.buffering.a & ~present.carry & ~(in_place_a & self.load_a_idle)):
                    m.d.comb += [self.loading_a.eq(1), self.load_a.valid.eq(~in_place_a)]
                    with m.If(self.load_a.valid & self.load_a.ready):
                        m.d.sync += [
                            a_loaded.eq(1),
                            in_place_a.eq(1),
                            a_loading.eq(1),
                            a_loaded_i.eq(present.begin_i),
                            a_loaded_k.eq(present.begin_k),
                            loaded_sizes[2].eq(present.size_k),
                        ]
                with m.Elif(present.carry | ~want.buffering.b | (in_place_b & self.load_idle)):
                    m.d.comb += [
                        self.placed.eq(1),
                        # One that goes on beside is told of when it ends.
                        self.event_loaded.eq(loading & ~self.loading_b),
                        self.event_loaded_a.eq(a_loading),
                    ]
                    m.d.sync += [loading.eq(loading & self.loading_b), a_loading.eq(0)]
                    enter(Phase.COMPUTE)
                with m.Elif(~in_place_b & may_load):
                    m.d.comb += self.load.valid.eq(1)
                    with m.If(self.load.ready):
                        if self.tuning:
                            with m.If(~self.tune.enable):
                                begin_early()
                        else:
                            begin_early()
                        m.d.sync += [
                            loaded.eq(1),
                            in_place_b.eq(1),
                            loading.eq(1),
                            loaded_k.eq(present.begin_k),
                            loaded_j.eq(present.begin_j),
                            loaded_sizes[0].eq(present.size_j),
                            loaded_sizes[1].eq(present.size_k),
                        ]
            with m.Case(Phase.COMPUTE):
                m.d.comb += [
                    self.compute_a.valid.eq(~a_taken & ~self.assembling),
                    self.compute_c.valid.eq(~c_taken),
                ]
                with m.If(self.compute_a.ready & ~self.assembling):
                    m.d.sync += a_taken.eq(1)
                with m.If(self.compute_c.ready):
                    m.d.sync += c_taken.eq(1)
                with m.If((a_taken | self.assembling) & c_taken & rows_done):
                    enter(Phase.DRAIN)
                with m.If(want.windows & ~present.last & a_taken & c_taken & (selected_for == SELECTED_CYCLES)):
                    enter(Phase.NEXT_TILE)
            with m.Case(Phase.DRAIN):
                with m.If(settled):
                    with m.If(~present.last):
                        enter(Phase.NEXT_TILE)
                    with m.Elif(self.assembling | present.whole_j):
                        enter(Phase.DONE)
                    with m.Else():
                        enter(Phase.ASSEMBLE)
            with m.Case(Phase.ASSEMBLE):
                # One more tile for accessor C: all rows, final, whole.
                m.d.comb += [self.assemble.eq(1), self.restart_rows.eq(1)]
                m.d.sync += [
                    self.assembling.eq(1),
                    c_taken.eq(0),
                    present.begin_i.eq(0),
                    present.size_i.eq(want.extent[0]),
                    present.last_k.eq(1),
                    present.partial_in.eq(0),
                    present.k_step.eq(0),
                ]
                enter(Phase.COMPUTE)
            with m.Case(Phase.DONE):
                m.d.comb += self.done.eq(1)
        with m.If(self.loading_b & self.load_idle):
            m.d.comb += self.event_loaded.eq(1)
            m.d.sync += [self.loading_b.eq(0), loading.eq(0)]
        with m.If((self.fault != 0) & self.running):
            m.d.sync += [self.error.eq(self.fault), self.detail.eq(self.fault_detail)]
            enter(Phase.DONE)
        return m

    def _grain(self, rank: int) -> Value:
        """The smallest side that tiles may get."""
        side = self.scheme.tile[rank]
        return Mux(self.tune.enable, side >> self.tune.level[rank - 1], side) if self.tuning and rank else side

    def _check(self, m: Module, code: Signal, detail: Signal) -> None:
        """What a hostile driver could have written; the first finding counts. A register behind each step."""
        want = self.scheme
        findings: list[tuple[Value, str, Value | int]] = []

        def held(value: Value, name: str) -> Signal:
            register = Signal(Value.cast(value).shape(), name=name)
            m.d.sync += register.eq(value)
            return register

        def lines_of(rank: int) -> Signal:
            """Lines of metadata of the longest tile's fibers along ``rank``."""
            name, shift = "ijk"[rank], (self.lanes - 1).bit_length()
            cut = held(want.tile[rank] < want.extent[rank], f"is_cut_{name}")
            side = held(Mux(cut, want.tile[rank], want.extent[rank]), f"longest_{name}")
            return held((side + (self.lanes - 1)) >> shift, f"entry_lines_{name}")

        for r, name in enumerate("ijk"):
            findings.append((want.extent[r] == 0, "bad_tile_shape", self.offsets[f"shape_{name}"]))
            findings.append((want.tile[r] == 0, "bad_tile_shape", self.offsets[f"tile_{name}"]))
        findings.append((want.order > len(ORDERS) - 1, "bad_order", want.order))
        parts = {"a": want.a, "b": want.b, "c": want.c}
        ends = {name: held(part.base + part.lines, f"end_{name}") for name, part in parts.items()}
        for name in parts:
            findings.append((ends[name] > self.sram_lines, "bad_partition", self.offsets[f"{name}_lines"]))
        for one, other in (("a", "b"), ("a", "c"), ("b", "c")):
            first, second = parts[one], parts[other]
            apart = (first.lines == 0) | (second.lines == 0) | (ends[one] <= second.base) | (ends[other] <= first.base)
            findings.append((~apart, "bad_partition", self.offsets[f"{other}_lines"]))
        reserved = held(want.fifo_b + 1, "reserved_b")
        # Between newest and oldest entries of a ring there is a line that neither has.
        needed = held(lines_of("ijk".index(self.b_fibers)) + reserved + want.windows, "needed_b")
        findings.append((want.buffering.b & (needed > want.b.lines), "b_metadata_overflow", needed))
        modes = Cat(want.buffering, want.windows, want.listed)  # as in the register
        for r in (1, 2) if self.tuning else ():
            coarse = held(self._grain(r) << self.tune.level[r - 1], f"coarse_{'ijk'[r]}")
            uneven = self.tune.enable & (coarse != want.tile[r])
            findings.append((uneven, "bad_tile_shape", self.offsets[f"tile_{'ijk'[r]}"]))
        illegal = ~want.buffering.b if self.tuning else Const(1, 1)
        findings.append((self.tune.enable & illegal, "bad_mode", modes))
        findings.append((~want.buffering.b & (want.tile[1] < want.extent[1]), "bad_mode", modes))
        # Windows are of B's tiles; rows of A and C are whole in each.
        only_b = want.buffering.b & ~want.buffering.a & ~want.buffering.c & ~self.tune.enable
        findings.append((want.windows & ~(only_b & (want.tile[1] >= want.extent[1])), "bad_mode", modes))
        findings.append((want.listed & ~want.windows, "bad_mode", modes))
        k_innermost = rank_at(2, want.order[:3]) == 2
        findings.append((want.buffering.c & ~k_innermost, "bad_mode", modes))
        # Lines of metadata of the tile's rows, and one more: of A's partition, and of each half of C's.
        half = held(lines_of(0) + 1, "half")
        findings.append((want.buffering.a & (half > want.a.lines), "a_metadata_overflow", half))
        too_small = (want.c.lines < (half << 1)) | want.c.lines[0]
        findings.append((want.buffering.c & too_small, "bad_partition", self.offsets["c_lines"]))
        findings.append((self.misaligned, "bad_address", self.misaligned_offset))
        m.d.sync += [code.eq(0), detail.eq(0)]
        for n, (condition, name, what) in reversed(list(enumerate(findings))):
            with m.If(held(condition, f"finding{n}")):
                m.d.sync += [code.eq(ERROR_CODES[name]), detail.eq(what)]
