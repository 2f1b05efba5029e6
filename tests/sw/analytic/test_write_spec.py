"""A specification that is written back says the same, in its own dialect."""

from pathlib import Path

import numpy as np
import pytest

from sw.analytic.analysis import analyze
from sw.analytic.result import record
from sw.analytic.spec.load import SHIPPED, Spec, load_spec, shipped_names
from sw.analytic.spec.write_spec import spec_text, written_sections
from tests.sw.analytic.test_spec import OLD

WHOLE = [name for name in shipped_names() if "\nproblem:" in (SHIPPED / f"{name}.yaml").read_text()]


def read_back(spec: Spec, folder: Path) -> Spec:
    path = folder / "again.yaml"
    path.write_text(spec_text(written_sections(spec.document, folder)))
    return load_spec([path])


@pytest.mark.parametrize("name", WHOLE)
def test_shipped_specifications(name, tmp_path):
    spec = load_spec([Path(name)])
    assert record(analyze(read_back(spec, tmp_path))) == record(analyze(spec))


def test_the_old_dialect_keeps_its_keys(tmp_path):
    path = tmp_path / "old.yaml"
    path.write_text(OLD)
    changes = (
        "problem.instance.densities.A.density=0.3",
        "architecture.subtree.chip.local.Buffer.attributes.depth=3000",
    )
    spec = load_spec([path], changes)
    assert record(analyze(read_back(spec, tmp_path))) == record(analyze(spec)) != record(analyze(load_spec([path])))
    text = (tmp_path / "again.yaml").read_text()
    assert "word-bits: 16" in text and "data-spaces:" in text and "data_spaces" not in text


def test_files_of_data_are_named_from_the_new_place(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    mask = np.random.default_rng(3).random(4096) < 0.2
    (here / "a.txt").write_text("".join("01"[place] for place in mask.astype(int)))
    (here / "spec.yaml").write_text((SHIPPED / "sparse_product.yaml").read_text())
    change = "problem.instance.densities.A={distribution: actual_data, data_file_path: a.txt}"
    spec = load_spec([here / "spec.yaml"], (change,))
    assert record(analyze(read_back(spec, there))) == record(analyze(spec))
    assert "../here/a.txt" in (there / "again.yaml").read_text()
