"""Energy of ExTensor from what it accesses, with published energies of one access each (:mod:`sw.energy`).

Tailors takes its own from a 65 nm library that is not public. What counts here is how they compare: memory costs 13 times the
global buffer, that three times an element's.
"""

from sw.energy import DRAM_BIT_PJ, MAC_PJ, sram_pj

from .accesses import Accesses
from .machine import ENTRY_BYTES

__all__ = ["PICOJOULES", "energy"]

# Of an entry of 8 bytes. The global buffer is banks of about half a megabyte, taken as 1 MiB; an element has 129 KiB.
PICOJOULES = {
    "dram": DRAM_BIT_PJ * 8 * ENTRY_BYTES,
    "global": sram_pj(1 << 20),
    "pe": sram_pj(128 << 10),
    "mac": MAC_PJ["fp32"],
}


def energy(found: Accesses, macs: int) -> dict[str, float]:
    """Picojoules by component."""
    return {
        "dram": PICOJOULES["dram"] * sum(found.dram.values()),
        "global": PICOJOULES["global"] * (found.global_reads + found.global_writes),
        "pe": PICOJOULES["pe"] * (found.pe_reads + found.pe_writes),
        "mac": PICOJOULES["mac"] * macs,
    }
