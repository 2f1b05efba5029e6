"""Every proof, with the claim in words, the sizes it is made at and how far it looks."""

from collections.abc import Iterator
from functools import partial

from rtl.buffer.buffet import BuffetControl
from rtl.buffer.tailors import TailorsControl
from rtl.lib.stream import StreamRegister
from rtl.mint.prefix_sum import FORMS
from rtl.pe.combiner import CombinerCascade

from .prove import Proof
from .slow_memory import OnSlowMemory
from .spec_buffet import BuffetAgainstModel
from .spec_combiner import CombinerContract
from .spec_streams import QueueContract
from .spec_tailors import TailorsAgainstModel
from .specs import (
    any_count,
    any_flag,
    any_order,
    any_sum,
    any_tree,
    arbiter,
    as_buffet,
    buffet,
    deep_queue,
    dispatcher,
    every_count,
    every_flag,
    every_order,
    every_sum,
    every_tree,
    line_range,
    line_splitter,
    merge,
    packer,
    pairs,
    part_joiner,
    queue,
    reading,
    reading_anywhere,
    reciprocal,
    record_packer,
    record_reader,
    register_port,
    restoring,
    shared_beats,
    skid,
    sorted_jobs,
    tailors_buffer,
    unpacker,
    writing,
    writing_anywhere,
)
from .stream_proofs import stream_rules

__all__ = ["catalogue"]


def catalogue() -> list[Proof]:
    """All proofs; their names are unique."""
    groups = (streams, arbiters, buffets, tailors, memory, registers, network, pe, mint, records)
    return [proof for group in groups for proof in group()]


def streams() -> Iterator[Proof]:
    claim = "every item comes out once, in order, unchanged; the output keeps what it offers; no item is stuck"
    for depth in (1, 2, 3, 4):
        yield Proof(
            f"stream_queue.depth{depth}",
            f"StreamQueue, {depth} deep: {claim}; level counts the items",
            partial(queue, depth),
            reach=2 * depth + 4,
        )
    for depth in (3, 4):
        yield Proof(
            f"stream_queue.block{depth}",
            f"StreamQueue in block memory, {depth} deep: {claim}; level counts the items",
            partial(queue, depth, block_memory=True),
            reach=2 * depth + 6,
        )
    yield Proof(
        "deep_queue.contract",
        f"DeepQueue, 4 items in LUT RAM and 3 in block memory: {claim}",
        deep_queue,
        reach=24,
    )
    yield Proof(
        "stream_skid.contract",
        f"StreamSkid: {claim}",
        skid,
        reach=6,
    )
    yield Proof(
        "stream_register.contract",
        f"StreamRegister: {claim}",
        lambda: QueueContract(StreamRegister(shape=3), depth=1, latency=1),
        reach=6,
    )
    yield from stream_rules()


def arbiters() -> Iterator[Proof]:
    for count in (1, 2, 3, 5, 8):
        yield Proof(
            f"arbiter.count{count}",
            f"RoundRobinArbiter of {count}: one-hot grant, only to who asks, always when anybody does; who keeps asking "
            f"waits for at most {count - 1} used grants, each to another",
            partial(arbiter, count),
            reach=count + 3,
        )


def buffets() -> Iterator[Proof]:
    claim = (
        "any sequence of operations, legal or not: every read gives the entry that a list would, once and in order; "
        "credit and occupancy add up to the capacity; the error is raised when it should be"
    )
    for entries in (2, 3):
        yield Proof(
            f"buffet.entries{entries}",
            f"Buffet of {entries} entries, any capacity: {claim}",
            partial(buffet, entries),
            reach=12,
        )
    yield Proof(
        "buffet.slow_memory",
        f"BuffetControl of 3 entries over a memory that stalls: {claim}",
        lambda: BuffetAgainstModel(
            OnSlowMemory(BuffetControl(width=1, entries=3, queue_depth=2), refusals=1),
        ),
        depth=12,
    )


