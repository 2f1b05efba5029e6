"""Caches that cannot be written, are full or hold rubbish: work goes on without them, and one note says so."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sw import cache, folders, jit, notes
from sw.cli.results import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def said():
    """What notes say meanwhile."""
    lines: list[str] = []
    notes.listen(lambda about, text: lines.append(text))
    yield lines
    notes.listen(notes.warn)


def full(*arguments, **more):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# Compiled loops ---------------------------------------------------------------------------------------------------------


def twice(x):
    return 2 * x


def test_code_knows_the_constants_that_were_compiled_in(tmp_path):
    package = tmp_path / "sample"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "loop.py").write_text(
        "from sw.jit import njit\nfrom .numbers import STEP\n\n@njit(cache=True)\ndef step(x):\n    return x + STEP\n"
    )
    command = [sys.executable, "-c", "from sample.loop import step; print(step(1), step.stats.cache_hits.total())"]
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        # Python knows a module by its size and its second: here it changes within one.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    seen = []
    for constant in ("2", "2", "3"):
        (package / "numbers.py").write_text(f"STEP = {constant}\n")
        seen.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split())
    assert seen == [["3", "0"], ["3", "1"], ["4", "0"]]


def indexes_of_another_source(monkeypatch, tmp_path):
    """Keys of two signatures whose code is kept, and the indexes of two processes in which the source has changed since."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    first = jit.njit(twice, cache=True)
    assert first(3) == 6 and first(1.5) == 3
    indexes = [jit.njit(twice, cache=True)._cache._cache_file for _ in range(2)]
    for index in indexes:
        index._source_stamp = "another source"
    return list(first._cache._cache_file._load_index()), *indexes


def test_nobody_finds_code_of_another_source(monkeypatch, tmp_path):
    """Not even who reads while code of the new source is kept; that of the old one goes."""
    keys, writer, reader = indexes_of_another_source(monkeypatch, tmp_path)
    seen = []

    def watched(step):
        def run(*arguments):
            seen.append(reader.load(keys[0]))
            step(*arguments)
            seen.append(reader.load(keys[0]))

        return run

    for name in ("_save_data", "_save_index"):
        monkeypatch.setattr(writer, name, watched(getattr(writer, name)))
    writer.save(keys[0], "new")
    assert seen == [None, None, None, "new"]
    assert reader.load(keys[1]) is None
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


def test_two_signatures_that_are_kept_at_once_do_not_take_turns_in_one_file(monkeypatch, tmp_path):
    keys, one, other = indexes_of_another_source(monkeypatch, tmp_path)
    save = one._save_data

    def with_other_between(name, data):
        other.save(keys[1], "second")
        save(name, data)

    monkeypatch.setattr(one, "_save_data", with_other_between)
    one.save(keys[0], "first")
    assert [other.load(key) for key in keys] == ["first", "second"]


def test_functions_of_two_processes_have_no_name_in_common():
    """Kept code is linked by name, and Numba numbers the functions of each process: also those of one that was forked."""
    show = "print(next(FunctionIdentity._unique_ids), flush=True)"
    fork = f"pid = os.fork()\nif pid == 0:\n    {show}\n    os._exit(0)\nos.waitpid(pid, 0)\n{show}"
    program = f"import os\nfrom numba.core.bytecode import FunctionIdentity\nimport sw.jit\n{fork}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    numbers = []
    for _ in range(2):
        command = [sys.executable, "-c", program]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        numbers += map(int, said.split())
    apart = np.diff(np.sort(numbers))
    assert len(apart) == 3 and apart.min() > 1 << 30


def test_code_that_cannot_be_saved_runs(said, monkeypatch, tmp_path):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    compiled = jit.njit(twice, cache=True)
    other = jit.njit(twice, cache=True)
    for function in (compiled, other):
        monkeypatch.setattr(function._cache.cache, "save_overload", full)
    assert [compiled(3), compiled(1.5), other(4)] == [6, 3.0, 8]
    (line,) = said
    assert line.startswith(f"compiled code cannot be kept ({tmp_path}") and "No space left on device" in line
    assert line.endswith("every run compiles anew; NUMBA_CACHE_DIR names another place")


