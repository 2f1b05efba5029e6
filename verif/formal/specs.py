"""The spec of each block at the sizes that the proofs ask for. Faults are planted in copies of a class: hence ``block``."""

from typing import Any

from amaranth.hdl import Value

from rtl.buffer.buffet import Buffet
from rtl.buffer.tailors import TailorsBuffer
from rtl.lib.arbiter import RoundRobinArbiter
from rtl.lib.deep_queue import DeepQueue
from rtl.lib.stream import StreamQueue, StreamSkid
from rtl.memory.line_parts import LineSplitter, PartJoiner
from rtl.memory.read_engine import ReadEngine
from rtl.memory.write_engine import WriteEngine
from rtl.mint.bit_packer import BitPacker
from rtl.mint.bit_unpacker import BitUnpacker
from rtl.mint.block_flags import BlockFlags
from rtl.mint.cluster_counter import ClusterCounter
from rtl.mint.divmod import ReciprocalDivmod, RestoringDivmod
from rtl.mint.prefix_sum import FORMS
from rtl.mint.reader.line_range import LineRange
from rtl.mint.reader.record_reader import RecordReader
from rtl.mint.reader.shared_beats import SharedBeats
from rtl.mint.record_packer import RecordPacker
from rtl.mint.sorter import Sorter
from rtl.mint.tree_builder import TreeBuilder
from rtl.network.dispatcher import Dispatcher
from rtl.pe.combiner import PairCombiner
from rtl.pe.merge_tree import MergeTree
from rtl.regs.axi_lite import RegisterFile
from rtl.regs.map import Role, by_role
from rtl.regs.signature import DESIGN_PARAMETERS

from .spec_arbiter import ArbiterContract
from .spec_axi import ReadManager, WriteManager
from .spec_bit_packer import PackerContract
from .spec_bit_unpacker import UnpackerContract
from .spec_buffet import BuffetAgainstModel, TailorsAsBuffet
from .spec_combiner import CombinerContract
from .spec_dispatcher import DispatcherContract
from .spec_divmod import DivmodContract
from .spec_line_parts import LineSplitterContract, PartJoinerContract
from .spec_merge import MergeContract
from .spec_mint import AnyVector, EveryVector, block_flags, by_rank, counted, plain_sums, tree_nodes
from .spec_records import LineRangeContract, RecordPackerContract, RecordReaderContract, SharedBeatsContract
from .spec_registers import RegisterPort
from .spec_sorted import SortedJobs
from .spec_streams import QueueContract
from .spec_tailors import TailorsAgainstModel

__all__ = [
    "any_count",
    "any_flag",
    "any_order",
    "any_sum",
    "any_tree",
    "arbiter",
    "as_buffet",
    "buffet",
    "deep_queue",
    "dispatcher",
    "every_count",
    "every_flag",
    "every_order",
    "every_sum",
    "every_tree",
    "line_range",
    "line_splitter",
    "merge",
    "packer",
    "pairs",
    "part_joiner",
    "queue",
    "reading",
    "reading_anywhere",
    "reciprocal",
    "record_packer",
    "record_reader",
    "register_port",
    "restoring",
    "shared_beats",
    "skid",
    "sorted_jobs",
    "tailors_buffer",
    "unpacker",
    "writing",
    "writing_anywhere",
]


def queue(depth: int, *, block_memory: bool = False, block: Any = StreamQueue) -> QueueContract:
    made = block(shape=2, depth=depth, block_memory=block_memory)
    return QueueContract(made, depth=depth, latency=made.latency)


def deep_queue(*, block: Any = DeepQueue) -> QueueContract:
    return QueueContract(block(shape=2, depth=4, spilled=3), depth=8, latency=3)


def skid(*, block: Any = StreamSkid) -> QueueContract:
    return QueueContract(block(shape=3), depth=2, latency=1)


def arbiter(count: int, *, block: Any = RoundRobinArbiter) -> ArbiterContract:
    return ArbiterContract(block(count=count))


def buffet(entries: int, *, block: Any = Buffet) -> BuffetAgainstModel:
    return BuffetAgainstModel(block(width=1, entries=entries, queue_depth=2))


def tailors_buffer(
    entries: int, *, setting: tuple[int, int, int] | None = None, block: Any = TailorsBuffer
) -> TailorsAgainstModel:
    return TailorsAgainstModel(block(width=1, entries=entries, queue_depth=2), setting=setting)


def as_buffet(entries: int, *, block: Any = TailorsBuffer) -> TailorsAsBuffet:
    overbookable = block(width=1, entries=entries, queue_depth=2)
    return TailorsAsBuffet(overbookable, Buffet(width=1, entries=entries, queue_depth=2))


BUS = {"data_width": 64, "address_width": 13, "id_width": 1, "outstanding": 2, "burst_beats": 4}
# Addresses of a real machine: a carry runs through pages and through bit 32.
WIDE_BUS = BUS | {"address_width": 40}


def reading(client: int | None = None, *, block: Any = ReadEngine) -> ReadManager:
    if client is None:
        return ReadManager(block(readers=2, reader_depth=(8, 3), **BUS))
    # Room for two bursts of two beats fills within the depth of a bounded proof.
    return ReadManager(block(readers=2, reader_depth=(4, 3), **BUS | {"burst_beats": 2}), follow=client)