def tailors() -> Iterator[Proof]:
    claim = (
        "any sequence of operations, legal or not: every read gives the entry of its tile index, once and in order; an "
        "operation waits exactly when the paper's would; occupancy, credit, FIFO offset and errors are the model's"
    )
    for entries in (2, 3, 4):
        yield Proof(
            f"tailors.entries{entries}",
            f"TailorsBuffer of {entries} entries, any capacity, region and tile length: {claim}",
            partial(tailors_buffer, entries),
            depth=16,
        )
    for fifo, length in ((1, 0), (1, 3), (2, 3)):
        yield Proof(
            f"tailors.region{fifo}_tile{length}",
            f"TailorsBuffer of 2 entries, region of {fifo}, tile of {length or 'unbounded length'}: {claim}",
            partial(tailors_buffer, 2, setting=(2, fifo, length)),
            reach=18,
            limit=900,
        )
    # A backfill takes 16 cycles, which are beyond reach with every setting of 3 entries over such a memory.
    yield Proof(
        "tailors.slow_memory",
        f"TailorsControl of 3 entries over a memory that stalls, until a bumped part is read: {claim}",
        lambda: TailorsAgainstModel(
            OnSlowMemory(TailorsControl(width=1, entries=3, queue_depth=2), refusals=1), backfill=False
        ),
        depth=12,
    )
    yield Proof(
        "tailors.slow_backfill",
        f"TailorsControl of 2 entries, region of 1, tile of 3, over a memory that stalls: {claim}",
        lambda: TailorsAgainstModel(
            OnSlowMemory(TailorsControl(width=1, entries=2, queue_depth=2), refusals=1), setting=(2, 1, 3)
        ),
        depth=16,
        limit=900,
    )
    for entries in (2, 3, 4):
        yield Proof(
            f"tailors.as_buffet{entries}",
            f"TailorsBuffer and Buffet of {entries} entries while nothing overflows: the same answers to the same "
            "operations, as many entries, as much credit, neither far behind the other",
            partial(as_buffet, entries),
            depth=14 if entries == 4 else 16,
        )


def memory() -> Iterator[Proof]:
    rules = (
        "VALID and payload stay until READY; no burst crosses 4 KiB or is too long; never more outstanding than allowed; "
        "every error response is reported; not busy means that nothing is on the bus, also after a halt"
    )
    yield Proof(
        "read_engine.bus",
        f"ReadEngine of 2 clients, requests of any length: {rules}",
        reading,
        reach=14,
    )
    yield Proof(
        "write_engine.bus",
        f"WriteEngine of 2 clients, requests of any length: {rules}; WLAST on the last beat; data after their command; "
        "nothing outside the window",
        writing,
        reach=16,
    )
    for client in (0, 1):
        yield Proof(
            f"read_engine.client{client}",
            f"ReadEngine, client {client}: each requested beat is asked for once at its address, its data arrive in order, "
            "room was kept for them",
            partial(reading, client),
            depth=14,
        )
        yield Proof(
            f"write_engine.client{client}",
            f"WriteEngine, client {client}: each requested beat is written once at its address with its data and strobes; "
            "idle means that all is acknowledged",
            partial(writing, client),
            depth=14,
        )
    yield Proof(
        "read_engine.addresses",
        "ReadEngine with 40 address bits, client 0: requests from any line, across pages and 2^32, ask for each beat once at its "
        "address",
        reading_anywhere,
        depth=10,
    )
    yield Proof(
        "write_engine.addresses",
        "WriteEngine with 40 address bits, client 0: requests from any line, across pages and 2^32, write each beat once at its "
        "address",
        writing_anywhere,
        depth=10,
    )


def registers() -> Iterator[Proof]:
    yield Proof(
        "registers.bus",
        "RegisterFile: every AXI4-Lite read and write is answered once, in the stated time, by an answer that stays",
        partial(register_port, words=False),
        reach=14,
    )
    yield Proof(
        "registers.words",
        "RegisterFile: each word of configuration gives what was last written to it and acknowledged; writes of it are "
        "refused while the machine is busy",
        partial(register_port, words=True),
        depth=13,
    )


def network() -> Iterator[Proof]:
    yield Proof(
        "dispatcher.contract",
        "Dispatcher of 2 PEs, radix 2: each leaf goes to a PE once, in order, in a job of its row with at most "
        "radix leaves; one ticket a job, one fiber a row; no leaf waits for long",
        dispatcher,
        reach=24,
    )


