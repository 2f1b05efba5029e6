"""Every waiver is of a warning that Verilator gives: one that matches nothing hides the fault that comes after it."""

import re
from fnmatch import fnmatchcase

import pytest

from gen import lint as linter
from gen.blocks import block_kind, build_block, settings
from gen.design import load_design
from gen.lint import WAIVERS, lint
from gen.verilog import Verilog, emit, emit_design
from tests.tools import long_run

#: Blocks, and parameters of theirs, with warnings that a waiver is of and the accelerators below do not give.
BLOCKS = (
    ("converter", []),
    ("converted_a", []),
    ("converted_b", []),
    ("converted_b", ["beat_bits=512", "lanes=8"]),
    ("converted_c", []),
    ("converted_c", ["beat_bits=512", "lanes=8", "value=int8"]),
    ("tailors", []),
    ("tailors", ["release=true"]),
    ("buffet", []),
    ("weight_stationary_pe", ["words=9", "vector=8", "entries=8"]),
    ("int_add", ["width=8"]),
    ("int_multiply", ["width=8"]),
    ("fp_add", []),
    ("fp_multiply", []),
)
WAIVER = re.compile(r'^lint_off -rule (\w+)(?: -file "([^"]*)")?(?: -match "([^"]*)")?$')
COMPLAINT = re.compile(r"^%Warning-(\w+): ([^:]+):\d+:\d+: (.*)")

Waiver = tuple[str, str, str]


def waivers(text: str) -> list[Waiver]:
    """Rule, file and message of each line that is no comment; a line of another form is an error."""
    lines = [line for line in text.splitlines()[1:] if line and not line.startswith("//")]
    found = []
    for line in lines:
        match = WAIVER.match(line)
        assert match is not None, line
        found.append((match[1], match[2] or "*", match[3] or "*"))
    return found


def matching_nothing(given: list[Waiver], complaints: set[tuple[str, str, str]]) -> list[Waiver]:
    def hits(waiver: Waiver, complaint: tuple[str, str, str]) -> bool:
        return waiver[0] == complaint[0] and all(map(fnmatchcase, complaint[1:], waiver[1:]))

    return [waiver for waiver in given if not any(hits(waiver, complaint) for complaint in complaints)]


@long_run()
@pytest.mark.slow
def test_every_waiver_is_of_something(tiny, smallest, tmp_path, monkeypatch):
    (tmp_path / "none.vlt").write_text("`verilator_config\n")
    complaints = set()

    def complain(verilog: Verilog) -> None:
        verilog.write(tmp_path / verilog.top)
        texts = lint(tmp_path / verilog.top, verilog.top, verilog.sources)
        complaints.update(match.groups() for match in map(COMPLAINT.match, texts) if match)

    monkeypatch.setattr(linter, "WAIVERS", tmp_path / "none.vlt")
    for verilog in (tiny, smallest, emit_design(load_design("flex_tiny"))):
        complain(verilog)
    for name, parameters in BLOCKS:
        kind = block_kind(name)
        complain(emit(build_block(kind, settings(kind, parameters, load_design("tiny"))), origin="a test"))
    given = waivers(WAIVERS.read_text())
    assert matching_nothing(given, complaints) == []
    # One more, and the same under another rule: both are told.
    more = [("UNUSEDSIGNAL", "*", "*'no_such_signal'*"), ("WIDTHTRUNC", *given[-1][1:])]
    assert matching_nothing([*given, *more], complaints) == more
