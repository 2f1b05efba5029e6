"""Schedules that a test forces: partitions and modes as it says, whatever a policy would choose."""

from sw.scheme.scheme import Scheme

__all__ = ["forced"]


def forced(
    line: int,
    order: str,
    tile: tuple[int, int, int],
    *,
    b_lines: int,
    a_lines: int = 0,
    c_lines: int = 0,
    b_streams: bool = False,
    c_stays: bool = True,
    tuning: bool = False,
) -> Scheme:
    """A schedule of one level.

    Parameters
    ----------
    line: bytes of a line of the SRAM.
    a_lines, c_lines: partitions of A and C in buffering mode; 0 for streaming.
    b_streams: B is in streaming mode.
    c_stays: C is in buffering mode where it has a partition.
    """
    return Scheme(
        policy="forced",
        order=order,
        T_i=tile[0],
        T_j=tile[1],
        T_k=tile[2],
        buffer_bytes={"A": (a_lines or 16) * line, "B": b_lines * line, "C": c_lines * line},
        fifo_bytes={"A": 4 * line, "B": 4 * line},
        mode={
            "A": "buffering" if a_lines else "streaming",
            "B": "streaming" if b_streams else "buffering",
            "C": "buffering" if c_lines and c_stays else "streaming",
        },
        tuning=tuning,
    )
