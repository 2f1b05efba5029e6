"""Shared by the benches of A and B on their way in: the matrix in memory, in each format, and runs that end with an error.

The bench of C on its way out has the regions, the codes and the matrix from here.
"""

from typing import Any

import numpy as np
from cocotb.triggers import ReadOnly
from numpy.typing import NDArray

from sw.formats.csr import Csr
from sw.formats.sparse_tensor import SparseTensor
from sw.formats.storage import storage_format
from sw.formats.storage_format import Layout, coordinate_bits, pack
from verif.agents.client_memory import ClientMemory
from verif.benches.sparse import Operand
from verif.benches.stream_bench import StreamBench

__all__ = [
    "BAD_ENTRY",
    "BAD_MASK",
    "BAD_MODE",
    "BAD_ORDER",
    "BAD_RUN",
    "BAD_SETTING",
    "BAD_VALUE",
    "FRAME",
    "MEMORY_BYTES",
    "RECORDS",
    "REGIONS",
    "SOURCES",
    "ConvertedBench",
    "stored_in",
]

RECORDS, FRAME, MEMORY_BYTES = 0x1000, 0x8000, 0x10000
# Codes of FORMATS.source, and the regions of each format: records, frame.
SOURCES = {"dense": 0, "coo": 1, "rlc": 3, "zvc": 4}
REGIONS = {"dense": ("", "values"), "coo": ("entries", ""), "rlc": ("pairs", ""), "zvc": ("values", "mask")}
RUN_BITS = 4
BAD_MODE, BAD_SETTING, BAD_ENTRY, BAD_ORDER, BAD_MASK, BAD_RUN, BAD_VALUE = 9, 32, 33, 34, 36, 37, 38


def stored_in(kind: str, operand: Operand, value: str, **options: Any) -> tuple[Layout, dict[str, NDArray[Any]]]:
    """The matrix in a format with these parameters: where its bits lie, and the words of each region."""
    nonzeros = operand.nonzeros
    matrix = Csr(
        rows=len(operand.rows),
        columns=operand.columns,
        pointers=operand.pointers.astype(np.int64),
        coordinates=nonzeros[:, 0].copy(),
        bits=nonzeros[:, 1].copy(),
        value=value,
    )
    form, tensor = storage_format(kind, **options), SparseTensor.from_csr(matrix)
    layout = form.layout(tensor.shape, form.counts(tensor), value)
    return layout, pack(layout, form.encode(tensor))


class ConvertedBench(StreamBench):
    """Tiles over a matrix that lies in memory in some format.

    Parameters
    ----------
    drive, receive, zero: as :class:`StreamBench`, beside the inputs that both blocks have.
    """

    def __init__(
        self,
        dut: Any,
        backpressure: str,
        seed: int,
        *,
        drive: list[str],
        receive: list[str],
        zero: tuple[str, ...] = (),
    ) -> None:
        super().__init__(
            dut,
            drive=drive,
            receive=receive,
            idle=backpressure,
            backpressure=backpressure,
            zero=("enable", "allowed", "modes", "settings", *zero),
            seed=seed,
            limit=40_000,
        )
        self.beat_bytes = int(self.block.parameters["beat_bits"]) // 8
        self.value = str(self.block.parameters["value"])
        self.memory = ClientMemory(dut, self.block, MEMORY_BYTES, self.beat_bytes)
        for n in range(2):
            patterns = (self.pattern(backpressure, f"{what} {n}") for what in ("grant", "data"))
            self.memory.reader(f"read_request__{n}", f"read_data__{n}", *patterns)
        self.helpers = [self.memory]
        self.row: list[tuple[int, int]] = []
        self.stalled = 0

    def matrix(self, rows: int, columns: int, density: float) -> Operand:
        """Values of the block's type, an integer one, that are not 0."""
        drawn = Operand.draw(self.rng, rows, columns, density)
        bits = int(self.block.parameters["value_bits"])
        sign, slot = 1 << bits - 1, (1 << 32) - 1

        def in_slot(value: int) -> int:
            return ((value & 2 * sign - 1 | 1) ^ sign) - sign & slot

        return Operand(columns, [[(column, in_slot(value)) for column, value in row] for row in drawn.rows])

    async def configure(self, operand: Operand, kind: str, **changes: Any) -> int:
        """The matrix in memory, in a format; beats of a pass."""
        self.operand, rows = operand, len(operand.rows)
        options = {"run_bits": RUN_BITS} if kind == "rlc" else {}
        layout, packed = stored_in(kind, operand, self.value, **options)
        for name, address in zip(REGIONS[kind], (RECORDS, FRAME), strict=True):
            if name:
                self.memory.store(address, packed[name])
        counts = [region.count for region in layout.regions if region.name == REGIONS[kind][0]]
        widths = {"row": coordinate_bits(rows), "column": coordinate_bits(operand.columns), "source_run": RUN_BITS}
        settings = {
            "formats": {"source": SOURCES[kind], "target": 2},
            "widths": widths,
            "rows": rows,
            "columns": operand.columns,
            "count": counts[0] if counts else 0,
            "source_records": RECORDS,
            "source_frame": FRAME,
        }
        self.set("settings", settings | changes)
        self.dut.enable.value, self.dut.allowed.value = 1, 1
        await self.cycles(1)
        return sum(-(-region.bytes // self.beat_bytes) for region in layout.regions)

    async def fails(self, *tiles: dict[str, int]) -> tuple[int, int]:
        """Error and detail that these tiles end with."""
        self.send("tile", *tiles)
        await self.wait(lambda: bool(int(self.dut.error.value)), "no error is found")
        await ReadOnly()
        found = int(self.dut.error.value), int(self.dut.detail.value)
        await self.cycles(1)
        await self.restart(3)
        return found

    def every_cycle(self) -> None:
        self.stalled += int(self.dut.stalled.value)

    async def start(self) -> None:
        self.row = []
        await super().start()

    async def restart(self, cycles: int = 2) -> None:
        await super().restart(cycles)
        self.row = []

    def read(self) -> int:
        """Beats so far."""
        return sum(self.memory.beats.values())
