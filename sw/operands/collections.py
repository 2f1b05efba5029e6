"""Collections on the network: SuiteSparse, SNAP and FROSTT by name. Nothing is downloaded unless its name is used."""

import csv
import gzip
import re
import shutil
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gen.design import did_you_mean
from sw.cache import cache_folder

from .downloads import Share, fetch
from .errors import MissingToolError, OperandError
from .memory import require_memory
from .operand import canonical_csr

__all__ = ["Entry", "catalogue", "fetch_collection", "fetch_index", "is_kept", "read_edges"]

URLS = {
    "suitesparse": "https://sparse.tamu.edu/MM/{group}/{name}.tar.gz",
    "snap": "https://snap.stanford.edu/data/{file}",
    "frostt": "https://s3.us-east-2.amazonaws.com/frostt/frostt_data/{file}",
}
INDEX_URL = "https://sparse.tamu.edu/files/ssstats.csv"
WORD = r"[A-Za-z0-9][A-Za-z0-9_.+-]*"
CATALOGUE = Path(__file__).with_name("catalogue.tsv")
# Fields of the index that are used: group, name, rows, columns, nonzeros; there are twelve or more.
INDEX_FIELDS = 5


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set that has a name.

    Parameters
    ----------
    source: ``suitesparse``, ``snap`` or ``frostt``. name: within it.
    shape: sizes of its ranks; empty when unknown. nnz: stored nonzeros, 0 when unknown.
    file: where it lies below the source's address, for SNAP and FROSTT.
    once: each edge of an undirected graph is listed once.
    """

    source: str
    name: str
    shape: tuple[int, ...] = ()
    nnz: int = 0
    file: str = ""
    once: bool = False

    @property
    def spec(self) -> str:
        """As a user types it."""
        return f"{self.source}:{self.name}"


@cache
def _shipped() -> tuple[Entry, ...]:
    with CATALOGUE.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader((line for line in stream if not line.startswith("#")), delimiter="\t")
        return tuple(
            Entry(
                source=row["source"],
                name=row["name"],
                shape=tuple(int(size) for size in row["shape"].split("x") if size),
                nnz=int(row["nnz"] or 0),
                file=row["file"],
                once=row["edges"] == "once",
            )
            for row in rows
        )


def catalogue() -> list[Entry]:
    """Every name known without the network: those that come with Fiberloom, and SuiteSparse's index where it is kept."""
    index = _index_path()
    if not index.exists():
        return list(_shipped())
    others = [entry for entry in _shipped() if entry.source != "suitesparse"]
    return [*_read_index(index), *others]


def _index_path() -> Path:
    return cache_folder() / "suitesparse" / "ssstats.csv"


def fetch_index(share: Share | None = None) -> Path:
    """Downloads SuiteSparse's index of all its matrices. Raises MissingToolError."""
    path = _index_path()
    fresh = path.with_name("ssstats.new.csv")
    fresh.unlink(missing_ok=True)

    def keep(archive: Path, scratch: Path) -> Path:
        _read_index(archive)
        return archive

    fetch(INDEX_URL, fresh, "suitesparse", keep, share)
    fresh.with_name(fresh.name + ".sha256").unlink()
    return fresh.replace(path)


def _read_index(path: Path) -> list[Entry]:
    """The index: how many, when, then a line for each matrix."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[2:]
    rows = [row for row in csv.reader(lines) if len(row) >= INDEX_FIELDS]
    try:
        return [
            Entry(source="suitesparse", name=f"{row[0]}/{row[1]}", shape=(int(row[2]), int(row[3])), nnz=int(row[4]))
            for row in rows
        ]
    except ValueError as error:
        raise MissingToolError(f"suitesparse: {path} is not the collection's index ({error}): fetch it again") from None


def _entry(source: str, argument: str, spec: str) -> Entry:
    """The entry of a name; the address of SNAP's and SuiteSparse's files follows from the name."""
    for entry in _shipped():
        if (entry.source, entry.name) == (source, argument):
            return entry
    # Names differ in more than case.
    same = next((one.spec for one in catalogue() if one.spec.lower() == f"{source}:{argument}".lower()), spec)
    if same != f"{source}:{argument}":
        raise OperandError(f"{spec}: no such name (did you mean {same}?)")
    if source == "suitesparse":
        if not re.fullmatch(f"{WORD}/{WORD}", argument):
            raise OperandError(f"{spec}: must be suitesparse:Group/Name, as in suitesparse:Williams/cant")
    elif source == "frostt":
        names = [entry.name for entry in _shipped() if entry.source == "frostt"]
        raise OperandError(f"{spec}: no such tensor: must be one of {', '.join(names)}{did_you_mean(argument, names)}")
    elif not re.fullmatch(WORD, argument):
        raise OperandError(f"{spec}: must be snap:NAME, as in snap:soc-Epinions1")
    return Entry(source=source, name=argument, file=f"{argument}.txt.gz")


def _target(entry: Entry) -> Path:
    folder = cache_folder() / entry.source
    if entry.source == "suitesparse":
        group, name = entry.name.split("/")
        return folder / group / f"{name}.mtx"
    return folder / entry.file.rsplit("/", 1)[-1]


def is_kept(entry: Entry) -> bool:
    """Whether it was downloaded before."""
    return _target(entry).exists()


def fetch_collection(source: str, argument: str, spec: str, share: Share | None = None) -> tuple[Path, Entry]:
    """The file of a data set and its entry; downloaded on the first use and kept.

    Raises OperandError for a name that cannot be one, MissingToolError when the collection cannot be reached.
    """
    entry = _entry(source, argument, spec)
    target = _target(entry)
    name = argument.split("/")[-1]
    url = URLS[source].format(group=argument.split("/")[0], name=name, file=entry.file)

    def unpack(archive: Path, scratch: Path) -> Path:
        if source == "suitesparse":
            return _matrix_of(archive, scratch, name, f"{spec}: {url}")
        with gzip.open(archive, "rb") as stream:  # complete, or an exception
            while stream.read(1 << 20):
                pass
        return archive

    return fetch(url, target, spec, unpack, share), entry


def _matrix_of(archive: Path, scratch: Path, name: str, shown: str) -> Path:
    extracted = scratch / f"{name}.mtx"
    with tarfile.open(archive) as content:
        for member in content:
            if member.isfile() and member.name == f"{name}/{name}.mtx":
                data = content.extractfile(member)
                if data is not None:
                    with data, extracted.open("wb") as stream:
                        shutil.copyfileobj(data, stream)
                    return extracted
    raise OperandError(f"{shown} holds no {name}/{name}.mtx")


def read_edges(path: Path, spec: str, once: bool) -> sp.csr_array:
    """A SNAP edge list as the graph's adjacency pattern, one row for each node number up to the largest.

    ``once``: an undirected graph of which each edge is listed once; the other direction is added.
    """
    require_memory(8 * path.stat().st_size, spec)
    try:
        edges = np.loadtxt(path, dtype=np.int64, comments="#", usecols=(0, 1), ndmin=2)
    except (ValueError, EOFError, OSError) as error:
        raise OperandError(f"{spec}: {path} is not an edge list ({' '.join(str(error).split())[:120]})") from None
    if edges.size == 0 or edges.min() < 0:
        raise OperandError(f"{spec}: {path} is not an edge list (must be two node numbers a line)")
    if once:
        edges = np.concatenate([edges, edges[:, ::-1]])
    nodes = int(edges.max()) + 1
    matrix = canonical_csr(sp.coo_array((np.ones(len(edges), np.int8), edges.T), shape=(nodes, nodes)), spec)
    matrix.data[:] = 1
    return matrix
