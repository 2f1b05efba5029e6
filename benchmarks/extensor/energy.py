"""Energy of ExTensor from what it accesses, with published energies of one access each.

Tailors takes its own from a 65 nm library that is not public. These are for 45 nm: M. Horowitz, "Computing's energy problem",
ISSCC 2014, table 1 (SRAM by size, arithmetic), and 20 pJ a bit of memory as in HYTE, section 8.1. What counts here is how they
compare: memory costs 13 times the global buffer, that three times an element's.
"""

from .accesses import Accesses
from .machine import ENTRY_BYTES

__all__ = ["PICOJOULES", "energy"]

# Of an entry of 8 bytes. The global buffer is banks of about half a megabyte, an element's 129 KiB lie between the table's
# 32 KiB (20 pJ) and 1 MiB (100 pJ) and follow the square root of the size.
PICOJOULES = {"dram": 20.0 * 8 * ENTRY_BYTES, "global": 100.0, "pe": 40.0, "mac": 3.7 + 0.9}


def energy(found: Accesses, macs: int) -> dict[str, float]:
    """Picojoules by component."""
    return {
        "dram": PICOJOULES["dram"] * sum(found.dram.values()),
        "global": PICOJOULES["global"] * (found.global_reads + found.global_writes),
        "pe": PICOJOULES["pe"] * (found.pe_reads + found.pe_writes),
        "mac": PICOJOULES["mac"] * macs,
    }
