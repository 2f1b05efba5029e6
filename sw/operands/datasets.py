"""Matrices by name: ``pyamg:NAME``, ``mycielskian:N``, ``suitesparse:GROUP/NAME``."""

import os
import re
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from importlib import util
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

from .errors import MissingToolError, OperandError
from .memory import require_memory
from .operand import canonical_csr

__all__ = ["cache_folder", "fetch_suitesparse", "mycielskian", "read_pyamg"]

SUITESPARSE_URL = "https://sparse.tamu.edu/MM/{group}/{name}.tar.gz"
DOWNLOAD_SECONDS = 30
MYCIELSKIAN_LIMIT = 16


def mycielskian(argument: str, source: str) -> sp.csr_array:
    """Adjacency matrix of the Mycielskian graph of order ``argument`` (SuiteSparse's ``mycielskianN``, pattern).

    Nodes are numbered as in the construction: old nodes, their copies, the apex.
    """
    if not re.fullmatch(r"[0-9]{1,4}", argument) or not 2 <= int(argument) <= MYCIELSKIAN_LIMIT:
        raise OperandError(f"{source}: order {argument!r}: must be a whole number from 2 to {MYCIELSKIAN_LIMIT}")
    order = int(argument)
    # Each step triples the edges and adds one for each node.
    edges, nodes = 1, 2
    for _ in range(order - 2):
        edges, nodes = 3 * edges + nodes, 2 * nodes + 1
    require_memory(100 * edges, source)
    graph = sp.csr_array(np.array([[0, 1], [1, 0]], dtype=np.int64))
    for _ in range(order - 2):
        ones = sp.csr_array(np.ones((graph.shape[0], 1), dtype=np.int64))
        graph = sp.csr_array(sp.block_array([[graph, graph, None], [graph, None, ones], [None, ones.T, None]]))
    return canonical_csr(graph, source)


def read_pyamg(name: str, source: str) -> sp.csr_array:
    """The matrix ``A`` of one of PyAMG's example files, read from the installed wheel."""
    found = util.find_spec("pyamg")
    if found is None or found.origin is None:
        raise MissingToolError(f"{source}: PyAMG is not installed: pip install pyamg")
    folder = Path(found.origin).parent / "gallery" / "example_data"
    names = sorted(path.stem for path in folder.glob("*.mat"))
    if name not in names:
        raise OperandError(f"{source}: no such example: must be one of {', '.join(names)}")
    content = scipy.io.loadmat(folder / f"{name}.mat")
    if not sp.issparse(content.get("A")):
        raise OperandError(f"{source}: this example holds no sparse matrix A")
    return canonical_csr(content["A"], source)


def cache_folder() -> Path:
    """Where downloads are kept: ``$FIBERLOOM_CACHE``, ``$XDG_CACHE_HOME/fiberloom`` or ``~/.cache/fiberloom``."""
    if os.environ.get("FIBERLOOM_CACHE"):
        return Path(os.environ["FIBERLOOM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fiberloom"


def fetch_suitesparse(argument: str, source: str) -> Path:
    """The Matrix Market file of a SuiteSparse matrix, downloaded on the first use and kept.

    Raises OperandError for a name that is not ``Group/Name``, MissingToolError when the collection cannot be reached.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*/[A-Za-z0-9][A-Za-z0-9_.+-]*", argument):
        raise OperandError(f"{source}: must be suitesparse:Group/Name, as in suitesparse:Williams/cant")
    group, name = argument.split("/")
    folder = cache_folder() / "suitesparse" / group
    target = folder / f"{name}.mtx"
    if target.exists():
        return target
    url = SUITESPARSE_URL.format(group=group, name=name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".partial-") as scratch:
            extracted = _download(url, name, Path(scratch), source)
            os.replace(extracted, target)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise OperandError(f"{source}: the collection has no such matrix ({url})") from None
        raise MissingToolError(f"{source}: {url} answered {error.code} {error.reason}") from None
    except (tarfile.TarError, EOFError, zlib.error):
        raise MissingToolError(f"{source}: {url} broke off or is not an archive: try again") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise MissingToolError(
            f"{source}: cannot reach {url} ({reason}): get it elsewhere and put {name}.mtx into {folder}"
        ) from None
    except OSError as error:
        raise OperandError(f"{source}: cannot keep the download in {folder} ({error.strerror or error})") from None
    return target


def _download(url: str, name: str, scratch: Path, source: str) -> Path:
    archive = scratch / "archive.tar.gz"
    with urllib.request.urlopen(url, timeout=DOWNLOAD_SECONDS) as response, archive.open("wb") as stream:
        shutil.copyfileobj(response, stream)
    extracted = scratch / f"{name}.mtx"
    with tarfile.open(archive) as content:
        for member in content:
            if member.isfile() and member.name == f"{name}/{name}.mtx":
                data = content.extractfile(member)
                if data is not None:
                    with data, extracted.open("wb") as stream:
                        shutil.copyfileobj(data, stream)
                    return extracted
    raise OperandError(f"{source}: {url} holds no {name}/{name}.mtx")
