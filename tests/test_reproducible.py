"""Equal designs give equal bytes, whatever the process, the folder and the hash seed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from sw.cli.app import main

ROOT = Path(__file__).parents[1]
COMMAND = ("generate", "--config", "tiny", "--value", "fp32", "--out", "files", "--quiet")


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in (folder / "files").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_processes_write_the_same_bytes(tmp_path, monkeypatch):
    """This one, which may have written other designs before, and a new one with a hash seed of its own."""
    first, second = tmp_path / "first", tmp_path / "second folder"
    first.mkdir()
    second.mkdir()
    environment = os.environ | {"PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "sw", *COMMAND], cwd=second, env=environment, check=True, capture_output=True)
    monkeypatch.chdir(first)
    assert main(COMMAND) == 0
    found = hashes(first)
    assert len(found) > 50
    assert {"files/tb/smoke_tb.sv", "files/tb/smoke_memory.hex", "files/docs/blocks/accelerator.md"} <= set(found)
    assert hashes(second) == found
