"""Blocks that can be built alone, by name: their parameters, what these may be, and what they are by default."""

import contextlib
import gc
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.hdl import UnusedElaboratable

from rtl.accessor.a import AccessorA
from rtl.accessor.b import AccessorB
from rtl.accessor.c import AccessorC
from rtl.accessor.converted_a import ConvertedA
from rtl.accessor.converted_b import ConvertedB
from rtl.accessor.converted_c import ConvertedC
from rtl.accessor.lookup import FiberLookup
from rtl.accessor.segment_stream import SegmentStreamer
from rtl.arith.arithmetic import VALUES
from rtl.arith.common import BFLOAT16, BINARY32
from rtl.arith.fp_add import FpAdd
from rtl.arith.fp_multiply import FpMultiply
from rtl.arith.int_add import IntAdd
from rtl.arith.int_multiply import IntMultiply
from rtl.buffer.banked_sram import BankedSram
from rtl.buffer.buffet import Buffet, BuffetControl
from rtl.buffer.fifo_region import FifoRegion
from rtl.buffer.tailors import TailorsBuffer, TailorsControl
from rtl.converter import Converter
from rtl.engine.gustavson import ROWS_OF_A_PE
from rtl.lib.arbiter import RoundRobinArbiter
from rtl.lib.block import Block
from rtl.lib.stream import StreamQueue, StreamRegister, StreamSkid
from rtl.memory.memory_engine import MemoryEngine
from rtl.mint.bit_packer import BitPacker
from rtl.mint.bit_unpacker import BitUnpacker
from rtl.mint.block_flags import BlockFlags
from rtl.mint.cluster_counter import ClusterCounter
from rtl.mint.converter.conversions import conversions_named
from rtl.mint.converter.cores import STYLES
from rtl.mint.divmod import ReciprocalDivmod, RestoringDivmod
from rtl.mint.host.host_array import HostArray
from rtl.mint.prefix_sum import FORMS as PREFIX_SUMS
from rtl.mint.reader.line_range import LineRange
from rtl.mint.reader.record_reader import RecordReader
from rtl.mint.reader.shared_beats import SharedBeats
from rtl.mint.record_packer import RecordPacker
from rtl.mint.sorter import Sorter
from rtl.mint.tree_builder import TreeBuilder
from rtl.network.collector import Collector
from rtl.network.dispatcher import Dispatcher
from rtl.network.memory_fetch import MemoryFetch
from rtl.pe.bus_packer import BusPacker
from rtl.pe.combiner import CombinerCascade, PairCombiner
from rtl.pe.gustavson import GustavsonPe
from rtl.pe.merge_tree import MergeTree
from rtl.pe.weight_stationary import WeightStationaryPe
from rtl.pe.weight_stationary_array import WeightStationaryArray
from rtl.regs.axi_lite import RegisterFile
from rtl.regs.counters import CounterBank
from rtl.regs.map import VALUE_TYPES, value_code
from rtl.regs.signature import DESIGN_PARAMETERS
from rtl.tiling.controller import TilingController
from rtl.tiling.tile_map import TileMap
from rtl.tiling.tuning import TuningUnit
from rtl.tiling.window_table import WindowTable

from . import parameters
from .design import Design, DesignError
from .docstrings import without_roles
from .fields import choice, did_you_mean, even, flag, integer, power_of_two, taken_by

if TYPE_CHECKING:
    from pydantic import BeforeValidator

__all__ = ["BLOCKS", "FORMATS", "BlockKind", "Parameter", "block_kind", "build_block", "own_kinds", "settings"]

