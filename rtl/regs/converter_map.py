"""The register map of the format converter, declared once. Pure Python; offsets as in :mod:`rtl.regs.map`.

A format in memory has *records* (one for each entry: of COO, CSR, RLC and the values of ZVC) and a *frame* (whose size follows
from the shape: row pointers of CSR, the mask of ZVC, all values of a dense matrix). Each is one region. BSR has a record for
each block, its column, and a third region with the values of all blocks. CSF has a tree of five regions: records, and pointers
to them as its frame, ids of fibers as its blocks, and ids and pointers of slices.
"""

from .map import ERRORS as RUN_ERRORS
from .map import REGISTERS as RUN_REGISTERS
from .register import (
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
from .source_formats import SOURCE_ERRORS, SOURCES

__all__ = [
    "BLOCK_BITS",
    "ERRORS",
    "FORMATS",
    "IDENTITY",
    "PAIRS",
    "POINTER_BITS",
    "REGISTERS",
    "SOURCES",
    "TENSOR_FORMATS",
    "TENSOR_SOURCES",
    "VERSION",
]

IDENTITY = 0x464C4356  # "FLCV"
VERSION = 0x00010003
#: What FORMATS.target may say.
FORMATS = (*SOURCES, "bsr", "csf")
#: Those of a tensor of order 3. All others are of a matrix, where nothing else is said.
TENSOR_FORMATS = ("csf",)
#: Those that such a one is made of.
TENSOR_SOURCES = ("dense", "coo")
#: What is converted: a matrix from each source to each target; a tensor from each source that knows one.
PAIRS = tuple(
    (source, target)
    for source in SOURCES
    for target in FORMATS
    if target not in TENSOR_FORMATS or source in TENSOR_SOURCES
)
#: Most bits of a pointer, and of a count of entries.
POINTER_BITS = 40
#: A block of BSR has at most 2 to the power of this values. So the place of a value in the blocks has at most 64 bits.
BLOCK_BITS = 24

_RUN_ERRORS = {error.name: error for error in RUN_ERRORS}
_SOURCE_ERRORS = {error.name: error for error in SOURCE_ERRORS}

ERRORS: tuple[ErrorDescription, ...] = (
    *(_RUN_ERRORS[name] for name in ("none", "axi_read", "axi_write", "watchdog", "bad_address", "write_outside")),
    _SOURCE_ERRORS["bad_setting"],
    ErrorDescription(33, "bad_coordinate", "An entry lies outside the matrix or tensor.", "number of the entry"),
    ErrorDescription(34, "bad_order", "Entries do not rise, or one place comes twice.", "number of the entry"),
    ErrorDescription(
        35, "bad_pointers", "Row pointers do not begin at 0, fall, or do not end at the count.", "number of the pointer"
    ),
    *(_SOURCE_ERRORS[name] for name in ("bad_mask", "bad_run", "bad_value")),
    ErrorDescription(39, "records_overflow", "Records exceed TARGET_RECORDS_BYTES.", "bytes needed so far"),
    ErrorDescription(40, "frame_overflow", "The frame exceeds TARGET_FRAME_BYTES.", "bytes needed so far"),
    ErrorDescription(
        41,
        "pointer_overflow",
        "Entries or fibers are more than a pointer of the target counts.",
        "how many so far",
    ),
    ErrorDescription(
        42, "scratch_overflow", "Entries to be transposed exceed SCRATCH_BYTES and half of SRAM_BYTES.", "bytes needed"
    ),
    ErrorDescription(
        43, "blocks_overflow", "Blocks, or fibers of CSF, exceed TARGET_BLOCKS_BYTES.", "bytes needed so far"
    ),
    ErrorDescription(44, "ids_0_overflow", "Slices exceed TARGET_IDS_0_BYTES.", "bytes needed so far"),
    ErrorDescription(45, "ptrs_1_overflow", "Pointers of slices exceed TARGET_PTRS_1_BYTES.", "bytes needed so far"),
)


def _bits(name: str, lsb: int, description: str) -> Field:
    return Field(name, lsb, 6, Access.READ_WRITE, description)


REGISTERS: tuple[Register, ...] = (
    constant("ID", 0x000, 'Identity, 0x464c4356 ("FLCV").'),
    constant("VERSION", 0x004, "Version of this map: major in the upper half, minor in the lower."),
    constant("BEAT_BYTES", 0x010, "Bytes of a bus beat; addresses are multiples of it."),
    constant("LANES", 0x014, "Entries that are converted in a cycle at most."),
    constant("ADDRESS_WIDTH", 0x018, "Bits of a memory address."),
    constant("VALUE_TYPE", 0x01C, "Type of the values, as VALUE_TYPE of the accelerator."),
    constant("COUNTERS", 0x020, "Counters of the transposition, a power of two."),
    constant(
        "SRAM_BYTES",
        0x024,
        "Bytes of the SRAM; entries to be transposed that fit into half of it need no scratch region.",
    ),
    *(register for register in RUN_REGISTERS if register.role is Role.CONTROL),
    result("ENTRIES", 0x098, "Entries that went into the target."),
    Register(
        "FORMATS",
        0x100,
        Role.CONFIGURATION,
        f"What is converted: {', '.join(f'{n} {name}' for n, name in enumerate(FORMATS))}.",
        32,
        (
            Field(
                "source", 0, 3, Access.READ_WRITE, f"Format of the source: not {' or '.join(FORMATS[len(SOURCES) :])}."
            ),
            Field(
                "target",
                3,
                3,
                Access.READ_WRITE,
                f"Format of the target; {TENSOR_FORMATS[0]} of {' or '.join(TENSOR_SOURCES)}.",
            ),
        ),
    ),
    Register(
        "WIDTHS",
        0x104,
        Role.CONFIGURATION,
        "Bits of fields.",
        32,
        (
            _bits("row", 0, "Row number, 0 to 32."),
            _bits("column", 6, "Column number, 0 to 32."),
            _bits("source_run", 12, "Run of a source in RLC, 1 to 32."),
            _bits("target_run", 18, "Run of a target in RLC, 1 to 32."),
            _bits("depth", 24, "Third coordinate of a tensor, 0 to 32."),
        ),
    ),
    Register(
        "POINTERS",
        0x108,
        Role.CONFIGURATION,
        "Bits of pointers.",
        32,
        (
            _bits("source", 0, f"Pointer of a source in CSR or CSC, 0 to {POINTER_BITS}."),
            _bits("target", 6, f"Pointer of a target in CSR, CSC or BSR, or to an entry of CSF, 0 to {POINTER_BITS}."),
            _bits("slices", 12, f"Pointer of a target in CSF to a fiber, 0 to {POINTER_BITS}."),
        ),
    ),
    Register(
        "DIGITS",
        0x10C,
        Role.CONFIGURATION,
        "How entries are sorted where their order changes, by digits of a key, the lowest first. To CSC the key is the column, "
        "from CSC the row. To BSR it is, from the lowest bit on: from CSC the row inside a block; column and row of the block.",
        32,
        (
            _bits("bits", 0, "Bits of a digit, 1 to log2 of COUNTERS."),
            _bits("passes", 6, "Digits of a key: its bits divided by those of a digit, rounded up; at least 1."),
        ),
    ),
    configuration("ROWS", 0x110, "Rows, 1 to 2^32. Of a tensor the first extent.", 33),
    configuration(
        "COLUMNS",
        0x118,
        "Columns, 1 to 2^32. Of a tensor the second extent; a dense one has at most 2^32 rows times columns.",
        33,
    ),
    configuration("COUNT", 0x120, "Records of the source; a dense one has none.", POINTER_BITS),
    configuration(
        "BLOCK_ROWS", 0x128, f"Rows of a block of a target in BSR; a block has at most 2^{BLOCK_BITS} values.", 25
    ),
    configuration("BLOCK_COLUMNS", 0x12C, "Columns of a block.", 25),
    configuration("GRID_ROWS", 0x130, "Rows of blocks: ROWS divided by BLOCK_ROWS, rounded up.", 33),
    configuration("GRID_COLUMNS", 0x138, "Columns of blocks: COLUMNS divided by BLOCK_COLUMNS, rounded up.", 33),
    Register(
        "GRID_WIDTHS",
        0x140,
        Role.CONFIGURATION,
        "Bits of numbers of a target in BSR.",
        32,
        (
            _bits("row", 0, "Row of a block, 0 to 32."),
            _bits("column", 6, "Column of a block, 0 to 32."),
            _bits("inner", 12, f"Row inside a block, 0 to {BLOCK_BITS}."),
        ),
    ),
    configuration("DEPTH", 0x148, "Third extent of a tensor, 1 to 2^32.", 33),
    address("SOURCE_RECORDS", 0x200, "Records of the source."),
    address("SOURCE_FRAME", 0x208, "Frame of the source."),
    address("TARGET_RECORDS", 0x210, "Records of the target."),
    address("TARGET_FRAME", 0x218, "Frame of the target; `ptrs_2` of one in CSF."),
    configuration("TARGET_RECORDS_BYTES", 0x220, "Room at TARGET_RECORDS in bytes.", 64),
    configuration("TARGET_FRAME_BYTES", 0x228, "Room at TARGET_FRAME in bytes.", 64),
    address("SCRATCH_0", 0x230, "Entries on their way to another order: first, third, ... pass."),
    address("SCRATCH_1", 0x238, "The same: second, fourth, ... pass."),
    configuration(
        "SCRATCH_BYTES",
        0x240,
        "Room at SCRATCH_0, and at SCRATCH_1 where there are two passes or more, in bytes; 0 where there is none.",
        64,
    ),
    address("TARGET_BLOCKS", 0x248, "Values of the blocks of a target in BSR; `ids_1` of one in CSF."),
    configuration("TARGET_BLOCKS_BYTES", 0x250, "Room at TARGET_BLOCKS in bytes.", 64),
    address("TARGET_IDS_0", 0x258, "`ids_0` of a target in CSF."),
    address("TARGET_PTRS_1", 0x260, "`ptrs_1` of a target in CSF."),
    configuration("TARGET_IDS_0_BYTES", 0x268, "Room at TARGET_IDS_0 in bytes.", 64),
    configuration("TARGET_PTRS_1_BYTES", 0x270, "Room at TARGET_PTRS_1 in bytes.", 64),
    address("WRITE_BEGIN", 0x2A0, "First byte that a run may write."),
    address("WRITE_END", 0x2A8, "First byte after those that a run may write; 0: up to the last address."),
    result("CYCLES", 0x400, "Cycles of the run.", Role.COUNTER),
    result("READ_BYTES", 0x408, "Bytes read: whole bus beats.", Role.COUNTER),
    result("WRITTEN_BYTES", 0x410, "Bytes written: whole bus beats.", Role.COUNTER),
    result("PASSES", 0x418, "Passes that have written a scratch region.", Role.COUNTER),
)

check_map(REGISTERS)
