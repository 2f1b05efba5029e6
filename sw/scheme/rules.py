"""What a scheme must keep to on a design that has hardware: Gustavson's dataflow, and weight-stationary PEs."""

from .errors import SchemeError
from .explicit_tiles import cut_inside, longest_sides, uncovered
from .hardware_scheme import HardwareScheme
from .shares import MINIMUM_FIFO_LINES, MINIMUM_LINES_A
from .terms import (
    BUFFERING,
    CARRIED,
    EXPLICIT_ORDER,
    GUSTAVSON,
    JOINED,
    LOAD_USED,
    MOST_STEPS,
    MOST_STRIPS,
    NATURAL,
    ONLY_B,
    STREAMING,
    WEIGHT_STATIONARY,
    Hardware,
)

__all__ = ["check", "check_plain_tiles", "check_shares"]


def check_plain_tiles(scheme: HardwareScheme, dataflow: str) -> None:
    """Raise SchemeError for what only Gustavson's dataflow has."""
    absent = f"left out: only {GUSTAVSON} has it, and the design's pe.dataflow is {dataflow}"
    if scheme.tiles:
        raise SchemeError("tiles", scheme.tiles, absent)
    if scheme.gathers:
        raise SchemeError("load", scheme.load, absent)
    if scheme.tuning:
        raise SchemeError("tuning", True, absent)
    if scheme.joins:
        raise SchemeError("partial_rows", scheme.partial_rows, absent)
    if scheme.scratch_bytes:
        raise SchemeError("scratch_bytes", scheme.scratch_bytes, absent)
    if scheme.row_order != NATURAL:
        raise SchemeError("row_order", scheme.row_order, absent)


def check_shares(scheme: HardwareScheme, design: Hardware) -> None:
    """Raise SchemeError unless partitions are whole lines and fit the buffer."""
    line = design.line_bytes
    for name, sizes in (("buffer_bytes", scheme.buffer_bytes), ("fifo_bytes", scheme.fifo_bytes)):
        for tensor, size in sizes.items():
            if size % line:
                raise SchemeError(f"{name}.{tensor}", size, f"a multiple of the line size {line}")
    if scheme.scratch_bytes % line or scheme.scratch_bytes > scheme.buffer_bytes["C"]:
        allowed = f"a multiple of the line size {line}, at most the {scheme.buffer_bytes['C']} of buffer_bytes.C"
        raise SchemeError("scratch_bytes", scheme.scratch_bytes, allowed)
    total = sum(scheme.buffer_bytes.values())
    if total > design.buffer.bytes:
        raise SchemeError("buffer_bytes", total, f"together at most the buffer's {design.buffer.bytes} bytes")


