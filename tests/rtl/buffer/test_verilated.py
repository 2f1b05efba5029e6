"""What compiled blocks are built with: the run-time library that belongs to the Verilator at hand, the compiler asked for."""

from pathlib import Path

import pytest

from tests.rtl.buffer import verilated


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Builds go to an empty folder, and no command is run: the file that it should write appears, empty."""
    run: list[tuple[str, ...]] = []

    def pretend(folder: Path, *command: str) -> str:
        run.append(command)
        (folder / "obj").mkdir(exist_ok=True)
        (folder / command[-1]).touch()
        return ""

    monkeypatch.setattr(verilated, "BUILD", tmp_path)
    monkeypatch.setattr(verilated, "_run", pretend)
    return run


def test_another_text_of_the_runtime_library_is_another_build(tmp_path: Path, commands: list[tuple[str, ...]]) -> None:
    """An update of Verilator leaves its folder where it was. A build is the library, and its header for each level."""
    build = 1 + len(verilated.LEVELS)
    for name in (*verilated.RUNTIME, "verilated.h"):
        (tmp_path / name).write_text("// 1")
    first = verilated._runtime("g++", ["-fPIC"], tmp_path)
    assert verilated._runtime("g++", ["-fPIC"], tmp_path) == first and len(commands) == build
    (tmp_path / "verilated.h").write_text("// 2")
    second = verilated._runtime("g++", ["-fPIC"], tmp_path)
    assert second != first and second.exists() and len(commands) == 2 * build
    assert verilated._runtime("clang++", ["-fPIC"], tmp_path) not in (first, second)


def test_the_compiler_is_the_one_asked_for(
    tmp_path: Path, commands: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "my-compiler"
    compiler.touch(mode=0o755)
    monkeypatch.setenv("CXX", str(compiler))
    verilated._compile("module dut; endmodule\n", "// harness")
    compiled = [command for command in commands if "--cc" not in command]
    # The run-time library, the header and one text for each level, all together.
    assert len(compiled) == 2 + 2 * len(verilated.LEVELS) == len(commands) - 1
    assert {command[0] for command in compiled} == {str(compiler)}