def pe() -> Iterator[Proof]:
    claim = (
        "the items of each leaf come out once, in order; coordinates rise, equal ones in leaf order; jobs end together"
    )
    yield Proof(
        "merge_tree.radix2",
        f"MergeTree of 2 leaves: {claim}",
        partial(merge, 2),
        reach=14,
    )
    yield Proof(
        "merge_tree.radix4",
        f"MergeTree of 4 leaves: {claim}",
        partial(merge, 4),
        depth=12,
    )
    claim = "what comes out is the sorted list of everything that went in"
    yield Proof(
        "merge_tree.sorted2",
        f"MergeTree of 2 leaves, 2 jobs of any fibers of up to 2 nonzeros: {claim}; without pauses it is out in 16 cycles",
        partial(sorted_jobs, 2, jobs=2, longest=2, within=16),
        reach=20,
    )
    yield Proof(
        "merge_tree.sorted4",
        f"MergeTree of 4 leaves, any fibers of up to 2 nonzeros, without pauses: {claim}, in 18 cycles",
        partial(sorted_jobs, 4, jobs=1, longest=2, within=18, pauses=False),
        depth=20,
    )
    yield Proof(
        "merge_tree.sorted4_pauses",
        f"MergeTree of 4 leaves, any fibers of one nonzero: {claim}; without pauses it is out in 14 cycles",
        partial(sorted_jobs, 4, jobs=1, longest=1, within=14),
        depth=16,
    )
    claim = "sorted in, sorted out; what comes out with a coordinate adds up to what went in; runs shrink as promised"
    yield Proof(
        "pair_combiner.contract",
        f"PairCombiner: {claim}",
        pairs,
        reach=12,
    )
    yield Proof(
        "combiner_cascade.radix4",
        f"CombinerCascade for runs of up to 4: {claim}",
        lambda: CombinerContract(CombinerCascade(value="int32", radix=4), reduces=4),
        depth=12,
    )


def mint() -> Iterator[Proof]:
    claim = (
        "any requests and beats: every bit of every record is that of its beats, zeros above its width; as many records as "
        "asked for; no more than two beats are held; the output keeps what it offers"
    )
    for name, lanes, width in (("fits", 2, 4), ("beyond", 2, 6)):
        yield Proof(
            f"bit_unpacker.{name}",
            f"BitUnpacker of beats of 8 bits, {lanes} lanes, records of up to {width} bits: {claim}",
            partial(unpacker, lanes, width),
            depth=10,
        )
    claim = (
        "any regions and groups: every bit of every record is where it belongs and its byte is written, bits behind the records "
        "are 0; the last beat is the one in which the region ends; the output keeps what it offers"
    )
    for name, lanes, width in (("fits", 2, 4), ("beyond", 2, 6)):
        yield Proof(
            f"bit_packer.{name}",
            f"BitPacker of beats of 8 bits, {lanes} lanes, records of up to {width} bits: {claim}",
            partial(packer, lanes, width),
            depth=10,
        )
    claim = "any divisors and dividends: quotient and remainder are exact, in order, by the divisor taken before; 0 is refused"
    for bits in (1, 2):
        yield Proof(
            f"restoring_divmod.bits{bits}",
            f"RestoringDivmod of 8 bits, {bits} a stage: {claim}",
            partial(restoring, 8, bits),
            depth=8 // bits + 3,
        )
    yield Proof(
        "reciprocal_divmod.width8",
        f"ReciprocalDivmod of 8 bits: {claim}",
        partial(reciprocal, 8),
        depth=20,
    )
    order = "every vector once, in order, whatever pauses"
    for form, depth in (("serial_chain", 11), ("work_efficient", 9), ("highly_parallel", 7)):
        name = FORMS[form].__name__
        yield Proof(
            f"prefix_sum.{form}",
            f"{name} of 4 inputs of 1 bit: every lane is the plain sum of its array up to there; {order}",
            partial(every_sum, form),
            reach=12,
        )
        yield Proof(
            f"prefix_sum.{form}8",
            f"{name} of 8 inputs of 8 bits: every lane of any vector is its plain sum and the last sum before it",
            partial(any_sum, form),
            depth=depth,
            limit=900,
        )
    claim = "every item stands where its rank by presence, key and lane says"
    yield Proof(
        "sorter.inputs4",
        f"Sorter of 4 inputs, keys of 1 bit: {claim}; {order}",
        every_order,
        reach=12,
    )
    yield Proof(
        "sorter.inputs8",
        f"Sorter of 8 inputs, keys of 1 bit, any vector: {claim}",
        any_order,
        depth=9,
    )
    claim = "every lane has its place in its run, and the run's last its length"
    yield Proof(
        "cluster_counter.inputs4",
        f"ClusterCounter of 4 inputs, keys of 1 bit: {claim}; {order}",
        every_count,
        reach=10,
    )
    yield Proof(
        "cluster_counter.inputs8",
        f"ClusterCounter of 8 inputs, keys of 4 bits, any vector: {claim}",
        any_count,
        depth=7,
    )
    claim = "flags are the blocks that the row has occupied, and a nonzero is fresh where it is the first of its block"
    yield Proof(
        "block_flags.inputs2",
        f"BlockFlags of 2 inputs, 4 columns: {claim}; {order}",
        every_flag,
        reach=10,
    )
    yield Proof(
        "block_flags.inputs4",
        f"BlockFlags of 4 inputs, 16 columns, any vector: {claim}",
        any_flag,
        depth=7,
    )
    claim = "flags and numbers are those of the tree's nodes, counted entry by entry"
    yield Proof(
        "tree_builder.inputs2",
        f"TreeBuilder of 2 inputs, coordinates of 1 bit: {claim}; {order}",
        every_tree,
        depth=14,
    )
    yield Proof(
        "tree_builder.inputs4",
        f"TreeBuilder of 4 inputs, coordinates of 4 bits, any vector: {claim}",
        any_tree,
        depth=11,
    )


