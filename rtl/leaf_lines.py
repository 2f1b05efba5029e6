"""Line slots of a PE's leaves. Plain numbers: a design file's checks and the hardware read them here."""

__all__ = ["LONG_LEAVES", "leaf_slots", "long_leaf_lines", "memory_burst", "short_leaf_lines"]

# The first leaves of a job, which have more line slots than the others.
LONG_LEAVES = 4


def long_leaf_lines(leaf_lines: int) -> int:
    """Line slots of each of a job's first ``LONG_LEAVES`` leaves, where the others have ``leaf_lines``.

    A leaf brings no more than its slots in a memory latency. With many leaves in memory that is enough for all of them
    together; the fibers of a long row, merged at last, are few and come out of memory.
    """
    return max(leaf_lines, min(64, 8 * leaf_lines))


def leaf_slots(leaf_lines: int, leaf: int) -> int:
    """Line slots of leaf number ``leaf`` of a job."""
    return long_leaf_lines(leaf_lines) if leaf < LONG_LEAVES else leaf_lines


def short_leaf_lines(leaf_lines: int) -> int:
    """Lines of the longest leaf in memory that is short: its PE reads it about as fast as it comes through the region."""
    return 2 * leaf_lines


def memory_burst(lines: int) -> int:
    """Lines that a leaf in memory asks for at a time: half of its slots, one half on its way, the other in use."""
    return max(1, lines // 2)
