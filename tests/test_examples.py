"""The notebooks under ``examples/`` run from end to end as programs; their own assertions judge what they compute."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# What each must print, beside ending without an error: figures, not just headings.
PRINTED = {
    "compare_tilings": [r"best: \w+", r"auto +[\d,]+ cycles +[\d.]+% of the ideal", r"64 KiB +[\d,]+ cycles"],
    "block_in_my_design": [
        r"fp_add from \{'format': 'binary32'",
        r"module fp_add \(",
        r"\d+ +LUT4",
        r"\d+ +TRELLIS_FF",
    ],
    "scipy_on_an_accelerator": [
        r"SciPy: [\d.]+ ms",
        r"[\d,]+ multiplications in [\d,]+ cycles",
        r"16 PEs +[\d,]+ cycles",
    ],
}


def test_every_notebook_is_here_and_in_the_manual():
    names = {path.stem for path in (ROOT / "examples").glob("*.py")}
    page = (ROOT / "docs" / "notebooks.md").read_text()
    assert names == set(PRINTED) == set(re.findall(r"examples/(\w+)\.py", page))


@pytest.mark.parametrize("name", PRINTED)
def test_a_notebook_is_cells_of_prose_and_code(name):
    """In the percent format: what notebook editors show as cells."""
    text = (ROOT / "examples" / f"{name}.py").read_text()
    marks = re.findall(r"(?m)^# %%(.*)$", text)
    assert text.startswith("# %% [markdown]\n# # ") and set(marks) == {"", " [markdown]"}
    assert marks.count("") >= 4 and marks.count(" [markdown]") >= 4
    for cell in re.split(r"(?m)^# %% \[markdown\]\n", text)[1:]:
        prose = cell.split("# %%\n")[0]
        assert all(line.startswith("#") or not line for line in prose.splitlines())


@pytest.mark.parametrize("name", PRINTED)
def test_a_notebook_runs(name, tmp_path):
    variables = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    before = sorted(ROOT.iterdir())
    done = subprocess.run(
        [sys.executable, f"examples/{name}.py"],
        cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for pattern in PRINTED[name]:
        assert re.search(pattern, done.stdout), (pattern, done.stdout)
    assert sorted(ROOT.iterdir()) == before
