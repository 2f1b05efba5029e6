"""Both executors of a sweep: every item once, whatever dies; nothing is left running."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from sw.cli.cluster import Cluster
from sw.cli.executors import Processes
from sw.operands import MissingToolError
from tests.sw.cli import sweep_work
from tests.sw.cli.clusters import local_cluster

ROOT = Path(__file__).parents[3]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


def lingering(path: Path) -> list[int]:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [int(word) for word in path.read_text().split()]


def test_processes_do_every_item_once():
    items = [f"item {n}" for n in range(12)]
    found = dict(Processes(2).results(sweep_work.echo, items))
    assert {position: outcome["record"]["item"] for position, outcome in found.items()} == dict(enumerate(items))
    pids = {outcome["record"]["pid"] for outcome in found.values()}
    assert 1 <= len(pids) <= 2 and os.getpid() not in pids and gone(list(pids))
    assert list(Processes(3).results(sweep_work.echo, [])) == []


def test_a_process_that_dies_fails_alone():
    items = ["a", "b", "die", "c", "die", "d"]
    answers = list(Processes(2).results(sweep_work.die, items))
    assert sorted(position for position, _ in answers) == list(range(6))
    found = dict(answers)
    assert [n for n in range(6) if "error" in found[n]] == [2, 4]
    assert found[2]["error"] == "the process died (killed, or out of memory)"


def test_closing_ends_what_runs(tmp_path):
    with closing(Processes(2).results(sweep_work.linger, ["", str(tmp_path / "pid"), ""])) as results:
        next(results)
        pids = lingering(tmp_path / "pid")
    assert len(pids) == 2 and gone(pids)


def test_without_the_parent_processes_end(tmp_path):
    code = (
        "from sw.cli.executors import Processes; from tests.sw.cli.sweep_work import linger\n"
        f"list(Processes(1).results(linger, [{str(tmp_path / 'pid')!r}]))\n"
    )
    (tmp_path / "main.py").write_text(f"if __name__ == '__main__':\n    {code.replace(chr(10), chr(10) + '    ')}\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))}
    parent = subprocess.Popen([sys.executable, "main.py"], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    try:
        pids = lingering(tmp_path / "pid")
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert len(pids) == 2 and gone(pids)


def test_one_process_compiles_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path))
    found = [outcome["record"] for _, outcome in Processes(3).results(sweep_work.compile_something, range(12))]
    assert len({record["pid"] for record in found}) > 1
    ordered = sorted(found, key=lambda record: record["begun"])
    assert all(first["ended"] <= second["begun"] for first, second in pairwise(ordered))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with local_cluster(tmp_path_factory.mktemp("dask")) as started:
        yield started


def test_a_cluster_does_every_item_once(cluster):
    workers = cluster.start_workers(2)
    found = dict(Cluster(cluster.address).results(sweep_work.echo, list("abcdefgh")))
    assert [found[n]["record"]["item"] for n in range(8)] == list("abcdefgh")
    assert {outcome["record"]["pid"] for outcome in found.values()} == {worker.pid for worker in workers}


def test_a_killed_worker_loses_nothing(cluster):
    """One of two workers is killed while it runs and holds finished items that nobody has fetched."""
    workers = [process for process in cluster.processes[1:] if process.poll() is None]
    killed = []
    found = {}
    with closing(Cluster(cluster.address).results(sweep_work.echo, list(range(60)))) as results:
        for position, outcome in results:
            found[position] = outcome["record"]
            if len(found) == 5:
                workers[0].kill()
                killed.append(workers[0].wait())
    assert killed and sorted(found) == list(range(60))
    assert [found[n]["item"] for n in range(60)] == list(range(60))
    assert found[59]["pid"] == workers[1].pid


def test_items_that_kill_their_workers_fail_alone(cluster):
    cluster.start_workers(8)  # nobody starts them again: two for each attempt at most, for whatever is blamed
    found = dict(Cluster(cluster.address).results(sweep_work.die, ["a", "die", "b"]))
    assert found[0]["record"]["item"] == "a" and found[2]["record"]["item"] == "b"
    assert found[1]["error"].startswith("KilledWorker: ")


def test_workers_without_fiberloom_are_told(cluster):
    cluster.start_worker()

    def absent(item):
        import no_such_module

        return no_such_module

    absent.__module__ = "__main__"  # sent by value
    with pytest.raises(
        MissingToolError, match=r"its workers cannot run points \(.*no_such_module.*\): install fiberloom"
    ):
        list(Cluster(cluster.address).results(absent, [1]))


def test_a_scheduler_that_goes_away(tmp_path):
    with local_cluster(tmp_path) as started:
        started.start_worker()
        with closing(Cluster(started.address).results(sweep_work.echo, list(range(200)))) as results:
            next(results)
            started.scheduler.kill()
            with pytest.raises(MissingToolError, match=r"went away; what was finished is kept: start again$"):
                list(results)


def test_no_scheduler_is_one_line(monkeypatch):
    monkeypatch.setattr("sw.cli.cluster.CONNECT_SECONDS", 1)
    with pytest.raises(MissingToolError) as caught:
        Cluster("tcp://127.0.0.1:9")
    assert str(caught.value).startswith("--cluster tcp://127.0.0.1:9: no Dask scheduler answers (")
    assert caught.value.exit_code == 3


def test_without_dask_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingToolError, match=r"^--cluster x: needs distributed: pip install 'fiberloom\[cluster\]'$"):
        Cluster("x")
