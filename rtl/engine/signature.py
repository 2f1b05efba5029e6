"""The seam between the machine and an intra-tile engine: one signature, one base class."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from amaranth.hdl import Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..lib.check import check_integer, check_power_of_two
from ..lib.unit import Fault, Unit
from ..storage import position_width
from ..types import (
    COORDINATE_WIDTH,
    ENTRY_WIDTH,
    POSITION_WIDTH,
    collected_word,
    partial_fiber,
    record_request,
    row_part,
    scratch_fiber,
    scratch_places,
    selection,
    sram_response,
    sram_write,
    tile,
)

__all__ = ["Engine", "EngineSignature", "fiber_table", "sram_region"]


def fiber_table(address_width: int, line_address_width: int) -> data.StructLayout:
    """Where the fibers are that selections name.

    ``streaming``: (begin, end) of fiber ``index`` are the words ``index`` and ``index + 1`` at byte ``pointers``, its
    elements lie at ``elements``. Else entry ``index`` of the partition's metadata (``accessor.lookup.segment_entry``),
    ``lanes`` to a line downwards from ``metadata_line``, says where it is: in the SRAM, or bumped, at ``elements``. Entries
    form a ring: the first fiber, ``origin``, has entry ``entry``, and entry 0 comes after entry ``entries - 1``; all 0: no ring.
    ``unit``: the fibers are pieces of rows of C, taken unscaled.
    """
    return data.StructLayout(
        {
            "streaming": 1,
            "unit": 1,
            "metadata_line": line_address_width,
            "entry": ENTRY_WIDTH,
            "entries": ENTRY_WIDTH,
            "origin": POSITION_WIDTH,
            "pointers": address_width,
            "elements": address_width,
        }
    )


def sram_region(line_address_width: int) -> data.StructLayout:
    """Lines of the SRAM that an engine may use as it likes: ``lines`` from line ``base`` on, perhaps none."""
    return data.StructLayout({"base": line_address_width, "lines": line_address_width + 1})


class EngineSignature(wiring.Signature):
    """What an intra-tile engine shows the machine.

    Parameters
    ----------
    lanes, address_width, line_address_width : int
        64-bit elements in a line, power of two; bits of a byte address; bits of an SRAM line address.
    scratch_slots : int
        Slots of scratch memory, power of two.
    sram_reads, sram_writes, readers : int
        Ports of the SRAM; client ports of the memory engine.
    activity : tuple of str
        Fields of WAITING that the engine has.
    events : dict
        Performance counters that the engine has, in lower case, and the bits of what each adds in a cycle.
    b_fibers : str
        The rank whose coordinates number B's fibers: ``k``, rows of B, or ``j``, its columns. A's fibers are always its rows, as
        the fibers that leave are rows of C.
    carries : int
        Sequences of requests for records that share beats.
    errors : tuple of str
        Errors of the register map that the engine may find.
    parts : bool
        A comes as parts of rows, ``lanes`` nonzeros together at most. The engine sees whether they are of the tile.

    Members
    -------
    tile : In(tile), assembling : In(1)
        The tile that is computed, constant while it is; instead of one the rows of C are assembled from their pieces.
    fiber_table : In(fiber_table)
        Where the fibers are that selections name. Constant while not ``looked_up``.
    b_region, c_region : In(sram_region)
        For streaming B's fibers and partial rows of C. Constant while anything is at work.
    selections : In(stream)
        Selections, row by row: A's nonzeros of the tile, or, while C is assembled, pieces of its rows.
    looked_up : Out(1)
        Every selection that was taken has been looked up: the table may change.
    partials : In(stream), partial_region : In(position_width)
        With ``tile.partial_in``: for each row what earlier k steps left of it; those in memory count from
        ``partial_region``, in elements from byte address 0.
    fibers : Out(stream)
        Each row of the tile as one fiber, in order, and fibers that the engine wants to have back.
    scratch_results : In(stream), scratch_places : In(scratch_places)
        Each of these once it can be read back, in order for each slot; where their lines lie.
    scratch_open : In(1), merged_out : Out(1)
        Fibers that the engine wants to have back may leave; the oldest row that has any is merged.
    sram_request, sram_response, sram_write : arrays of ports of the banked SRAM
    read_request, read_data : arrays of client ports of the memory engine
    active : Out
        What is not idle.
    counted : Out
        What each performance counter adds.
    errors : Out
        Of each error that it may find, whether it has ``found`` it, and the ``detail``. Absent where there are none.
    """

    def __init__(
        self,
        *,
        lanes: int,
        address_width: int,
        line_address_width: int,
        scratch_slots: int,
        sram_reads: int,
        sram_writes: int,
        readers: int,
        activity: tuple[str, ...],
        events: Mapping[str, int],
        b_fibers: str = "k",
        carries: int = 1,
        errors: tuple[str, ...] = (),
        parts: bool = False,
    ) -> None:
        if b_fibers not in ("k", "j"):
            raise ValueError(f"The rank of B's fibers must be k or j, not {b_fibers!r}")
        self.b_fibers = b_fibers
        region = sram_region(line_address_width)
        error = data.StructLayout({"found": 1, "detail": COORDINATE_WIDTH})
        super().__init__(
            {
                "tile": In(tile()),
                "assembling": In(1),
                "fiber_table": In(fiber_table(address_width, line_address_width)),
                "b_region": In(region),
                "c_region": In(region),
                "selections": In(stream.Signature(row_part(lanes) if parts else selection())),
                "looked_up": Out(1),
                "partials": In(stream.Signature(partial_fiber())),
                "partial_region": In(position_width(address_width)),
                "fibers": Out(stream.Signature(collected_word(lanes, scratch_slots))),
                "scratch_results": In(stream.Signature(scratch_fiber(scratch_slots))),
                "scratch_places": In(scratch_places(address_width, line_address_width, scratch_slots)),
                "scratch_open": In(1),
                "merged_out": Out(1),
                "sram_request": Out(stream.Signature(line_address_width)).array(sram_reads),
                "sram_response": In(sram_response(lanes)).array(sram_reads),
                "sram_write": Out(stream.Signature(sram_write(lanes, line_address_width))).array(sram_writes),
                "read_request": Out(stream.Signature(record_request(address_width, carries))).array(readers),
                "read_data": In(stream.Signature(64 * lanes)).array(readers),
                "active": Out(data.StructLayout(dict.fromkeys(activity, 1))),
                "counted": Out(data.StructLayout({name: unsigned(width) for name, width in events.items()})),
                **({"errors": Out(data.StructLayout(dict.fromkeys(errors, error)))} if errors else {}),
            }
        )


class Engine(Unit):
    """Base class of intra-tile engines: a unit with an :class:`EngineSignature`.

    Parameters
    ----------
    pes, radix, leaf_lines, queue_lines, value
        Of the design's processing elements; an engine takes of these what it needs.
    packed
        B's nonzeros lie in memory as packed records.
    lanes, address_width, line_address_width, scratch_slots
        As :class:`EngineSignature`.

    Timing
    ------
    An engine says its own.
    """

    # What a subclass declares, beside its READERS.
    ACTIVITY: ClassVar[tuple[str, ...]]
    SRAM_WRITES: ClassVar[int] = 0
    ERRORS: ClassVar[tuple[str, ...]] = ()
    B_FIBERS: ClassVar[str] = "k"
    PARTS: ClassVar[bool] = False

    def __init__(
        self,
        *,
        pes: int,
        radix: int,
        lanes: int,
        address_width: int,
        line_address_width: int,
        leaf_lines: int,
        queue_lines: int,
        scratch_slots: int,
        value: str,
        packed: bool = False,
    ) -> None:
        self.pes = check_integer("PEs", pes, 1, 1024)
        self.radix = check_power_of_two("Merge radix", radix, 2, 256)
        self.lanes = check_power_of_two("Lanes", lanes, 1, 64)
        self.address_width = check_integer("Address width", address_width, 8, 64)
        self.line_address_width = check_integer("Line address width", line_address_width, 1, 32)
        self.leaf_lines = check_power_of_two("Leaf lines", leaf_lines, 1, 64)
        self.queue_lines = check_integer("Queue lines", queue_lines, 1, 1 << 16)
        self.scratch_slots = check_power_of_two("Scratch slots", scratch_slots, 1, 1024)
        self.value = value
        self.packed = bool(packed)
        super().__init__(
            EngineSignature(
                lanes=lanes,
                address_width=address_width,
                line_address_width=line_address_width,
                scratch_slots=scratch_slots,
                sram_reads=self.sram_reads,
                sram_writes=self.SRAM_WRITES,
                readers=len(self.READERS),
                activity=self.ACTIVITY,
                events=self.event_widths,
                b_fibers=self.B_FIBERS,
                carries=self.carries,
                errors=self.ERRORS,
                parts=self.PARTS,
            )
        )

    @property
    def sram_reads(self) -> int:
        """Read ports of the SRAM."""
        raise TypeError(f"{type(self).__name__} does not say how many ports of the SRAM it reads from")

    @property
    def sram_priority(self) -> int | None:
        """Read port of the SRAM that is granted before all others, if there is one."""
        return None

    @property
    def most_columns(self) -> int:
        """Columns of C that a tile may have; 0: any number."""
        return 0

    @property
    def carries(self) -> int:
        """Sequences of requests for records that share beats (:func:`rtl.types.record_request`)."""
        return 1

    @property
    def event_widths(self) -> Mapping[str, int]:
        """Performance counters that the engine has and the bits of what each adds in a cycle; ``macs`` among them."""
        raise TypeError(f"{type(self).__name__} does not say what it counts")

    def events(self) -> Mapping[str, Value]:
        counted: Any = self.counted
        return {name: counted[name] for name in self.event_widths}

    def faults(self) -> Sequence[Fault]:
        errors: Any = self.errors if self.ERRORS else None
        return [Fault(name, errors[name].found, errors[name].detail) for name in self.ERRORS]

    def activity(self) -> Mapping[str, Value]:
        active: Any = self.active
        return {name: active[name] for name in self.ACTIVITY}
