"""Downloads: once, completely or not at all, kept in the platform's cache folder, with a checksum that is checked."""

import gzip
import hashlib
import os
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sw.folders import make as make_folder
from sw.folders import remove_empty
from sw.notes import detail

from .errors import MissingToolError, OperandError

__all__ = ["Share", "check", "digest", "fetch", "record_of"]

# Called with the finished share of a download, 0 to 1; None where the server does not send the size.
Share = Callable[[float | None], None]
# From the downloaded file and an empty folder to the file that is kept.
Unpack = Callable[[Path, Path], Path]

DOWNLOAD_SECONDS = 30
CHUNK_BYTES = 1 << 18


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        found = hashlib.sha256()
        while block := stream.read(CHUNK_BYTES):
            found.update(block)
    return found.hexdigest()


def record_of(target: Path) -> Path:
    """The file that holds the checksum of a kept download, in the form that ``sha256sum --check`` reads."""
    return target.with_name(target.name + ".sha256")


def check(target: Path, source: str) -> None:
    """Compares a kept download with its record; a file that was put there by hand has none.

    Raises OperandError when they differ.
    """
    record = record_of(target)
    try:
        words = record.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        words = []
    if not words or digest(target) != words[0]:
        raise OperandError(
            f"{source}: {target} is not what was downloaded (its checksum is not the one in {record.name}): "
            "remove it to download it again, or remove the record to keep it"
        )


def fetch(url: str, target: Path, source: str, unpack: Unpack, share: Share | None = None) -> Path:
    """The file ``target``, downloaded and unpacked unless it exists.

    Parameters
    ----------
    url: what to download. source: what the user asked for, for messages.
    unpack: makes the file to keep; raises the exceptions of tarfile and zlib for a bad archive.
    share: called with the progress of the download.

    Raises OperandError when the server has no such file, when the folder cannot be written, or when the kept file is not
    the one that was downloaded; MissingToolError when the server cannot be reached or the download breaks off.
    """
    if target.exists():
        detail(f"  {source} taken from the cache: {target}")
        check(target, source)
        return target
    detail(f"  {source} downloaded from {url}, kept as {target}")
    folder = target.parent
    made: list[Path] = []
    try:
        made = make_folder(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".partial-") as name:
            scratch = Path(name)
            unpacked = unpack(_download(url, scratch, share, source, f"put {target.name} into {folder}"), scratch)
            record = scratch / "record"
            record.write_text(f"{digest(unpacked)}  {target.name}\n", encoding="utf-8")
            os.replace(record, record_of(target))
            os.replace(unpacked, target)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error):
        raise MissingToolError(f"{source}: {url} broke off or is not an archive: try again") from None
    except OSError as error:
        raise OperandError(
            f"{source}: cannot keep the download in {folder} ({error.strerror or error}): FIBERLOOM_CACHE names another place"
        ) from None
    finally:
        remove_empty(made)
    return target


class _Bar:
    """A progress bar as pooch drives it."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.total = 0
        self.done = 0

    def update(self, more: int) -> None:
        self.done += more
        self.share(min(1.0, self.done / self.total) if self.total else None)

    def reset(self) -> None:
        """Called before pooch reports the whole once more."""
        self.done = 0

    def close(self) -> None:
        """Nothing to end."""


def _pooch() -> Any:
    import pooch

    # Pooch's own messages are replaced by those of this module.
    pooch.get_logger().setLevel("ERROR")
    return pooch


def _download(url: str, scratch: Path, share: Share | None, source: str, otherwise: str) -> Path:
    from requests import exceptions

    pooch = _pooch()
    bar = _Bar(share) if share is not None else False
    answers: list[Any] = []
    # Pooch leaves it to the garbage collector to close connections.
    hooks = {"response": lambda answer, *words, **more: answers.append(answer)}
    downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK_BYTES, timeout=DOWNLOAD_SECONDS, hooks=hooks)
    try:
        return Path(pooch.retrieve(url, known_hash=None, fname="download", path=scratch, downloader=downloader))
    except exceptions.HTTPError as error:
        answer = error.response
        if answer.status_code == 404:
            raise OperandError(f"{source}: the collection has no such file ({url})") from None
        raise MissingToolError(f"{source}: {url} answered {answer.status_code} {answer.reason}") from None
    except exceptions.ChunkedEncodingError:
        raise MissingToolError(f"{source}: {url} broke off or is not an archive: try again") from None
    except exceptions.RequestException as error:
        raise MissingToolError(
            f"{source}: cannot reach {url} ({_reason(error)}): get it elsewhere and {otherwise}"
        ) from None
    finally:
        for answer in answers:
            answer.close()


def _reason(error: BaseException) -> str:
    """What the operating system said, from under the layers that repeat the address."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(getattr(error, "strerror", None) or error)
