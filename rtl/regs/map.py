"""The register map, declared once: hardware, Python constants, SystemRDL, C header and manual are derived from it.

Pure Python. A register is 32 bits, or 64 bits as a pair ``NAME_LO`` at its offset and ``NAME_HI`` four bytes above.
All offsets are bytes in a 12-bit space; what is not listed here is unmapped.
"""

from .counter_list import COUNTERS
from .register import (
    ADDRESS_BITS,
    Access,
    ErrorDescription,
    Field,
    Register,
    Role,
    address,
    check_map,
    configuration,
    constant,
    result,
)
from .source_formats import CONVERTED, SOURCE_ERRORS, SOURCES

__all__ = [
    "ADDRESS_BITS",
    "CONVERSION",
    "COUNTER_BASE",
    "ERRORS",
    "IDENTITY",
    "ORDERS",
    "PHASES",
    "PHASE_BITS",
    "REGISTERS",
    "UNITS",
    "VALUE_CODES",
    "VALUE_TYPES",
    "VERSION",
    "Access",
    "ErrorDescription",
    "Field",
    "Register",
    "Role",
    "built_registers",
    "by_role",
    "value_code",
]

IDENTITY = 0x464C4F4D  # "FLOM"
VERSION = 0x00020000  # major version in the upper half, minor in the lower
COUNTER_BASE = 0x400
# Registers that there are only in a build that converts this tensor on its way: how it lies in memory, of A and B records, too.
CONVERSION = {"a": ("CONVERSION", "COUNT"), "b": ("CONVERSION_B", "COUNT_B"), "c": ("CONVERSION_C",)}

ORDERS = ("ijk", "ikj", "jik", "jki", "kij", "kji")
VALUE_TYPES = ("int8", "int16", "int32", "bf16", "fp32")

# What a run is doing, in the order of the values of WAITING.phase: name and words.
PHASES = {
    "idle": "idle",
    "check": "checking the scheme",
    "next_tile": "waiting for the next tile",
    "load_b": "loading a tile",
    "compute": "computing",
    "drain": "draining",
    "assemble": "assembling",
    "done": "done",
}
PHASE_BITS = 8
# What may be at work, in the order of its bits above the phase: the machine's units, then those of engines.
UNITS = {
    "a_accessor": "A accessor",
    "b_accessor": "B accessor",
    "c_accessor": "C accessor",
    "memory_writes": "memory writes",
    "selection_gate": "selection gate",
    "assembly_pass": "assembly pass",
    "b_lookup": "B lookup",
    "leaf_queue": "leaf queue",
    "b_streamer": "B streamer",
    "c_reentry": "C re-entry",
    "dispatcher": "dispatcher",
    "collector": "collector",
    "memory_fetch": "memory fetch",
    "processing_elements": "processing elements",
}


ERRORS: tuple[ErrorDescription, ...] = (
    ErrorDescription(0, "none", "No error.", "zero"),
    ErrorDescription(1, "axi_read", "A read was answered with SLVERR or DECERR.", "byte address of the burst"),
    ErrorDescription(2, "axi_write", "A write was answered with SLVERR or DECERR.", "byte address of the burst"),
    ErrorDescription(
        3, "bad_tile_shape", "A shape or tile shape is zero, or not what TUNING asks for.", "offset of the register"
    ),
    ErrorDescription(4, "bad_partition", "A partition is too small or outside the SRAM.", "offset of the register"),
    ErrorDescription(5, "b_metadata_overflow", "Metadata of a B tile does not fit its partition.", "lines needed"),
    ErrorDescription(6, "c_elements_overflow", "The nonzeros of C exceed C_ELEMENTS_BYTES.", "bytes needed so far"),
    ErrorDescription(7, "c_partial_overflow", "A partial C region exceeds C_PARTIAL_BYTES.", "bytes needed so far"),
    ErrorDescription(8, "c_scratch_overflow", "Scratch fibers exceed C_SCRATCH_BYTES.", "bytes needed so far"),
    ErrorDescription(9, "bad_mode", "This combination of modes, order and shapes is not legal.", "value of MODES"),
    ErrorDescription(10, "bad_order", "ORDER names no inter-tile order.", "value of ORDER"),
    ErrorDescription(11, "watchdog", "The driver gave up waiting; hardware never reports it.", "cycles waited"),
    ErrorDescription(12, "bad_address", "An address is not aligned as required.", "offset of the register"),
    ErrorDescription(13, "a_metadata_overflow", "Metadata of an A tile does not fit its partition.", "lines needed"),
    ErrorDescription(
        14, "write_outside", "A write outside WRITE_BEGIN to WRITE_END was held back.", "byte address of the burst"
    ),
    ErrorDescription(
        15, "stalled", "Nothing moves any more: registers and data in memory contradict each other.", "value of WAITING"
    ),
    ErrorDescription(
        16, "bad_coordinate", "A column of A leaves its tile, or falls in a row cut along k.", "the column"
    ),
    ErrorDescription(17, "bad_row", "Columns of B fall in their row or leave their tile.", "the column"),
    ErrorDescription(
        18,
        "bad_window",
        "A window is too long, leaves K or B's partition, or keeps absent rows.",
        "its tile along i",
    ),
    ErrorDescription(
        19,
        "bad_coordinates",
        "Packed coordinates have over 32 bits, or none of many columns.",
        "value of COORDINATES",
    ),
    ErrorDescription(
        20,
        "bad_place",
        "A row of B would lie outside B's partition.",
        "its place, or the tile's first row",
    ),
    *SOURCE_ERRORS,
    ErrorDescription(
        33,
        "bad_entry",
        "An entry lies outside the matrix, or in no tile of A.",
        "number of the entry",
    ),
    ErrorDescription(
        34, "bad_entry_order", "Entries of A or B do not rise, or one place comes twice.", "number of the entry"
    ),
)


