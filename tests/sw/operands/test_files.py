"""Names that lead to no file which can be read to its end, and names that no encoding holds."""

import gzip
import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sw.cli.app import main
from sw.cli.pipeline import repeat_command
from sw.names import quoted, shown
from sw.operands import OperandError, load
from sw.operands.identity import fingerprint
from sw.operands.load_tensor import load_any_tensor

TEXT = "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 3\n2 2 4\n"


def named_pipe(path: Path) -> str:
    os.mkfifo(path)
    return "is a named pipe: must be a regular file"


def listening_socket(path: Path) -> str:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(path))
    return "is a socket: must be a regular file"


def linked_device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "is a device: must be a regular file"


def circle(path: Path) -> str:
    path.symlink_to(path)
    return "cannot be read (symbolic links in a circle)"


def dangling(path: Path) -> str:
    path.symlink_to(path.with_name("nothing"))
    return "no such file"


def folder(path: Path) -> str:
    path.mkdir()
    return "is a folder: must be .*"


@pytest.mark.parametrize("make", [named_pipe, listening_socket, linked_device, circle, dangling, folder])
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".npz", ".h5", ".tns"])
def test_only_regular_files_are_opened(tmp_path, monkeypatch, make, suffix):
    monkeypatch.chdir(tmp_path)
    complaint = make(tmp_path / f"m{suffix}")
    for read in (load, fingerprint, load_any_tensor) if suffix == ".npz" else (load, fingerprint):
        if suffix == ".tns":
            read = load_any_tensor if read is load else read
        with pytest.raises(OperandError, match=rf"^m{suffix}: {complaint}$".replace("(", r"\(").replace(")", r"\)")):
            read(f"m{suffix}")


def test_links_to_files_are_files(tmp_path):
    (tmp_path / "m.mtx").write_text(TEXT)
    (tmp_path / "link.mtx").symlink_to("m.mtx")
    assert load(str(tmp_path / "link.mtx")).nnz == 2


def test_the_command_line_refuses_a_pipe_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("m.mtx")
    assert main(["run", "m.mtx", "--engine", "golden"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.splitlines() == [
        "fiberloom: m.mtx: is a named pipe: must be a regular file"
    ]


NAMES = {
    b"caf\xe9": "caf\\xe9",  # Latin-1
    "café_日本".encode(): "café_日本",
    b"a\nb": "a\\x0ab",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".npz"])
def test_names_in_any_encoding(tmp_path, monkeypatch, capsys, name, suffix):
    monkeypatch.chdir(tmp_path)
    typed = os.fsdecode(name) + suffix
    content = TEXT.encode()
    if suffix == ".npz":
        with open(typed, "wb") as stream:
            sp.save_npz(stream, sp.csr_array(np.diag([3, 4])))
    else:
        Path(typed).write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    operand = load(typed)
    assert (operand.name, operand.source) == (NAMES[name], NAMES[name] + suffix)
    with pytest.raises(OperandError, match="no such file") as caught:
        load("no" + typed)
    assert str(caught.value).encode().isascii() == NAMES[name].isascii() and "\n" not in str(caught.value)
    if suffix == ".mtx":
        assert main(["run", typed, "--engine", "golden", "--config", "tiny", "--quiet"]) == 0
        (document,) = (tmp_path / "out").rglob("result.json")
        assert NAMES[name] in str(document)
        record = json.loads(document.read_text(encoding="utf-8"))
        assert record["operands"]["A"]["source"] == NAMES[name] + suffix
        page = document.with_name("report.html").read_text(encoding="utf-8")
        assert NAMES[name] in page
        assert capsys.readouterr().err == ""


def test_the_command_to_repeat_gives_the_same_bytes():
    words = ["run", os.fsdecode(b"caf\xe9's.mtx"), "b c.mtx", "é.mtx"]
    assert repeat_command(words) == "fiberloom run $'caf\\xe9\\x27s.mtx' 'b c.mtx' 'é.mtx'"


def test_names_are_shown_once():
    for name in (os.fsdecode(b"\xff\x00"), "a\ud800b", "tab\t", "plain"):
        said = shown(name)
        assert said.encode("utf-8") and said.isprintable() and shown(said) == said
    assert quoted("plain") == "plain"
