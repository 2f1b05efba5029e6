"""Generated folders: whole or untouched, and only what an earlier run wrote is removed."""

import json
import os
from pathlib import Path

import pytest

from gen.folder import MANIFEST, write_folder


def texts(*names: str, **others: object) -> dict[str, str]:
    manifest = {"generator": "fiberloom 0.1.0", "files": [*names, MANIFEST], **others}
    return {name: f"text of {name}" for name in names} | {MANIFEST: json.dumps(manifest)}


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_files_of_an_earlier_run_go_with_their_folders(tmp_path):
    folder = tmp_path / "new"
    (folder / "rtl").mkdir(parents=True)
    (folder / "rtl/mine.sv").write_text("mine")
    (folder / "empty").mkdir()
    write_folder(folder, texts("rtl/a.sv", "rtl/b.sv", "tb/deep/c.sv", "tb/d.sv"))
    written = write_folder(folder, texts("rtl/b.sv"))
    assert written == [folder / "rtl/b.sv", folder / MANIFEST]
    assert tree(folder) == {"rtl", "rtl/b.sv", "rtl/mine.sv", "empty", MANIFEST}
    write_folder(folder, texts())
    assert tree(folder) == {"rtl", "rtl/mine.sv", "empty", MANIFEST}


@pytest.mark.parametrize(
    "manifest",
    [
        "no JSON",
        "[]",
        json.dumps({"files": ["mine"]}),
        json.dumps({"generator": "fiberloom 0.1.0"}),
        json.dumps({"generator": "fiberloom 0.1.0", "files": "mine"}),
        json.dumps({"generator": "fiberloom 0.1.0", "files": [3, "", ".", "..", "../mine", "gone", "folder", "a\0b"]}),
    ],
)
def test_other_manifests_remove_nothing(tmp_path, manifest):
    folder = tmp_path / "out"
    (folder / "folder").mkdir(parents=True)
    for own in (tmp_path / "mine", folder / "mine"):
        own.write_text("mine")
    (folder / MANIFEST).write_text(manifest)
    write_folder(folder, texts("a"))
    assert tree(tmp_path) == {"mine", "out", "out/mine", "out/folder", "out/a", f"out/{MANIFEST}"}


def test_absolute_names_of_a_manifest_remove_nothing(tmp_path):
    (tmp_path / "mine").write_text("mine")
    write_folder(tmp_path / "out", texts("a"))
    (tmp_path / "out" / MANIFEST).write_text(texts(str(tmp_path / "mine"))[MANIFEST])
    write_folder(tmp_path / "out", texts("a"))
    assert (tmp_path / "mine").exists()


def test_what_is_in_the_way_is_named_before_anything_changes(tmp_path):
    write_folder(tmp_path, texts("a", "old/b"))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dead").symlink_to("nowhere")
    before = {name: (tmp_path / name).read_text() for name in ("a", "old/b", MANIFEST)}
    for name, reason in (
        ("old", f"{tmp_path / 'old'} is a folder"),
        ("file/b", f"{tmp_path / 'file'} is not a folder"),
        ("file/deep/b", f"{tmp_path / 'file'} is not a folder"),
        ("dead/b", f"{tmp_path / 'dead'} is not a folder"),
    ):
        with pytest.raises(OSError) as refused:
            write_folder(tmp_path, texts("new", name))
        assert refused.value.strerror == reason
        assert {name: (tmp_path / name).read_text() for name in before} == before
        assert not (tmp_path / "new").exists()


def test_folders_without_leave_to_write_are_named(tmp_path, monkeypatch):
    """Whoever runs the tests may be allowed to write anywhere."""
    write_folder(tmp_path, texts("a", "old/b"))
    closed = tmp_path / "old"
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and allowed(path, mode))
    for names in (("a", "old/c"), ("a",)):
        with pytest.raises(OSError) as refused:
            write_folder(tmp_path, texts("new", *names))
        assert refused.value.strerror == f"{closed} is not writable"
        assert tree(tmp_path) == {"a", "old", "old/b", MANIFEST}
