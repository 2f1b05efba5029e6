"""What the units of a machine say of themselves, against the register map."""

import gc
import warnings
from collections.abc import Iterator

import pytest
from amaranth.hdl import Const, Module, Signal, UnusedElaboratable
from amaranth.sim import Simulator, SimulatorContext

from gen.design import load_design
from gen.elaborate import ENGINES, accelerator
from rtl.lib.unit import Fault
from rtl.machine.events import layout, show_events, sums
from rtl.machine.faults import ERROR_CODES, report_faults
from rtl.machine.machine import Machine
from rtl.regs.counter_list import COUNTERS
from rtl.regs.map import UNITS

# Parameters that an engine has beside those of all.
OF_ITS_OWN = {"weight_stationary": {"vector": 2, "entries": 16}}


@pytest.fixture(autouse=True)
def only_looked_at() -> Iterator[None]:
    """What is made here is not built."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        yield
        gc.collect()


@pytest.fixture
def machine() -> Machine:
    return accelerator(load_design("tiny")).machine


def test_every_bit_of_waiting_is_somebodys(machine: Machine) -> None:
    units = (machine.a, machine.b, machine.c, machine.gate, machine.control, machine.memory, machine.tile_engine)
    assert sorted(name for unit in units for name in unit.activity()) == sorted(UNITS)


def test_every_counter_is_shown_something(machine: Machine) -> None:
    assert [name.upper() for name in machine.steps] == [counter.name for counter in COUNTERS]
    assert [name for name, step in machine.steps.items() if isinstance(step, Const)] == ["stall_conversion"]


def test_events_are_the_steps() -> None:
    steps = {"cycles": Signal(), "macs": Signal(6)}
    shown = Signal(layout(steps))
    dut = Module()
    show_events(dut, steps, shown)

    async def bench(ctx: SimulatorContext) -> None:
        for cycles, macs in ((0, 0), (1, 0), (0, 41), (1, 63)):
            ctx.set(steps["cycles"], cycles)
            ctx.set(steps["macs"], macs)
            assert (ctx.get(shown.cycles), ctx.get(shown.macs)) == (cycles, macs)

    simulation = Simulator(dut)
    simulation.add_testbench(bench)
    simulation.run()


def test_names_that_the_register_map_does_not_have_are_refused(machine: Machine) -> None:
    with pytest.raises(ValueError, match="^There is no performance counter 'jokes'$"):
        sums(COUNTERS, [{"jokes": Const(1)}])
    with pytest.raises(ValueError, match="^There is no error 'tired'$"):
        report_faults(Module(), machine.control, [Fault("tired", Const(1))])
    assert "none" in ERROR_CODES


@pytest.mark.parametrize("dataflow", ENGINES)
def test_an_engine_counts_multiplications(dataflow: str) -> None:
    """The machine's watchdog looks at them."""
    made = ENGINES[dataflow](
        pes=2, radix=2, lanes=2, address_width=40, line_address_width=6, leaf_lines=2, queue_lines=2, scratch_slots=2,
        value="int32", **OF_ITS_OWN.get(dataflow, {}),
    )  # fmt: skip
    assert "macs" in made.events()
    assert set(made.activity()) <= set(UNITS)
