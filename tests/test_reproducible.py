"""Equal designs give equal bytes, whatever the process, the folder and the hash seed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def generated(folder: Path, seed: str) -> dict[str, str]:
    folder.mkdir()
    environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder.parent)}
    command = [sys.executable, "-m", "sw", "generate", "--config", "tiny", "--value", "fp32", "--out", "files"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    files = sorted(path for path in (folder / "files").rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_processes_write_the_same_bytes(tmp_path):
    first = generated(tmp_path / "first", "1")
    second = generated(tmp_path / "second folder", "4242")
    assert len(first) > 50
    assert {"files/tb/smoke_tb.sv", "files/tb/smoke_memory.hex", "files/docs/blocks/accelerator.md"} <= set(first)
    assert first == second