_MODES = tuple(
    Field(f"{tensor}_buffering", bit, 1, Access.READ_WRITE, f"1: {tensor.upper()} is buffered, 0: streamed.")
    for bit, tensor in enumerate("abc")
) + (
    Field(
        "windows",
        3,
        1,
        Access.READ_WRITE,
        "1: each tile along i has a window of k of its own, at most TILE_K long: A_TILE_MAP is their table. Only B is buffered.",
    ),
    Field(
        "listed",
        4,
        1,
        Access.READ_WRITE,
        "1, with windows: columns of A and SHAPE_K are places in a list of rows of B: begins in B_POSITIONS, ends in B_POINTERS.",
    ),
    Field(
        "joined",
        5,
        1,
        Access.READ_WRITE,
        "1: each k step writes the parts of rows of C that it makes, once; the last step joins them. C is streamed.",
    ),
    Field(
        "planned",
        6,
        1,
        Access.READ_WRITE,
        "1, with listed: a place of the list says where its row goes. A column of A: an entry and, above it, a load of its tile.",
    ),
    Field("entry_bits", 7, 5, Access.READ_WRITE, "With planned: bits of an entry in a column of A."),
)

_COORDINATES = tuple(
    Field(tensor, 6 * n, 6, Access.READ_WRITE, f"Of {tensor.upper()}'s nonzeros.") for n, tensor in enumerate("abc")
)


def _conversion(tensor: str, way: str, how: str) -> tuple[Field, ...]:
    formats = ", ".join(f"{SOURCES.index(name)} {name}" for name in CONVERTED)
    return (
        Field("enable", 0, 1, Access.READ_WRITE, f"1: {tensor} is converted on its way {way}. {how}"),
        Field("format", 1, 3, Access.READ_WRITE, f"Format of {tensor}: {formats}."),
        Field("row", 4, 6, Access.READ_WRITE, "Bits of a row number, 0 to 32."),
        Field("run", 10, 6, Access.READ_WRITE, "Bits of a run of RLC, 1 to 32."),
    )


_CONVERSION_A = _conversion("A", "in", "It streams, k and A's rows are whole.")
_CONVERSION_B = _conversion("B", "in", "Each tile has whole rows of B, and all of them find room.")
_CONVERSION_C = _conversion("C", "out", "C_NNZ then counts its records; a dense one has none.")

_WAITING = (
    Field(
        "phase",
        0,
        PHASE_BITS,
        Access.READ,
        "Phase: " + ", ".join(f"{n} {words}" for n, words in enumerate(PHASES.values())) + ".",
    ),
    *(
        Field(name, PHASE_BITS + n, 1, Access.READ, f"Not idle: {words}.")
        for n, (name, words) in enumerate(UNITS.items())
    ),
)

