"""The notebooks under ``examples/`` run from end to end as programs; their own assertions judge what they compute."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.notebooks import Cell, cells, executed, notebook

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
    scripts, notebooks = ({path.stem for path in (ROOT / "examples").glob(f"*.{kind}")} for kind in ("py", "ipynb"))
    page = (ROOT / "docs" / "notebooks.md").read_text()
    assert scripts == notebooks == set(PRINTED) == set(re.findall(r"examples/(\w+)\.ipynb", page))
    assert set(re.findall(r"notebooks/(\w+)\.md", (ROOT / "mkdocs.yml").read_text())) == scripts


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


def shape(text: str) -> str:
    """Without the figures: other versions of SciPy, and other computers, have others."""
    return re.sub(r"\d[\d.,]*", "#", re.sub(r"(?m)^ +| +(?= )", "", text))


@pytest.mark.parametrize("name", PRINTED)
def test_a_notebook_runs(name, tmp_path):
    """As a program from its first cell to its last; it prints what the notebook in the repository and the manual show."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    before = sorted(ROOT.iterdir())
    made = tmp_path / "made"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.notebooks", name, "--notebooks", made, "--pages", made],
        cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kept, new = (json.loads((folder / f"{name}.ipynb").read_text()) for folder in (ROOT / "examples", made))
    printed = "".join(
        "".join(output["text"]) for cell in new["cells"] if cell["cell_type"] == "code" for output in cell["outputs"]
    )
    for pattern in PRINTED[name]:
        assert re.search(pattern, printed), (pattern, printed)
    command = "python -m benchmarks.notebooks"
    assert [cell["source"] for cell in kept["cells"]] == [cell["source"] for cell in new["cells"]], command
    assert shape(json.dumps(kept)) == shape(json.dumps(new)), command
    page = (ROOT / "docs" / "notebooks" / f"{name}.md").read_text()
    assert shape(page) == shape((made / f"{name}.md").read_text()), command
    assert sorted(ROOT.iterdir()) == before


def test_cells_become_a_notebook():
    found = cells("# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nx = 2\n\n# %%\nprint(x + 1)\n")
    done = executed(found, "sample")
    assert [(cell.prose, cell.text, cell.printed) for cell in done] == [
        (True, "# Title\n\nWords.", ""), (False, "x = 2", ""), (False, "print(x + 1)", "3\n"),
    ]  # fmt: skip
    document = json.loads(notebook(done))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert [cell.get("outputs") for cell in document["cells"]] == [
        None, [], [{"name": "stdout", "output_type": "stream", "text": ["3\n"]}],
    ]  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        executed([Cell(prose=False, text="1 / 0")], "sample")
