"""A real Dask scheduler and its workers on the loopback."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]


class LocalCluster:
    """``address`` of a scheduler; workers by ``start_worker``. All processes end with ``close``."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
        # An item may end two workers, not four.
        fewer = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        self.environment = os.environ | {"PYTHONPATH": path} | fewer | environment
        self.processes: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)
        )
        deadline = time.monotonic() + 60
        while not file.exists() or not file.read_text():
            assert self.scheduler.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        self.address: str = json.loads(file.read_text())["address"]

    def _start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", "--no-dashboard", *words],
            cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        """One thread, in a process that nobody starts again."""
        name = self.folder / f"worker-{len(self.processes)}"
        return self._start("dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--local-directory", str(name))

    def start_workers(self, count: int) -> list[subprocess.Popen[bytes]]:
        """Workers that the scheduler knows of."""
        from distributed import Client

        with Client(self.address, timeout=60) as client:
            before = len(client.scheduler_info(n_workers=-1)["workers"])
            started = [self.start_worker() for _ in range(count)]
            client.wait_for_workers(before + count, timeout=60)
        return started

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@contextmanager
def local_cluster(folder: Path, **environment: str) -> Iterator[LocalCluster]:
    cluster = LocalCluster(folder, environment)
    try:
        yield cluster
    finally:
        cluster.close()