REGISTERS: tuple[Register, ...] = (
    constant("ID", 0x000, 'Identity, 0x464c4f4d ("FLOM").'),
    constant("VERSION", 0x004, "Version of this map: major in the upper half, minor in the lower."),
    constant("PES", 0x010, "Processing elements."),
    constant("MERGE_RADIX", 0x014, "Leaves that one merge job can have."),
    constant("LANES", 0x018, "Nonzeros in one line (bus beat, SRAM word)."),
    constant("SRAM_LINES", 0x01C, "Lines of the banked SRAM."),
    constant("BANKS", 0x020, "Banks of the SRAM."),
    constant("ADDRESS_WIDTH", 0x024, "Bits of a memory address."),
    constant(
        "VALUE_TYPE",
        0x028,
        "Type of the values: 0 int8, 1 int16, 2 int32, 3 bf16, 4 fp32; 8 more where integers saturate or subnormals are flushed.",
    ),
    constant("FIFO_LINES", 0x02C, "Default size of the FIFO-managed region in lines."),
    constant("BURST_BEATS", 0x030, "Longest burst on the memory bus."),
    constant("OUTSTANDING", 0x034, "Bursts that may be outstanding in each direction."),
    constant("COUNTERS", 0x038, "Performance counters in this build."),
    constant("DYNAMIC_TUNING", 0x03C, "1 when tile shapes can be tuned during a run."),
    constant(
        "PACKED",
        0x040,
        "1 when nonzeros lie in memory as packed records; 2 more when A is converted on its way in, 4 when B is, 8 when C is.",
    ),
    Register(
        "CONTROL",
        0x080,
        Role.CONTROL,
        "Commands.",
        32,
        (
            Field(
                "start", 0, 1, Access.PULSE, "Start a run and clear done, error and irq_pending. Ignored while busy."
            ),
            Field("soft_reset", 1, 1, Access.PULSE, "Stop, clear done, error and irq_pending; configuration stays."),
            Field("irq_enable", 2, 1, Access.READ_WRITE, "Drive the interrupt line with irq_pending."),
        ),
    ),
    Register(
        "STATUS",
        0x084,
        Role.CONTROL,
        "State of the run.",
        32,
        (
            Field("busy", 0, 1, Access.READ, "A run is in progress; configuration is locked."),
            Field("done", 1, 1, Access.READ, "The last run has ended, well or with an error."),
            Field("error", 2, 1, Access.READ, "The last run ended with an error: see ERROR_CODE."),
            Field("irq_pending", 3, 1, Access.CLEAR, "Set when a run ends."),
        ),
    ),
    Register(
        "ERROR_CODE",
        0x088,
        Role.CONTROL,
        "What went wrong, zero when nothing did.",
        32,
        (Field("value", 0, 8, Access.READ, "Error code."),),
    ),
    result("ERROR_DETAIL", 0x090, "More about the error: what it says depends on ERROR_CODE.", Role.CONTROL),
    result("C_NNZ", 0x098, "Nonzeros stored in C."),
    Register("WAITING", 0x0A0, Role.RESULT, "What is in flight now.", 32, _WAITING),
    configuration("SHAPE_I", 0x100, "Rows of A and C."),
    configuration("SHAPE_J", 0x104, "Columns of B and C."),
    configuration("SHAPE_K", 0x108, "Columns of A, rows of B."),
    configuration("TILE_I", 0x110, "Tile shape: rows of A and C."),
    configuration("TILE_J", 0x114, "Tile shape: columns of B and C."),
    configuration("TILE_K", 0x118, "Tile shape: columns of A, rows of B."),
    configuration("ORDER", 0x120, "Inter-tile order, outermost first: 0 ijk, 1 ikj, 2 jik, 3 jki, 4 kij, 5 kji.", 8),
    Register("MODES", 0x124, Role.CONFIGURATION, "Buffering or streaming, a bit a tensor; windows.", 32, _MODES),
    Register(
        "TUNING",
        0x128,
        Role.CONFIGURATION,
        "Dynamic tuning of TILE_J and TILE_K; their smallest values in a run are those of the registers shifted right.",
        32,
        (
            Field(
                "enable",
                0,
                1,
                Access.READ_WRITE,
                "1: shapes change during the run. Tile maps are then of the smallest tiles.",
            ),
            Field(
                "level_j",
                1,
                3,
                Access.READ_WRITE,
                "Halvings of TILE_J that are allowed; TILE_J is a multiple of 2^level_j.",
            ),
            Field(
                "level_k",
                4,
                3,
                Access.READ_WRITE,
                "Halvings of TILE_K that are allowed; TILE_K is a multiple of 2^level_k.",
            ),
        ),
    ),
    Register(
        "COORDINATES",
        0x12C,
        Role.CONFIGURATION,
        "Bits of a packed coordinate, 0 to 32; 0 where there is one column.",
        32,
        _COORDINATES,
    ),
    Register("CONVERSION", 0x130, Role.CONFIGURATION, "How A lies in memory, where PACKED has 2.", 32, _CONVERSION_A),
    configuration("COUNT", 0x134, "Records of A in its format; a dense one has none."),
    Register("CONVERSION_B", 0x138, Role.CONFIGURATION, "How B lies in memory, where PACKED has 4.", 32, _CONVERSION_B),
    configuration("COUNT_B", 0x13C, "Records of B in its format; a dense one has none."),
    configuration("A_BASE", 0x140, "First SRAM line of the A partition."),
    configuration("A_LINES", 0x144, "SRAM lines of the A partition."),
    configuration("B_BASE", 0x148, "First SRAM line of the B partition."),
    configuration("B_LINES", 0x14C, "SRAM lines of the B partition."),
    configuration("C_BASE", 0x150, "First SRAM line of the C partition."),
    configuration("C_LINES", 0x154, "SRAM lines of the C partition."),
    configuration("FIFO_LINES_B", 0x15C, "Lines of the FIFO-managed region of B."),
    configuration("SCRATCH_LINES", 0x158, "Of the C partition's lines the last ones, for scratch fibers."),
    configuration(
        "PART_WORDS", 0x160, "With MODES.joined: words at C_PARTIAL1 from a k step's positions to the next one's."
    ),
    Register("CONVERSION_C", 0x164, Role.CONFIGURATION, "How C lies in memory, where PACKED has 8.", 32, _CONVERSION_C),
    address("A_POINTERS", 0x200, "Row pointers of A. With CONVERSION: the mask of ZVC, the values of a dense matrix."),
    address("A_ELEMENTS", 0x208, "Nonzeros of A. With CONVERSION: entries of COO, pairs of RLC, values of ZVC."),
    address("A_POSITIONS", 0x210, "Begin positions of A's rows."),
    address(
        "B_POINTERS", 0x218, "Row pointers of B. With CONVERSION_B: the mask of ZVC, the values of a dense matrix."
    ),
    address("B_ELEMENTS", 0x220, "Nonzeros of B. With CONVERSION_B: entries of COO, pairs of RLC, values of ZVC."),
    address("B_POSITIONS", 0x228, "Begin positions of B's rows."),
    address(
        "C_POINTERS", 0x230, "Row pointers of C. With CONVERSION_C: the mask of ZVC, the values of a dense matrix."
    ),
    address("C_ELEMENTS", 0x238, "Nonzeros of C. With CONVERSION_C: entries of COO, pairs of RLC, values of ZVC."),
    address("C_PARTIAL0", 0x240, "First region of partial C. With MODES.joined: parts of rows."),
    address(
        "C_PARTIAL1",
        0x248,
        "Second region of partial C. With MODES.joined: positions of the parts, from 1; 0 to begin with.",
    ),
    address("C_TILE_POSITIONS", 0x250, "Positions of the rows of partial C tiles."),
    address("C_SCRATCH", 0x258, "Scratch fibers of rows with more leaves than one job takes."),
    address("A_TILE_MAP", 0x260, "Occupied tiles of A, a bit each; 0 when there is none. With windows: their table."),
    address("B_TILE_MAP", 0x268, "Occupied tiles of B, a bit each; 0 when there is none."),
    address("C_FINISHED", 0x270, "Rows of finished C tiles while C is cut along j."),
    configuration("C_ELEMENTS_BYTES", 0x280, "Room at C_ELEMENTS in bytes.", 64),
    configuration("C_PARTIAL_BYTES", 0x288, "Room in each partial region in bytes.", 64),
    configuration(
        "C_SCRATCH_BYTES",
        0x290,
        "Room at C_SCRATCH in bytes: as many equal parts as the largest power of two up to PES and 32.",
        64,
    ),
    configuration("C_FINISHED_BYTES", 0x298, "Room at C_FINISHED in bytes.", 64),
    address("WRITE_BEGIN", 0x2A0, "First byte that a run may write."),
    address("WRITE_END", 0x2A8, "First byte after those that a run may write; 0: up to the last address."),
    *(
        result(counter.name, COUNTER_BASE + 8 * index, f"{counter.description} Unit: {counter.unit}.", Role.COUNTER)
        for index, counter in enumerate(COUNTERS)
    ),
)


def built_registers(converts: str) -> tuple[Register, ...]:
    """Those of a build that converts these tensors on their way, ``converts`` of :class:`rtl.accelerator.Accelerator`."""
    absent = {name for tensor, names in CONVERSION.items() if tensor not in converts for name in names}
    return tuple(register for register in REGISTERS if register.name not in absent)


def by_role(*roles: Role) -> tuple[Register, ...]:
    """Registers with one of these roles, in order of their offsets."""
    return tuple(register for register in REGISTERS if register.role in roles)


def value_code(value: str) -> int:
    """What ``VALUE_TYPE`` reads for a value type, ``int8`` or ``int8_saturate``, as ``rtl.arith`` names them."""
    kind, _, special = value.partition("_")
    return VALUE_TYPES.index(kind) + (8 if special else 0)


# Every value of VALUE_TYPE: the plain types, then those that saturate or flush.
VALUE_CODES = {
    name: value_code(name)
    for special in (False, True)
    for kind in VALUE_TYPES
    for name in (kind if not special else f"{kind}_saturate" if kind.startswith("int") else f"{kind}_flush",)
}


check_map(REGISTERS)
