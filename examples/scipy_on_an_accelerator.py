# %% [markdown]
# # What would an accelerator give my SciPy code?
#
# A program multiplies sparse matrices with SciPy. This notebook takes the product out of it, runs it in the
# model of an accelerator, and puts the two beside each other: the same values, and how many cycles and bytes
# the accelerator takes.
#
# The script beside the notebook has the same cells (`# %%`), for VS Code, Spyder and Jupytext; `python
# examples/scipy_on_an_accelerator.py` runs them all.

# %%
import time

import numpy as np
import scipy.sparse as sp

import fiberloom

# Our program: neighbours of neighbours in a random graph of 2,000 nodes.
rng = np.random.default_rng(1)
graph = sp.random_array((2000, 2000), density=0.004, rng=rng, format="csr", dtype=np.float64)


def two_steps(graph: sp.csr_array) -> sp.csr_array:
    return graph @ graph


# %% [markdown]
# SciPy on this computer, the best of three calls.

# %%
seconds = []
for _ in range(3):
    began = time.perf_counter()
    expected = two_steps(graph)
    seconds.append(time.perf_counter() - began)
print(f"SciPy: {min(seconds) * 1000:.2f} ms, {expected.nnz:,} nonzeros")

# %% [markdown]
# The same product on the accelerator's model. Values are computed in the accelerator's `fp32` and compared with
# SciPy's in `float64`, within the bound that rounding allows; `correct` says so.

# %%
result = fiberloom.run(graph, engine="model")
record = result.record
assert result.correct and record["nnz_c"] == expected.nnz
print(f"{record['macs']:,} multiplications in {result.cycles:,} cycles: {record['ideal_fraction']:.1%} of the ideal")
print(f"bound by {record['bound']}: {record['dram_bytes']['total']:,} bytes, PEs {record['pe_utilization']:.0%} busy")

# %% [markdown]
# At which clock would the accelerator be as fast as SciPy here? No clock of the whole design has been placed
# and routed, so that this is a question and not a promise.

# %%
print(f"even with SciPy at {result.cycles / min(seconds) / 1e6:.1f} MHz")

# %% [markdown]
# More processing elements help until memory is the bound; then the bus decides. The limit of each is in the
# record.

# %%
for elements in (4, 8, 16):
    wider = fiberloom.run(graph, engine="model", set={"pe.count": elements})
    bounds = wider.record["bounds"]
    print(
        f"{elements:>3} PEs  {wider.cycles:>8,} cycles, at least {bounds['compute']:,} to compute, {bounds['dram']:,} to move"
    )
    assert wider.cycles >= max(bounds["compute"], bounds["dram"])