def check(scheme: HardwareScheme, design: Hardware, extent: tuple[int, int, int]) -> None:
    """Raise SchemeError unless ``design`` can run the scheme, no side of which is beyond ``extent`` = (I, J, K).

    Any order is legal with any mode of A: where j is not innermost its tiles are loaded at almost every visit.
    """
    line, lanes = design.line_bytes, design.lanes
    # B's fibers are its rows, or the columns that the PEs keep: which rank numbers them, and which they run along.
    number, along = "k", "j"
    if design.pe.dataflow == WEIGHT_STATIONARY:
        number, along = along, number
        check_plain_tiles(scheme, design.pe.dataflow)
        if scheme.T_j > design.pe.count:
            raise SchemeError("T_j", scheme.T_j, f"at most {design.pe.count}: each PE keeps a column of B")
    check_shares(scheme, design)
    if scheme.buffer_bytes["A"] < MINIMUM_LINES_A * line:
        raise SchemeError("buffer_bytes.A", scheme.buffer_bytes["A"], f"at least {MINIMUM_LINES_A * line}")
    for tensor, size in scheme.fifo_bytes.items():
        least, most = MINIMUM_FIFO_LINES * line, scheme.buffer_bytes[tensor]
        if not least <= size <= most:
            raise SchemeError(f"fifo_bytes.{tensor}", size, f"from {least} to the partition's {most}")
    if scheme.buffers("A"):
        needed = (-(-scheme.T_i // lanes) + 1) * line
        if scheme.buffer_bytes["A"] < needed:
            allowed = f"at least {needed}: metadata of {scheme.T_i} rows at 8 bytes, a line"
            raise SchemeError("buffer_bytes.A", scheme.buffer_bytes["A"], allowed)
    if scheme.gathers:
        _check_gathered(scheme, extent)
    elif scheme.buffers("B") and scheme.load != LOAD_USED:
        fibers, what = scheme.tile(number), "rows" if number == "k" else "columns"
        needed = (-(-fibers // lanes) + 1) * line + scheme.fifo_bytes["B"]
        if scheme.buffer_bytes["B"] < needed:
            allowed = f"at least {needed}: metadata of {fibers} {what} at 8 bytes, the FIFO-managed region, a line"
            raise SchemeError("buffer_bytes.B", scheme.buffer_bytes["B"], allowed)
    elif scheme.tile(along) < (size := extent["ijk".index(along)]) and not scheme.buffers("B"):
        allowed = f"{BUFFERING} while T_{along} = {scheme.tile(along)} is less than {along.upper()} = {size}"
        raise SchemeError("mode.B", scheme.mode["B"], allowed)
    if scheme.tiles:
        _check_explicit(scheme, extent)
    _check_tuning(scheme, design)
    _check_joined(scheme, extent[2])
    if scheme.buffers("C"):
        if scheme.order[2] != "k":
            raise SchemeError("mode.C", scheme.mode["C"], f"{STREAMING} while k is not innermost in {scheme.order}")
        # Two halves, which take turns as source and destination.
        both = 2 * (-(-scheme.T_i // lanes) + 1) * line
        for_rows = scheme.buffer_bytes["C"] - scheme.scratch_bytes
        if for_rows < both or for_rows % (2 * line):
            aside = f" with {scheme.scratch_bytes} of scratch_bytes aside" if scheme.scratch_bytes else ""
            allowed = f"at least {both} and a multiple of {2 * line}{aside}: two halves for {scheme.T_i} rows"
            raise SchemeError("buffer_bytes.C", scheme.buffer_bytes["C"], allowed)


def _check_tuning(scheme: HardwareScheme, design: Hardware) -> None:
    if not scheme.tuning:
        return
    if scheme.tiles:
        raise SchemeError("tuning", True, "false: tiles says every shape")
    if not design.tuning.dynamic:
        raise SchemeError("tuning", True, "false: the design has tuning.dynamic = false")
    if not scheme.buffers("B"):
        raise SchemeError("tuning", True, f"false while mode.B is {STREAMING}: there is no tile of B to fit")


def _check_joined(scheme: HardwareScheme, inner: int) -> None:
    """Parts of rows are joined from memory, of tiles that keep their sides, in as many k steps as the hardware tells apart."""
    if not scheme.joins:
        return
    for excludes, what in (
        (scheme.buffers("C"), f"mode.C is {BUFFERING}"),
        (scheme.gathers, f"load is {scheme.load}"),
        (bool(scheme.tiles), "tiles says every shape"),
        (scheme.tuning, "tuning is true"),
    ):
        if excludes:
            raise SchemeError("partial_rows", JOINED, f"{CARRIED} where {what}")
    if scheme.T_k * MOST_STEPS < inner:
        raise SchemeError("T_k", scheme.T_k, f"at least {-(-inner // MOST_STEPS)} where partial_rows is {JOINED}")


def _check_gathered(scheme: HardwareScheme, extent: tuple[int, int, int]) -> None:
    """k is whole, strips are few, B alone is buffered. What B must hold follows from the operands (:mod:`sw.plan`)."""
    rows, columns, inner = extent
    if scheme.mode != ONLY_B:
        raise SchemeError("mode", scheme.mode, f"{BUFFERING} for B alone where load is {scheme.load}")
    if scheme.T_k < inner:
        raise SchemeError("T_k", scheme.T_k, f"K = {inner} where load is {scheme.load}")
    if scheme.strips:
        if scheme.T_i < rows:
            raise SchemeError("T_i", scheme.T_i, f"I = {rows} where strips is above 0")
        if scheme.T_j * MOST_STRIPS < columns:
            least = -(-columns // MOST_STRIPS)
            allowed = f"at least {least} where load is {scheme.load}: {MOST_STRIPS} strips of a row"
            raise SchemeError("T_j", scheme.T_j, allowed)
    elif scheme.T_j < columns:
        raise SchemeError("T_j", scheme.T_j, f"J = {columns} where load is {scheme.load} and strips is 0")
    if scheme.tuning:
        raise SchemeError("tuning", True, f"false where load is {scheme.load}")


def _check_explicit(scheme: HardwareScheme, extent: tuple[int, int, int]) -> None:
    """``tiles`` are what ``load`` says, and the fields beside are theirs."""
    wrong = uncovered(scheme.tiles, *extent)
    if wrong is None and scheme.load == LOAD_USED:
        wrong = cut_inside(scheme.tiles, *extent[1:])
    if wrong is not None:
        number, allowed = wrong
        if number == len(scheme.tiles):
            raise SchemeError("length of tiles", number, allowed)
        raise SchemeError(f"tiles[{number}]", scheme.tiles[number], allowed)
    if scheme.mode != ONLY_B:
        raise SchemeError("mode", scheme.mode, f"{BUFFERING} for B alone beside tiles")
    if scheme.order != EXPLICIT_ORDER:
        raise SchemeError("order", scheme.order, f"{EXPLICIT_ORDER} beside tiles: i moves first, then k, then j")
    # What the partition must hold has been told by these, not by the list.
    for rank, longest in zip("ijk", longest_sides(scheme.tiles), strict=True):
        if scheme.tile(rank) != longest:
            raise SchemeError(f"T_{rank}", scheme.tile(rank), f"{longest}, the longest side of tiles along {rank}")