def test_code_that_has_no_place_runs(said, monkeypatch):
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    compiled = jit.njit(cache=True, nogil=True)(twice)
    assert said == []  # what is never compiled need not be kept
    assert compiled(np.int64(3)) == 6
    assert len(said) == 1 and ": cannot be written): every run compiles anew" in said[0]


@pytest.mark.parametrize("rubbish", [b"", b"rubbish", b"\x80\x04\x95", b"\x80\x04K\x01."])
def test_rubbish_among_kept_code_is_replaced(said, monkeypatch, tmp_path, rubbish):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    assert jit.njit(twice, cache=True)(3) == 6
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*.nb?")}
    assert {path.suffix for path in whole} == {".nbi", ".nbc"}
    for damaged in whole:
        for path, content in whole.items():
            path.write_bytes(content)
        damaged.write_bytes(rubbish)
        assert jit.njit(twice, cache=True)(3) == 6
        again = jit.njit(twice, cache=True)
        assert again(3) == 6
        # The index was mended, so that what comes after it finds the code.
        last = jit.njit(twice, cache=True)
        assert last(3) == 6 and sum(last.stats.cache_hits.values()) == 1
    assert said == []


def test_code_is_kept_where_it_can_be(said, monkeypatch, tmp_path):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    assert jit.njit(twice, cache=True)(3) == 6
    second = jit.njit(twice, cache=True)
    assert second(3) == 6 and sum(second.stats.cache_hits.values()) == 1
    assert said == [] and not list(jit.njit(twice)._cache.cache_path or [])


# Builds and results -----------------------------------------------------------------------------------------------------


def test_what_cannot_be_kept_is_made_elsewhere(said, tmp_path):
    (tmp_path / "file").write_text("")
    for _ in range(2):
        place = cache.keep("builds", tmp_path / "file" / "builds", lambda folder: folder)
        assert place.is_dir() and tmp_path not in place.parents
    (line,) = said
    assert line.startswith(
        f"builds cannot be kept in {tmp_path}/file/builds (Not a directory): made for this run alone"
    )


def test_a_tool_that_fails_on_a_full_disk_is_run_elsewhere(said, tmp_path, monkeypatch):
    def make(folder: Path) -> Path:
        if folder == tmp_path / "new/builds":
            raise RuntimeError("the compiler wrote half a file")
        return folder

    with pytest.raises(RuntimeError):
        cache.keep("builds", tmp_path / "new/builds", make)
    assert said == []
    monkeypatch.setattr(cache, "ROOM", 1 << 62)
    assert cache.keep("builds", tmp_path / "new/builds", make) != tmp_path / "new/builds"
    assert len(said) == 1 and "new/builds (no room)" in said[0]
    assert not (tmp_path / "new").exists()


def test_a_temporary_place_goes_with_its_process(tmp_path):
    code = (
        "from sw import cache, notes; notes.listen(lambda about, text: print(text))\n"
        "print(cache.keep('it', cache.Path('/dev/null/x'), lambda folder: folder))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    note, place = done.stdout.splitlines()
    assert note.startswith("it cannot be kept in /dev/null/x (Not a directory)")
    assert Path(place).parent == tmp_path and list(tmp_path.iterdir()) == []


def test_a_folder_is_found_without_a_home(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.platform_folder() == tmp_path / ".cache/fiberloom"
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 54321)  # known to no list of users
    assert cache.platform_folder().is_absolute()


def test_results_that_cannot_be_kept_are_told_once(said, tmp_path):
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file")
    store.put("abc", {})
    store.put("def", {})
    assert not store.kept and len(said) == 1
    assert said[0].startswith(f"{tmp_path}/file: cannot keep results (Not a directory): the next sweep runs them again")


def test_folders_without_results_go(tmp_path):
    made = folders.make(tmp_path / "a/b/c")
    (tmp_path / "a/kept").write_text("")
    folders.remove_empty(made)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "kept"]
    assert folders.make(tmp_path / "a") == []
    with pytest.raises(OSError):
        folders.make(tmp_path / "a/kept/x")
    folders.remove_empty([tmp_path / "none"])


def test_a_note_is_said_once(said):
    for about, text in (("a", "one"), ("b", "two"), ("a", "three")):
        notes.note(about, text)
    assert said == ["one", "two"]
    notes.listen(notes.warn)
    with pytest.warns(RuntimeWarning, match="^one$"):
        notes.note("a", "one")
