"""The speed of a cocotb-driven run of the accelerator: the operand of ``FIBERLOOM_OPERAND``, calm buses, the scheme of the
file ``FIBERLOOM_SCHEME``.

Not a test of the hardware but the other side of ``benchmarks/simulation.py``; the design is that of ``bench_accelerator``.
The values are checked all the same.
"""

import os
import time
from pathlib import Path
from typing import Any

import cocotb

from sw.operands import load, to_csr
from sw.plan.plan import plan
from sw.runtime.memory_image import build_image
from sw.scheme.scheme import Scheme
from verif.benches.bench_accelerator import DESIGN, AcceleratorBench


@cocotb.test()
async def same_work(dut: Any) -> None:
    """Prints ``same work: CYCLES cycles SECONDS seconds``."""
    operand = load(os.environ["FIBERLOOM_OPERAND"])
    matrix = to_csr(operand, DESIGN.pe.value)
    chosen = Scheme.from_json(Path(os.environ["FIBERLOOM_SCHEME"]).read_text())
    image = build_image(DESIGN, plan(chosen, matrix, matrix, DESIGN), poison=True)
    bench = AcceleratorBench(dut)
    await bench.start(image)
    await bench.load(image)
    began = time.perf_counter()
    await bench.go()
    counters = await bench.check(image, matrix, matrix, chosen)
    print(f"same work: {counters['cycles']} cycles {time.perf_counter() - began:.3f} seconds", flush=True)