# Sizes of a design, from which blocks take their defaults: the accelerator's parameters, and what follows from them.
Sizes = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter.

    default : a value, or how it follows from the sizes of a design; None where the block itself has a default.
    check : raises ValueError with what is allowed.
    """

    name: str
    default: Any
    check: "BeforeValidator"

    @property
    def allowed(self) -> str:
        """What it may be, in words."""
        try:
            self._checked(object())
        except ValueError as error:
            return str(error).removeprefix("must be ")
        raise AssertionError(f"{self.name} may be anything")

    @property
    def kind(self) -> str:
        """``integer``, ``flag`` or ``name``."""
        text = self.allowed
        return "flag" if text == "true or false" else "name" if text.startswith("one of '") else "integer"

    def default_for(self, sizes: Sizes) -> Any:
        return self.default(sizes) if callable(self.default) else self.default

    def parsed(self, text: str) -> Any:
        """The value written as ``text``. Raises DesignError."""
        value: Any = {"true": True, "false": False}.get(text.lower(), text)
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = int(text, 0)
        try:
            return self._checked(value)
        except ValueError as error:
            raise DesignError(f"--param {self.name}={text}: {error}") from None

    def _checked(self, value: Any) -> Any:
        function: Any = self.check.func
        return function(value)


@dataclass(frozen=True, kw_only=True)
class BlockKind:
    """A block that can be built alone. ``make`` takes the parameters by name."""

    name: str
    block: type[Block]
    parameters: tuple[Parameter, ...] = ()
    make: Callable[..., Block]

    @property
    def summary(self) -> str:
        """The first sentence of what the block says of itself, names of members and parameters between backticks."""
        text = without_roles((inspect.getdoc(self.block) or "").split("\n\n")[0])
        words = " ".join(text.replace("``", "`").split())
        return words.removesuffix("::").partition(". ")[0].rstrip(".:")


def _of(key: str) -> Callable[[Sizes], Any]:
    return lambda sizes: sizes[key]


def _p(name: str, default: Any, check: "BeforeValidator") -> Parameter:
    return Parameter(name=name, default=default, check=check)


def _of_converter(key: str) -> Callable[[Sizes], Any]:
    return lambda sizes: sizes["converter"][key]


_CONVERSIONS = taken_by(conversions_named)
_WIDTH = _p("width", 32, integer(1, 4096))
_ENTRIES = _p("entries", 256, integer(2, 1 << 20))
_QUEUE = _p("queue_depth", 8, power_of_two(2, 256))
_INDEX = _p("index_width", None, integer(2, 64))
_PLACE = _p("address_width", None, integer(1, 64))
_RELEASE = _p("release", False, flag())
_FLUSH = _p("flush_subnormals", False, flag())
_SATURATE = _p("saturate", False, flag())
#: Floating-point formats by name.
FORMATS = {format.name: format for format in (BINARY32, BFLOAT16)}
_FORMAT = _p("format", BINARY32.name, choice(*FORMATS))
_BITS = _p("width", 32, choice(8, 16, 32))


def _rows(sizes: Sizes) -> int:
    """Rows in flight in the whole design."""
    return ROWS_OF_A_PE * int(sizes["pes"])


def _beat_bits(sizes: Sizes) -> int:
    """Bits of a beat of the bus."""
    return 64 * int(sizes["lanes"]) // int(sizes["line_beats"])


_KEY = _p("key_width", 32, integer(1, 64))
_SUMS = (_p("inputs", 32, power_of_two(2, 64)), _p("width", 32, integer(1, 64)), _p("sum_width", None, integer(1, 128)))
_LANES = _p("lanes", _of("lanes"), power_of_two(2, 16))
_ADDRESS = _p("address_width", _of("address_width"), integer(32, 64))
_LINE_ADDRESS = _p("line_address_width", _of("line_address_width"), integer(5, 30))
_BURST = _p("burst_beats", _of("burst_beats"), power_of_two(1, 256))
_RADIX = _p("radix", _of("radix"), power_of_two(2, 256))
_VALUE = _p("value", _of("value"), choice(*VALUES))
_PES = _p("pes", _of("pes"), integer(1, 256))
_LEAF_LINES = _p("leaf_lines", _of("leaf_lines"), power_of_two(1, 64))
_SLOTS = _p("scratch_slots", _of("scratch_slots"), power_of_two(1, 32))
_TUNING = _p("tuning", _of("tuning"), flag())
_LINE = _p("lanes", _of("lanes"), power_of_two(1, 16))
_BEAT = _p("beat_bits", _beat_bits, power_of_two(64, 1024))
_CARRIES = _p("carries", 1, integer(1, 1 << 16))
_PACKED = (
    _p("beat_bits", lambda sizes: 64 * sizes["lanes"], power_of_two(8, 1024)),
    _LINE,
    _p("width", 64, integer(1, 64)),
    _p("stages", 2, integer(1, 4)),
)
_DIVMOD = (
    _p("lanes", 8, integer(1, 64)),
    _p("width", 64, integer(2, 64)),
    _p("divisor_width", 33, integer(1, 64)),
)
_BUS = (_p("words", 9, integer(3, 64)), _p("vector", 4, power_of_two(1, 32)))
_STATIONARY = (
    _p("entries", 128, even(4, 1024)),
    _p("region", None, even(2, 1024)),
    _p("index_width", 16, integer(11, 32)),
    _VALUE,
)
_ACCESS = (_LANES, _ADDRESS, _LINE_ADDRESS, _BURST)


def _kind(name: str, block: type[Block], *taken: Parameter, make: Callable[..., Block] | None = None) -> BlockKind:
    return BlockKind(name=name, block=block, parameters=taken, make=make or block)


def _shaped(block: type[Any]) -> Callable[..., Block]:
    """Blocks for a payload of any shape, here of plain bits."""
    return lambda *, width, **others: block(shape=width, **others)


def _floating(block: type[Any]) -> Callable[..., Block]:
    """Operators whose format is given by its name."""
    return lambda *, format, **others: block(format=FORMATS[format], **others)


def _register_file(*, address_width: int, **constants: int) -> Block:
    values = {name: constants.get(name.lower(), address_width) for name in DESIGN_PARAMETERS}
    return RegisterFile(address_width=address_width, parameters=values)


# Sources of the constant registers whose names are not those of the sizes.
_SHOWN: dict[str, Callable[[Sizes], int]] = {
    "merge_radix": lambda sizes: sizes["radix"],
    "value_type": lambda sizes: value_code(sizes["value"]),
    "dynamic_tuning": lambda sizes: int(sizes["tuning"]),
    "packed": lambda sizes: int(sizes["packed"]),
}
_CONSTANTS = tuple(
    _p(name.lower(), _SHOWN.get(name.lower(), _of(name.lower())), integer(0, (1 << 32) - 1))
    for name in DESIGN_PARAMETERS
    if name != "ADDRESS_WIDTH"
)

BLOCKS: dict[str, BlockKind] = {
    kind.name: kind
    for kind in (
        _kind("fp_add", FpAdd, _FORMAT, _FLUSH, make=_floating(FpAdd)),
        _kind("fp_multiply", FpMultiply, _FORMAT, _FLUSH, make=_floating(FpMultiply)),
        _kind("int_add", IntAdd, _BITS, _SATURATE),
        _kind("int_multiply", IntMultiply, _BITS, _SATURATE),
        _kind("stream_queue", StreamQueue, _WIDTH, _p("depth", 16, integer(1, 1 << 20)),
              _p("block_memory", False, flag()), make=_shaped(StreamQueue)),
        _kind("stream_skid", StreamSkid, _WIDTH, make=_shaped(StreamSkid)),
        _kind("stream_register", StreamRegister, _WIDTH, make=_shaped(StreamRegister)),
        _kind("round_robin_arbiter", RoundRobinArbiter, _p("count", 4, integer(1, 256))),
        _kind("buffet", Buffet, _WIDTH, _ENTRIES, _QUEUE),
        _kind("buffet_control", BuffetControl, _WIDTH, _ENTRIES, _PLACE, _QUEUE),
        _kind("tailors", TailorsBuffer, _WIDTH, _ENTRIES, _INDEX, _QUEUE, _RELEASE),
        _kind("tailors_control", TailorsControl, _WIDTH, _ENTRIES, _INDEX, _PLACE, _QUEUE, _RELEASE),
        _kind("fifo_region", FifoRegion, _ENTRIES, _p("index_width", 9, integer(2, 64))),
        _kind("banked_sram", BankedSram, _p("lines", _of("sram_lines"), integer(2, 1 << 24)),
              _p("banks", _of("banks"), power_of_two(1, 64)), _LANES, _p("read_ports", 4, integer(1, 64)),
              _p("write_ports", 4, integer(1, 64))),
        _kind("memory_engine", MemoryEngine, _p("data_width", _beat_bits, power_of_two(64, 1024)),
              _ADDRESS, _p("readers", 4, integer(1, 64)), _p("writers", 2, integer(1, 64)),
              _p("outstanding", _of("outstanding"), integer(1, 256)), _BURST,
              _p("reader_depth", 64, integer(2, 1 << 12)), _p("writer_depth", None, integer(2, 1 << 12))),
        _kind("accessor_a", AccessorA, *_ACCESS),
        _kind("accessor_b", AccessorB, *_ACCESS, _p("quadrants", _of("tuning"), flag())),
        _kind("accessor_c", AccessorC, *_ACCESS, _SLOTS),
        _kind("converted_a", ConvertedA, _p("beat_bits", _beat_bits, power_of_two(128, 1024)), _ADDRESS, _VALUE,
              _p("form", _of_converter("prefix_sum"), choice(*PREFIX_SUMS))),
        _kind("converted_b", ConvertedB, _p("beat_bits", _beat_bits, power_of_two(128, 1024)), _ADDRESS, _VALUE,
              _p("form", _of_converter("prefix_sum"), choice(*PREFIX_SUMS)), _LANES),
        _kind("converted_c", ConvertedC, _LANES, _p("beat_bits", _beat_bits, power_of_two(128, 1024)), _ADDRESS,
              _BURST, _VALUE,
              _p("form", _of_converter("prefix_sum"), choice(*PREFIX_SUMS))),
        _kind("fiber_lookup", FiberLookup, _LANES, _ADDRESS, _LINE_ADDRESS, _p("pending", 32, power_of_two(2, 256))),
        _kind("segment_streamer", SegmentStreamer, _LANES, _ADDRESS, _LINE_ADDRESS, _LEAF_LINES,
              _p("pending", 64, power_of_two(2, 256)), _p("rows", _rows, integer(1, 1 << 13))),
        _kind("tiling_controller", TilingController, _LANES, _ADDRESS, _TUNING),
        _kind("tile_map", TileMap, _LANES, _ADDRESS, _p("ranged", False, flag())),
        _kind("window_table", WindowTable, _LANES, _ADDRESS),
        _kind("tuning_unit", TuningUnit, _LANES, _LINE_ADDRESS),
        _kind("dispatcher", Dispatcher, _PES, _RADIX, _ADDRESS, _SLOTS),
        _kind("collector", Collector, _PES, _LANES, _p("depth", _rows, integer(1, 1 << 13)),
              _SLOTS),
        _kind("memory_fetch", MemoryFetch, _PES, _RADIX, _LANES, _ADDRESS,
              _LEAF_LINES, _p("pending", 64, power_of_two(2, 256)),
              _LINE_ADDRESS, _SLOTS),
        _kind("merge_tree", MergeTree, _RADIX, _p("jobs", 4, power_of_two(2, 64))),
        _kind("pair_combiner", PairCombiner, _VALUE),
        _kind("combiner_cascade", CombinerCascade, _RADIX, _VALUE),
        _kind("gustavson_pe", GustavsonPe, _RADIX, _LANES, _LINE_ADDRESS, _ADDRESS, _VALUE,
              _LEAF_LINES,
              _p("queue_lines", _of("queue_lines"), integer(1, 8192)), _p("jobs", 4, power_of_two(2, 16)),
              _p("sram_pending", 8, power_of_two(2, 256))),
        _kind("bus_packer", BusPacker, *_BUS, _p("lanes", 4, integer(1, 32))),
        _kind("weight_stationary_pe", WeightStationaryPe, *_BUS, *_STATIONARY),
        _kind("weight_stationary_array", WeightStationaryArray, _p("pes", 8, integer(1, 256)), *_BUS, *_STATIONARY),
        _kind("bit_unpacker", BitUnpacker, *_PACKED, _p("count_bits", 32, integer(5, 64))),
        _kind("bit_packer", BitPacker, *_PACKED),
        _kind("record_packer", RecordPacker, _LINE, _VALUE),
        _kind("record_reader", RecordReader, _LINE, _BEAT, _ADDRESS, _VALUE, _CARRIES,
              _p("pending", 64, integer(2, 1 << 12))),
        _kind("line_range", LineRange, _LINE, _BEAT, _ADDRESS, _CARRIES),
        _kind("shared_beats", SharedBeats, _p("data_width", _beat_bits, power_of_two(8, 1024)),
              _CARRIES),
        _kind("restoring_divmod", RestoringDivmod, *_DIVMOD, _p("bits_per_stage", 1, integer(1, 2))),
        _kind("reciprocal_divmod", ReciprocalDivmod, *_DIVMOD),
        *(_kind(f"prefix_sum_{form}", block, *_SUMS) for form, block in PREFIX_SUMS.items()),
        _kind("sorter", Sorter, _p("inputs", 16, power_of_two(2, 32)), _KEY, _p("payload_width", 32, integer(0, 128))),
        _kind("cluster_counter", ClusterCounter, _p("inputs", 16, power_of_two(2, 64)), _KEY),
        _kind("block_flags", BlockFlags, _p("inputs", 8, power_of_two(1, 32)), _p("columns", 64, power_of_two(2, 1024))),
        _kind("tree_builder", TreeBuilder, _p("inputs", 8, power_of_two(2, 32)), _p("width", 32, integer(1, 32)),
              _p("count_bits", 40, integer(8, 64)), _p("form", "work_efficient", choice(*PREFIX_SUMS))),
        _kind("converter", Converter, _p("data_width", _beat_bits, power_of_two(128, 1024)), _ADDRESS,
              _p("outstanding", _of("outstanding"), integer(1, 256)), _BURST,
              _p("value", lambda sizes: sizes["value"].partition("_")[0], choice(*VALUE_TYPES)),
              _p("style", _of_converter("style"), choice(*STYLES)), _p("conversions", _of_converter("conversions"), _CONVERSIONS),
              _p("prefix_sum", _of_converter("prefix_sum"), choice(*PREFIX_SUMS)),
              _p("counters", _of_converter("counters"), power_of_two(16, 1 << 16)),
              _p("sram_bytes", _of_converter("sram_bytes"), power_of_two(512, 1 << 24)),
              _p("lane_bits", _of_converter("lane_bits"), power_of_two(16, 32))),
        _kind("host_array", HostArray, _p("form", "work_efficient", choice("none", *PREFIX_SUMS))),
        _kind("register_file", RegisterFile, _ADDRESS, *_CONSTANTS, make=_register_file),
        _kind("counter_bank", CounterBank, _p("width", 48, integer(32, 64))),
    )
}  # fmt: skip


def own_kinds(blocks: Mapping[str, Any]) -> dict[str, BlockKind]:
    """Blocks of a user's own by name: classes, whose parameters are those of their constructor, integers and flags.

    The block itself checks their ranges. Raises DesignError.
    """
    found = {}
    for name, block in blocks.items():
        if name in BLOCKS:
            raise DesignError(f"BLOCKS[{name!r}]: must be another name: Fiberloom has a block of that one")
        if not (inspect.isclass(block) and issubclass(block, Block)):
            raise DesignError(f"BLOCKS[{name!r}]: must be a class that derives from rtl.lib.block.Block")
        own = []
        for parameter in inspect.signature(block).parameters.values():
            kind = getattr(parameter.annotation, "__name__", parameter.annotation)
            if kind not in ("int", "bool"):
                raise DesignError(f"BLOCKS[{name!r}]: {parameter.name}: must be of the type int or bool")
            default = None if parameter.default is parameter.empty else parameter.default
            own.append(_p(parameter.name, default, flag() if kind == "bool" else integer(-(1 << 63), (1 << 63) - 1)))
        found[name] = _kind(name, block, *own, make=_given(name, block))
    return found


def _given(name: str, block: type[Block]) -> Callable[..., Block]:
    """Says which parameters are missing, as its constructor does not."""
    needed = [each.name for each in inspect.signature(block).parameters.values() if each.default is each.empty]

    def make(**values: Any) -> Block:
        if missing := [each for each in needed if each not in values]:
            raise ValueError(f"needs {', '.join(f'--param {each}=VALUE' for each in missing)}")
        return block(**values)

    return make


def block_kind(name: str, own: Mapping[str, BlockKind] | None = None) -> BlockKind:
    """The block called ``name``, one of the user's ``own`` too. Raises DesignError."""
    kinds = BLOCKS | dict(own or {})
    if name in kinds:
        return kinds[name]
    raise DesignError(f"--block {name}: must be one of {', '.join(kinds)}{did_you_mean(name, kinds)}")


