"""Section 6.1 of Tailors on its own operands, at its machine's true size: overbooking neither gains nor loses.

``FIBERLOOM_OPERANDS`` names a folder with NAME.npz of each; without it ``test_tailors.py`` holds the same for generated operands.
"""

import os
from pathlib import Path

import pytest

from benchmarks import tailors

# Near P or slightly below (email-Enron), "very similar" (the others).
PAPERS = ("email-Enron", "sx-mathoverflow", "p2p-Gnutella31")


@pytest.mark.parametrize("name", PAPERS)
def test_overbooking_neither_gains_nor_loses_on_operands_that_fit_on_chip(name: str) -> None:
    path = Path(os.environ["FIBERLOOM_OPERANDS"]) / f"{name}.npz"
    row = tailors.record(str(path), 0, 2, shares=(tailors.TARGET,))
    assert 0.9 <= tailors.RATIOS["OB / P"](row, "cycles") <= 1.1
    assert tailors.RATIOS["OB / P"](row, "energy") >= 0.95
