# %% [markdown]
# # Compare tilings on my matrix
#
# A tiling decides which part of a product is on chip at a time. Which one is best depends on the matrix. This
# notebook compares tilings on a matrix of ours, in the cycle model, on the smallest shipped design.
#
# The script beside the notebook has the same cells (`# %%`), for VS Code, Spyder and Jupytext; `python
# examples/compare_tilings.py` runs them all.

# %%
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import fiberloom

# Any SciPy or NumPy array will do; this is the sample of the repository, a grid of 30 x 40 points.
A = fiberloom.load(Path("examples") / "grid.mtx")
print(f"{A.shape[0]:,} x {A.shape[1]:,}, {A.nnz:,} nonzeros")

# %% [markdown]
# Every policy is asked for a tiling of A x A and each is run in the model. A buffer of 8 KiB cannot hold the
# matrix, so tiling matters.

# %%
tilings = ["uniform", "prescient", "swiftiles", "hyte", "auto"]
compared = fiberloom.compare(A, config="tiny", tiling=tilings)
for name, result in compared.items():
    share = result.record["ideal_fraction"]
    print(
        f"{name:<10} {result.cycles:>9,} cycles  {share:6.1%} of the ideal  {result.dram_bytes:>10,} bytes of DRAM traffic"
    )
best = min(compared, key=lambda name: compared[name].cycles)
print(f"best: {best}")

# %% [markdown]
# *The ideal* moves A, B and C over the bus once and multiplies without a pause; no tiling can be faster. The
# record of each result says more: bytes by tensor, what the buffer held, how many tiles overflowed.

# %%
moved = compared[best].record["dram_bytes"]
print({tensor: sum(moved[tensor].values()) for tensor in "ABC"}, "of", moved["total"])

# %% [markdown]
# The best one is run again, this time for its values: SciPy's product decides whether they are right.

# %%
result = fiberloom.run(A, config="tiny", engine="model", tiling=best)
product = fiberloom.run(A, config="tiny", engine="golden", tiling=best).C
assert result.correct and result.cycles == compared[best].cycles
assert (product != sp.csr_array(A @ A)).nnz == 0

# %% [markdown]
# How much of that is the buffer's size? A design is changed field by field. The simplest policy gains the most
# from a larger one.

# %%
sizes = [8192, 16384, 65536]
cycles = [
    fiberloom.run(A, config="tiny", engine="model", tiling="uniform", set={"buffer.bytes": size}).cycles
    for size in sizes
]
for size, count in zip(sizes, cycles, strict=True):
    print(f"{size // 1024:>3} KiB  {count:>9,} cycles")
assert np.all(np.diff(cycles) < 0)
