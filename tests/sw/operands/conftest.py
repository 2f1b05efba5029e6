"""A stand-in for the collections' servers, on the loopback."""

import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sw.operands import collections


@dataclass
class Server:
    """What it serves, where downloads are kept, and what was asked for."""

    folder: Path
    cache: Path
    url: str
    asked: list[str]


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            asked.append(self.path)

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{httpd.server_port}"
    urls = {"suitesparse": url + "/{group}/{name}.tar.gz", "snap": url + "/{file}", "frostt": url + "/{file}"}
    monkeypatch.setattr(collections, "URLS", urls)
    monkeypatch.setattr(collections, "INDEX_URL", f"{url}/ssstats.csv")
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "cache"))
    # A proxy of the machine has no business with the loopback.
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield Server(folder=folder, cache=tmp_path / "cache", url=url, asked=asked)
    httpd.shutdown()
    httpd.server_close()
    thread.join()