def writing(client: int | None = None, *, block: Any = WriteEngine) -> WriteManager:
    return WriteManager(block(writers=2, writer_depth=(8, 3), **BUS), follow=client)


def reading_anywhere(*, block: Any = ReadEngine) -> ReadManager:
    return ReadManager(block(readers=2, reader_depth=(8, 3), **WIDE_BUS), follow=0, anywhere=True)


def writing_anywhere(*, block: Any = WriteEngine) -> WriteManager:
    return WriteManager(block(writers=2, writer_depth=(8, 3), **WIDE_BUS), follow=0, anywhere=True)


def register_port(*, words: bool, block: Any = RegisterFile) -> RegisterPort:
    made = block(address_width=40, parameters=dict.fromkeys(DESIGN_PARAMETERS, 1))
    return RegisterPort(made, words=configuration_words(made) if words else {})


def dispatcher(*, block: Any = Dispatcher) -> DispatcherContract:
    return DispatcherContract(block(pes=2, radix=2, address_width=16, scratch_slots=1))


def merge(radix: int, *, block: Any = MergeTree) -> MergeContract:
    return MergeContract(block(radix=radix, jobs=2))


def sorted_jobs(radix: int, *, block: Any = MergeTree, **sizes: Any) -> SortedJobs:
    return SortedJobs(block(radix=radix, jobs=2), **sizes)


def every_sum(form: str, *, block: Any = None) -> EveryVector:
    return EveryVector((block or FORMS[form])(inputs=4, width=1), plain_sums)


def any_sum(form: str, *, block: Any = None) -> AnyVector:
    return AnyVector((block or FORMS[form])(inputs=8, width=8), plain_sums)


def every_order(*, block: Any = Sorter) -> EveryVector:
    return EveryVector(block(inputs=4, key_width=1, payload_width=1), by_rank)


def any_order(*, block: Any = Sorter) -> AnyVector:
    return AnyVector(block(inputs=8, key_width=1, payload_width=1), by_rank)


def every_count(*, block: Any = ClusterCounter) -> EveryVector:
    return EveryVector(block(inputs=4, key_width=1), counted)


def any_count(*, block: Any = ClusterCounter) -> AnyVector:
    return AnyVector(block(inputs=8, key_width=4), counted)


def every_flag(*, block: Any = BlockFlags) -> EveryVector:
    return EveryVector(block(inputs=2, columns=4), block_flags)


def any_flag(*, block: Any = BlockFlags) -> AnyVector:
    return AnyVector(block(inputs=4, columns=16), block_flags)


def every_tree(*, block: Any = TreeBuilder) -> EveryVector:
    return EveryVector(block(inputs=2, width=1, count_bits=8), tree_nodes)


def any_tree(*, block: Any = TreeBuilder) -> AnyVector:
    return AnyVector(block(inputs=4, width=4, count_bits=8), tree_nodes)


def pairs(*, block: Any = PairCombiner) -> CombinerContract:
    return CombinerContract(block(value="int32"), reduces=2)


def unpacker(lanes: int, width: int, *, block: Any = BitUnpacker) -> UnpackerContract:
    return UnpackerContract(block(beat_bits=8, lanes=lanes, width=width, stages=1, count_bits=5), most=4)


def packer(lanes: int, width: int, *, block: Any = BitPacker) -> PackerContract:
    return PackerContract(block(beat_bits=8, lanes=lanes, width=width, stages=1), most=4)


def record_packer(coordinate_bits: int, *, block: Any = RecordPacker) -> RecordPackerContract:
    return RecordPackerContract(block(lanes=1, value="int8"), most=3, coordinate_bits=coordinate_bits)


def record_reader(*, block: Any = RecordReader) -> RecordReaderContract:
    made = block(lanes=1, address_width=8, value="int8", pending=2)
    return RecordReaderContract(made, coordinate_bits=29, most=3, inside=3)


def line_range(*, block: Any = LineRange) -> LineRangeContract:
    return LineRangeContract(block(lanes=1, address_width=8, carries=2), most=3)


def shared_beats(carries: int, *, block: Any = SharedBeats) -> SharedBeatsContract:
    return SharedBeatsContract(block(data_width=8, carries=carries), most=3)


def part_joiner(parts: int, *, block: Any = PartJoiner) -> PartJoinerContract:
    return PartJoinerContract(block(beat_bits=8, parts=parts))


def line_splitter(parts: int, *, block: Any = LineSplitter) -> LineSplitterContract:
    return LineSplitterContract(block(beat_bits=16, parts=parts, address_width=8))


def restoring(width: int, bits_per_stage: int, *, block: Any = RestoringDivmod) -> DivmodContract:
    return DivmodContract(block(lanes=1, width=width, divisor_width=width, bits_per_stage=bits_per_stage))


def reciprocal(width: int, *, block: Any = ReciprocalDivmod) -> DivmodContract:
    return DivmodContract(block(lanes=1, width=width, divisor_width=width))


def configuration_words(block: Any) -> dict[int, int]:
    """Byte offset and width of each 32-bit word of configuration."""
    words: dict[int, int] = {}
    for register in by_role(Role.CONFIGURATION, Role.ADDRESS):
        width = Value.cast(block.settings[register.key]).shape().width
        words |= {place: min(32, width - 32 * n) for n, (_, place) in enumerate(register.words) if width > 32 * n}
    return words
