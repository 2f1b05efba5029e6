"""What the constraint files ask of a tool: the exact period of a frequency, and each port's share of it."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from fractions import Fraction

import pytest

from gen.constraints import sdc, xdc
from gen.design import load_design

INPUTS = ("aclk", "aresetn", "m_axi_arready", *(f"input{n}" for n in range(40)))
OUTPUTS = ("irq", "m_axi_araddr", *(f"output{n}" for n in range(40)))
# By hand: 1000 / MHz, cut off behind the picoseconds. Rounded up, a clock at the period would miss its frequency.
PERIODS = {
    "1": "1000.000",
    "3": "333.333",
    "33.3": "30.030",
    "133.333": "7.500",
    "150": "6.666",
    "200": "5.000",
    "250": "4.000",
    "300": "3.333",
    "333": "3.003",
    "333.3": "3.000",
    "600": "1.666",
    "666.6": "1.500",
    "700": "1.428",
    "999": "1.001",
    "1000": "1.000",
    "1500": "0.666",
    "10000": "0.100",
}


def design(mhz: str):
    return load_design("tiny", [f"clock.mhz={mhz}"])


def words(line: str) -> list[str]:
    """A Tcl command's words: those in brackets and braces are one, without their outer braces."""
    found = re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^\s\[\]{}]+", line)
    return [word[1:-1] if word.startswith("{") else word for word in found]


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a Tcl text without variables, comments left out; one goes on until its brackets are closed."""
    held = ""
    for line in text.splitlines():
        if line.startswith("#") and not held:
            continue
        held = f"{held} {line}" if held else line
        if held.count("[") == held.count("]") and held.count("{") == held.count("}"):
            if held.strip():
                yield words(held)
            held = ""
    assert not held, f"never closed: {held}"


def ports(word: str) -> list[str]:
    found = re.fullmatch(r"\[get_ports \{?([^{}]*)\}?\]", word)
    assert found, word
    return found[1].split()


@pytest.mark.parametrize(("mhz", "period"), PERIODS.items())
def test_period_of_both_files_is_exact(mhz, period):
    found = design(mhz)
    for text in (sdc(found, top="accelerator", inputs=INPUTS, outputs=OUTPUTS), xdc(found, top="accelerator")):
        (clock,) = [words for words in commands(text) if words[0] == "create_clock"]
        assert clock == ["create_clock", "-name", "aclk", "-period", period, "[get_ports aclk]"]
    # The table itself: not a picosecond of the period is lost, and none is too many.
    exact = 1000 / Fraction(mhz)
    assert Fraction(period) <= exact < Fraction(period) + Fraction(1, 1000)


@pytest.mark.parametrize("mhz", ["33.3", "333", "1500"])
def test_every_port_has_its_share_of_the_period(mhz):
    """A twentieth of the period is uncertain, two fifths belong to what is connected."""
    period = Fraction(PERIODS[mhz])
    found = list(commands(sdc(design(mhz), top="accelerator", inputs=INPUTS, outputs=OUTPUTS)))
    assert [words[0] for words in found] == [
        "create_clock",
        "set_clock_uncertainty",
        "set_input_delay",
        "set_output_delay",
    ]
    _, uncertainty, inputs, outputs = found
    assert uncertainty[2:] == ["[get_clocks aclk]"]
    assert abs(Fraction(uncertainty[1]) - period / 20) <= Fraction(1, 2000)
    for command, named in ((inputs, INPUTS[1:]), (outputs, OUTPUTS)):
        assert command[2:4] == ["-clock", "aclk"] and len(command) == 5
        assert abs(Fraction(command[1]) - period * 2 / 5) <= Fraction(1, 2000)
        assert ports(command[4]) == list(named)


def test_tcl_itself_reads_both_files(tmp_path):
    """Where there is one: a Tcl that knows the commands alone, and neither collections nor arithmetic."""
    interpreter = shutil.which("tclsh")
    names = ("create_clock", "set_clock_uncertainty", "set_input_delay", "set_output_delay", "get_clocks", "get_ports")
    texts = sdc(design("333"), top="accelerator", inputs=INPUTS, outputs=OUTPUTS) + xdc(
        design("333"), top="accelerator"
    )
    assert {words[0] for words in commands(texts)} <= set(names)
    if interpreter is None:
        return
    known = [f"proc {name} args {{ puts [list {name} {{*}}$args]; return {name} }}" for name in names]
    (tmp_path / "read.tcl").write_text("\n".join([*known, texts]), encoding="utf-8")
    said = subprocess.run([interpreter, "read.tcl"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert said.stdout.count("create_clock -name aclk -period 3.003 get_ports") == 2 and said.stderr == ""


def test_a_reset_that_comes_at_any_time_has_no_timing():
    asynchronous = load_design("tiny", ["clock.asynchronous_reset=true"])
    found = list(commands(sdc(asynchronous, top="accelerator", inputs=INPUTS, outputs=OUTPUTS)))
    (inputs,) = [words for words in found if words[0] == "set_input_delay"]
    assert ports(inputs[4]) == list(INPUTS[2:])
    for command in (found, list(commands(xdc(asynchronous, top="accelerator")))):
        assert [words[1:] for words in command if words[0] == "set_false_path"] == [["-from", "[get_ports aresetn]"]]
