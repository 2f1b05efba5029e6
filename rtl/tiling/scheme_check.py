"""Scheme check: what a driver may have written that no run can begin with."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..lib.block import Block
from ..lib.check import check_integer, check_power_of_two
from ..regs.map import ERRORS, ORDERS
from ..types import COORDINATE_WIDTH, LISTED_ENTRY_WIDTH, MOST_PARTS
from .loop_order import rank_at
from .settings import modes as modes_of
from .settings import scheme
from .tuning import tune_config

__all__ = ["NAMED", "SchemeCheck"]

ERROR_CODES = {error.name: error.code for error in ERRORS}
# Fields that a finding points at: it names their register.
NAMED = (
    *(f"{what}_{rank}" for what in ("tile", "shape") for rank in "ijk"),
    "a_lines",
    "b_lines",
    "c_lines",
    "scratch_lines",
    "part_words",
)


class SchemeCheck(Block):
    """Looks at all of the scheme at once and tells of the first finding, in a fixed order. One scheme a cycle.

    Parameters
    ----------
    lanes : int
        Nonzeros in a line, power of two.
    sram_lines : int
        Lines of the banked SRAM: no partition may end beyond.
    offsets : dict[str, int]
        Register offsets that name a bad field in the error detail, those of ``NAMED``; ValueError where one is missing. Others
        are not looked at.
    tuning : bool
        Tile shapes may change between tiles.
    b_fibers : str
        The rank that numbers B's fibers, each of which has an entry of metadata.
    packed : bool
        Nonzeros lie in memory as packed records, whose coordinates have bits of their own.
    most_columns : int
        Columns that a tile may have; 0: any number.

    Members
    -------
    scheme : In(scheme), tune : In(tune_config)
        As the registers hold them.
    misaligned : In(1), misaligned_offset : In(12)
        An address register does not hold a multiple of the line size: which one.
    error : Out(8), detail : Out(64)
        Of what stood at the inputs for ``latency`` cycles. ``error`` is 0 where nothing is wrong.

    Timing
    ------
    ``latency`` cycles, 6; one scheme a cycle.
    """

    # A comparison, the longer side, its lines of metadata, their sum, the finding, the first one of them.
    latency = 6

    def __init__(
        self,
        *,
        lanes: int,
        sram_lines: int,
        offsets: dict[str, int],
        tuning: bool = False,
        b_fibers: str = "k",
        packed: bool = False,
        most_columns: int = 0,
    ) -> None:
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.sram_lines = check_integer("SRAM lines", sram_lines, 1, 1 << 32)
        self.most_columns = check_integer("Most columns", most_columns, 0, 1 << 31)
        if b_fibers not in ("i", "j", "k"):
            raise ValueError(f"B's fibers are numbered by rank i, j or k, not {b_fibers!r}")
        if missing := [name for name in NAMED if name not in offsets]:
            raise ValueError(f"The scheme check needs the offset of register {missing[0]!r}")
        self.offsets = offsets
        self.tuning = bool(tuning)
        self.packed = bool(packed)
        self.b_fibers = b_fibers
        super().__init__(
            {
                "scheme": In(scheme()),
                "tune": In(tune_config()),
                "misaligned": In(1),
                "misaligned_offset": In(12),
                "error": Out(8),
                "detail": Out(64),
            }
        )

    def build(self, platform: Any) -> Module:
        m = Module()
        want = self.scheme
        findings: list[tuple[Value, str, Value | int]] = []

        def registered(value: Value, name: str) -> Signal:
            register = Signal(Value.cast(value).shape(), name=name)
            m.d.sync += register.eq(value)
            return register

        def lines_of(rank: int) -> Signal:
            """Lines of metadata of the longest tile's fibers along ``rank``."""
            name, shift = "ijk"[rank], (self.lanes - 1).bit_length()
            cut = registered(want.tile[rank] < want.extent[rank], f"is_cut_{name}")
            side = registered(Mux(cut, want.tile[rank], want.extent[rank]), f"longest_{name}")
            return registered((side + (self.lanes - 1)) >> shift, f"entry_lines_{name}")

        for r, name in enumerate("ijk"):
            findings.append((want.extent[r] == 0, "bad_tile_shape", self.offsets[f"shape_{name}"]))
            findings.append((want.tile[r] == 0, "bad_tile_shape", self.offsets[f"tile_{name}"]))
        if self.most_columns:
            wide = (want.tile[1] > self.most_columns) & (want.extent[1] > self.most_columns)
            findings.append((wide, "bad_tile_shape", self.offsets["tile_j"]))
        findings.append((want.order > len(ORDERS) - 1, "bad_order", want.order))
        # A partition with more bits than the SRAM's lines need is found at once, and nothing after that is told.
        bits = self.sram_lines.bit_length()
        bases = {name: part.base[:bits] for name, part in (("a", want.a), ("b", want.b), ("c", want.c))}
        lines = {name: part.lines[:bits] for name, part in (("a", want.a), ("b", want.b), ("c", want.c))}
        ends = {name: registered(bases[name] + lines[name], f"end_{name}") for name in bases}
        for name, part in (("a", want.a), ("b", want.b), ("c", want.c)):
            beyond = registered(part.base[bits:].any() | part.lines[bits:].any(), f"beyond_{name}")
            findings.append((beyond | (ends[name] > self.sram_lines), "bad_partition", self.offsets[f"{name}_lines"]))
        for one, other in (("a", "b"), ("a", "c"), ("b", "c")):
            empty = (lines[one] == 0) | (lines[other] == 0)
            apart = empty | (ends[one] <= bases[other]) | (ends[other] <= bases[one])
            findings.append((~apart, "bad_partition", self.offsets[f"{other}_lines"]))

        def exceeds(value: Value, limit: Value) -> Value:
            """Whether a value is more than lines of the SRAM."""
            return value[bits:].any() | (value[:bits] > limit)

        findings.append((exceeds(want.scratch, lines["c"]), "bad_partition", self.offsets["scratch_lines"]))
        reserved = registered(want.fifo_b + 1, "reserved_b")
        # Between newest and oldest entries of a ring there is a line that neither has.
        needed = registered(lines_of("ijk".index(self.b_fibers)) + reserved + want.gathered, "needed_b")
        findings.append((want.buffering.b & exceeds(needed, lines["b"]), "b_metadata_overflow", needed))
        modes = modes_of(want)
        for r in (1, 2) if self.tuning else ():
            level = self.tune.level[r - 1]
            most = (1 << len(level)) - 1
            uneven = Cat(want.tile[r][n] & (level > n) for n in range(most)).any()
            findings.append((self.tune.enable & uneven, "bad_tile_shape", self.offsets[f"tile_{'ijk'[r]}"]))
        illegal = ~want.buffering.b if self.tuning else Const(1, 1)
        findings.append((self.tune.enable & illegal, "bad_mode", modes))
        along = 2 if self.b_fibers == "j" else 1  # the rank along which B's fibers run
        findings.append((~want.buffering.b & (want.tile[along] < want.extent[along]), "bad_mode", modes))
        # Windows are of B's tiles; rows of A and C are whole in each.
        only_b = want.buffering.b & ~want.buffering.a & ~want.buffering.c & ~self.tune.enable
        if self.b_fibers != "k":
            only_b = Const(0, 1)  # a window is of B's fibers
        findings.append((want.gathered & ~(only_b & (want.tile[1] >= want.extent[1])), "bad_mode", modes))
        findings.append((want.by_list & ~want.gathered, "bad_mode", modes))
        long = want.entry_bits > LISTED_ENTRY_WIDTH
        findings.append((want.planned & (~want.by_list | long), "bad_mode", modes))
        # Parts of rows are joined from memory, of tiles that keep their sides.
        cannot = want.buffering.c | want.gathered | self.tune.enable
        if self.b_fibers != "k":
            cannot = Const(1, 1)
        findings.append((want.joined & cannot, "bad_mode", modes))
        words = (2 * self.lanes - 1).bit_length()
        findings.append((want.joined & want.part_words[:words].any(), "bad_address", self.offsets["part_words"]))
        reached = registered(want.tile[2] * (MOST_PARTS + 1), "reached")  # of k in as many steps as there may be
        findings.append((want.joined & (reached < want.extent[2]), "bad_tile_shape", self.offsets["tile_k"]))
        k_innermost = rank_at(2, want.order[:3]) == 2
        findings.append((want.buffering.c & ~k_innermost, "bad_mode", modes))
        # Lines of metadata of the tile's rows, and one more: of A's partition, and of each half of C's.
        half = registered(lines_of(0) + 1, "half")
        findings.append((want.buffering.a & exceeds(half, lines["a"]), "a_metadata_overflow", half))
        of_rows = registered((lines["c"] - want.scratch[:bits])[:bits], "of_rows")
        too_small = exceeds(half, of_rows[1:]) | of_rows[0]
        findings.append((want.buffering.c & too_small, "bad_partition", self.offsets["c_lines"]))
        if self.packed:
            bits = Value.cast(want.coordinates)  # as in the register
            columns = {"a": want.extent[2], "b": want.extent[1], "c": want.extent[1]}
            wrong = [
                ((count == 0) & (columns[tensor] != 1)) | (count > COORDINATE_WIDTH)
                for tensor, count in ((tensor, want.coordinates[tensor]) for tensor in columns)
            ]
            findings.append((Cat(wrong).any(), "bad_coordinates", bits))
        findings.append((self.misaligned, "bad_address", self.misaligned_offset))
        m.d.sync += [self.error.eq(0), self.detail.eq(0)]
        for n, (condition, name, what) in reversed(list(enumerate(findings))):
            with m.If(registered(condition, f"finding{n}")):
                m.d.sync += [self.error.eq(ERROR_CODES[name]), self.detail.eq(what)]
        return m
