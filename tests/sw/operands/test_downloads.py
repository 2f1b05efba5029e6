"""Data sets by name: downloaded once, whole or not at all, checked against what was recorded."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from sw.cache import cache_folder
from sw.operands import MissingToolError, OperandError, collections, load
from sw.operands.collections import catalogue, fetch_collection, fetch_index, is_kept

SMALL = b"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n"


def archive(folder: Path, content: bytes, member: str = "small/small.mtx") -> Path:
    path = folder / "Group" / "small.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as target:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        target.addfile(info, io.BytesIO(content))
    return path


def kept(server, collection: str = "suitesparse/Group") -> list[str]:
    """What the cache holds of a collection; a folder that nothing was put into is none."""
    folder = server.cache / collection
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    assert names or not folder.exists(), "an empty folder is left"
    return names


def test_suitesparse_downloads_once(server):
    archive(server.folder, SMALL)
    operand = load("suitesparse:Group/small")
    assert operand.name == "small" and operand.nnz == 2 and operand.symmetric_expanded
    assert load("suitesparse:Group/small", as_stored=True).nnz == 1
    assert server.asked == ["/Group/small.tar.gz"]
    assert kept(server) == ["small.mtx", "small.mtx.sha256"]
    record = (server.cache / "suitesparse/Group/small.mtx.sha256").read_text()
    assert record == f"{hashlib.sha256(SMALL).hexdigest()}  small.mtx\n"


def test_a_changed_file_is_refused(server):
    archive(server.folder, SMALL)
    load("suitesparse:Group/small")
    path = server.cache / "suitesparse/Group/small.mtx"
    path.write_bytes(SMALL.replace(b"\n2 1\n", b"\n1 1\n"))
    with pytest.raises(OperandError) as caught:
        load("suitesparse:Group/small")
    assert str(caught.value) == (
        f"suitesparse:Group/small: {path} is not what was downloaded (its checksum is not the one in "
        "small.mtx.sha256): remove it to download it again, or remove the record to keep it"
    )
    path.with_name("small.mtx.sha256").unlink()
    assert load("suitesparse:Group/small").nnz == 1


def test_a_file_put_there_by_hand_is_used(server):
    folder = server.cache / "suitesparse/Group"
    folder.mkdir(parents=True)
    (folder / "mine.mtx").write_bytes(SMALL)
    assert load("suitesparse:Group/mine").nnz == 2
    assert server.asked == []


def test_no_server_is_one_line(server, monkeypatch):
    monkeypatch.setitem(collections.URLS, "suitesparse", "http://127.0.0.1:9/{group}/{name}.tar.gz")
    with pytest.raises(MissingToolError) as caught:
        load("suitesparse:Group/small")
    assert caught.value.exit_code == 3
    assert str(caught.value) == (
        "suitesparse:Group/small: cannot reach http://127.0.0.1:9/Group/small.tar.gz (Connection refused): "
        f"get it elsewhere and put small.mtx into {server.cache}/suitesparse/Group"
    )
    assert kept(server) == []


def test_a_name_the_collection_lacks(server):
    with pytest.raises(OperandError) as caught:
        load("suitesparse:Group/small")
    assert str(caught.value) == (
        f"suitesparse:Group/small: the collection has no such file ({server.url}/Group/small.tar.gz)"
    )
    assert kept(server) == []


def test_half_a_download_leaves_nothing(server):
    path = archive(server.folder, SMALL * 1000)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(MissingToolError, match=r"broke off or is not an archive: try again$"):
        load("suitesparse:Group/small")
    assert kept(server) == []


def test_an_archive_of_something_else(server):
    archive(server.folder, SMALL, member="other/readme.txt")
    with pytest.raises(OperandError, match=r"small\.tar\.gz holds no small/small\.mtx$"):
        load("suitesparse:Group/small")
    assert kept(server) == []


def test_snap_edges(server):
    text = "# Nodes: 3\n# FromNodeId\tToNodeId\n0\t1\n0\t1\n2\t0\n4\t4\n"
    (server.folder / "tiny.txt.gz").write_bytes(gzip.compress(text.encode()))
    operand = load("snap:tiny")
    assert operand.name == "tiny" and operand.shape == (5, 5) and operand.nnz == 3
    assert operand.matrix.data.tolist() == [1, 1, 1] and not operand.symmetric_expanded


def test_snap_graphs_that_list_an_edge_once(server):
    folder = server.folder / "bigdata/communities"
    folder.mkdir(parents=True)
    (folder / "com-dblp.ungraph.txt.gz").write_bytes(gzip.compress(b"0 1\n1 2\n"))
    assert load("snap:com-dblp").nnz == 4 and load("snap:com-dblp").symmetric_expanded
    assert load("snap:com-dblp", as_stored=True).nnz == 2


@pytest.mark.parametrize("text", [b"", b"# nothing\n", b"a b\n", b"1\n", b"-1 2\n"])
def test_what_is_no_edge_list(server, text):
    (server.folder / "tiny.txt.gz").write_bytes(gzip.compress(text))
    with (
        pytest.warns(UserWarning, match="no data") if not text.replace(b"# nothing\n", b"") else _nothing(),
        pytest.raises(OperandError, match=r"^snap:tiny: .* is not an edge list \("),
    ):
        load("snap:tiny")


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_a_gzip_that_is_none(server):
    (server.folder / "tiny.txt.gz").write_bytes(b"<html>sorry</html>")
    with pytest.raises(MissingToolError, match=r"broke off or is not an archive: try again$"):
        load("snap:tiny")
    assert kept(server, "snap") == []


def test_tensors_are_fetched_and_no_operands(server):
    (server.folder / "nips").mkdir()
    (server.folder / "nips/nips.tns.gz").write_bytes(gzip.compress(b"1 1 1 1 2.5\n"))
    path, entry = fetch_collection("frostt", "nips", "frostt:nips")
    assert path == server.cache / "frostt/nips.tns.gz" and entry.shape == (2482, 2862, 14036, 17)
    with pytest.raises(OperandError, match=r"^frostt:nips: a tensor: operands must be matrices"):
        load("frostt:nips")
    with pytest.raises(OperandError, match=r"^frostt:none: no such tensor: must be one of chicago-crime-comm, "):
        fetch_collection("frostt", "none", "frostt:none")


def test_the_index_replaces_the_short_list(server):
    before = [entry.spec for entry in catalogue()]
    assert "suitesparse:Williams/cant" in before and "snap:wiki-Vote" in before and "frostt:uber" in before
    (server.folder / "ssstats.csv").write_text("1\n2026\nGroup,small,2,3,4,1,0,0,0,1,1,kind,4\n")
    fetch_index()
    entries = catalogue()
    found = [entry for entry in entries if entry.source == "suitesparse"]
    assert [(entry.spec, entry.shape, entry.nnz) for entry in found] == [("suitesparse:Group/small", (2, 3), 4)]
    assert not is_kept(found[0]) and "snap:wiki-Vote" in [entry.spec for entry in entries]
    (server.folder / "ssstats.csv").write_text("1\n2026\nGroup,other,2,x,4,1\n")
    with pytest.raises(MissingToolError, match=r"is not the collection's index"):
        fetch_index()
    assert [entry.spec for entry in catalogue() if entry.source == "suitesparse"] == ["suitesparse:Group/small"]


def test_where_downloads_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("FIBERLOOM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fiberloom"