def records() -> Iterator[Proof]:
    """Packed records."""
    claim = (
        "any words, flushes and restarts: every bit of every record is where it belongs and its word is written, none behind the "
        "records; a flush hands out all that was taken; beats come in order; the output keeps what it offers"
    )
    for name, coordinate_bits, records in (
        ("packed", 29, "records of 37 bits"),
        ("plain", 0, "nonzeros as they are on chip"),
    ):
        yield Proof(
            f"record_packer.{name}",
            f"RecordPacker of one lane, int8, {records}: {claim}",
            partial(record_packer, coordinate_bits),
            depth=20,
        )
    yield Proof(
        "record_reader.lane1",
        "RecordReader of one lane, int8, records of 37 bits, any requests of up to 3 lines, plain ones between them: every bit "
        "of every line is that of memory, wherever the beat that holds it was read; the output keeps what it offers",
        record_reader,
        depth=14,
    )
    yield Proof(
        "line_range.lane1",
        "LineRange of one lane, addresses of 8 bits, records of any bits, requests of up to 3 lines: the beats of any request "
        "are those that hold its bits, none is read that it shares, they begin with the bit as it says; the output keeps what it "
        "offers",
        line_range,
        depth=6,
    )
    claim = (
        "each beat of any requests of up to 3 is memory's next, or the last one of its carry; none is lost or waits for anything "
        "else; the output keeps what it offers"
    )
    for carries in (1, 2):
        yield Proof(
            f"shared_beats.carries{carries}",
            f"SharedBeats of {'one carry' if carries == 1 else '2 carries'}: {claim}",
            partial(shared_beats, carries),
            reach=10,
        )
    for parts in (2, 4):
        yield Proof(
            f"part_joiner.parts{parts}",
            f"PartJoiner of {parts} beats a line: each beat of any lines, of fewer beats where one is the last, is at its place "
            "in its line; a line is there from its last beat until it is taken, none is lost; the output keeps what it offers",
            partial(part_joiner, parts),
            reach=10,
        )
        yield Proof(
            f"line_splitter.parts{parts}",
            f"LineSplitter of {parts} beats a line: beats and strobes are those of the line, in order, the line is taken with "
            "its last; a request is of all beats of its lines; the output keeps what it offers",
            partial(line_splitter, parts),
            reach=10,
        )