@contextlib.contextmanager
def _deleted_unused() -> Iterator[None]:
    """What is built inside and not kept is deleted at the end, before Amaranth can warn that nobody uses it.

    Older objects are not looked at: a process that has built designs has millions. One such context inside another would
    look at all of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        frozen = gc.get_freeze_count() > 0
        gc.freeze()
        try:
            yield
        finally:
            gc.collect()
            if not frozen:
                gc.unfreeze()


def settings(kind: BlockKind, given: Sequence[str], design: Design) -> dict[str, Any]:
    """Value of every parameter: as given by ``NAME=VALUE``, else as in the design. Raises DesignError."""
    known = {parameter.name: parameter for parameter in kind.parameters}
    sizes = parameters.accelerator(design)
    sizes["converter"] = parameters.converter(design)
    sizes["line_address_width"] = (sizes["sram_lines"] - 1).bit_length()
    values = {name: parameter.default_for(sizes) for name, parameter in known.items()}
    seen: dict[str, str] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals:
            raise DesignError(f"--param {item}: must be NAME=VALUE")
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise DesignError(f"--param {item}: {kind.name} has no parameter {name!r}: {has}")
        if name in seen:
            raise DesignError(f"--param {item}: {name} may be given once: there is {seen[name]} before it")
        seen[name] = item
        values[name] = known[name].parsed(text)
    values = {name: value for name, value in values.items() if value is not None}
    with _deleted_unused():
        # Built only to check the parameters.
        _made(kind, values)
    return values


def build_block(kind: BlockKind, values: Mapping[str, Any]) -> Block:
    """The block with these parameters. Raises DesignError where they do not go together."""
    with _deleted_unused():
        # A block that refuses its parameters is left unfinished.
        return _made(kind, values)


def _made(kind: BlockKind, values: Mapping[str, Any]) -> Block:
    try:
        return kind.make(**values)
    except ValueError as error:
        reason = str(error)
    raise DesignError(f"--block {kind.name}: {reason}")
