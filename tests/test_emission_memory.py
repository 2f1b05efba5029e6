"""What tests make the emitter keep is what it would convert."""

import pytest
from amaranth.hdl import Module

import rtl.network.dispatcher as dispatcher
from gen.platform import ModuleEmitter
from gen.verilog import emit, write_module
from rtl.network.dispatcher import Dispatcher
from tests import emission_memory

SIZES = {"pes": 3, "radix": 4, "address_width": 40}


def block(scratch_slots: int = 2) -> Dispatcher:
    return Dispatcher(scratch_slots=scratch_slots, **SIZES)


def test_what_is_kept_is_what_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first emission, one of what was kept, one of another block that has some blocks in common, one without memory."""
    kept = [emit(block(slots), origin="a test").files for slots in (2, 2, 4, 2)]
    monkeypatch.setattr(emission_memory, "unchanged", lambda: False)
    monkeypatch.setattr("gen.verilog.write_module", write_module.__wrapped__)
    anew = {slots: emit(block(slots), origin="a test").files for slots in (2, 4)}
    assert [list(files.items()) for files in kept] == [list(anew[slots].items()) for slots in (2, 2, 4, 2)]
    assert anew[2] != anew[4]


def test_a_block_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = emit(block(), origin="a test").files
    monkeypatch.setattr(Dispatcher, "build", None)  # would be called
    monkeypatch.setattr(emission_memory, "unchanged", lambda: True)
    assert emit(block(), origin="a test").files == before


def test_changed_hardware_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else under a name of a class, or of a module; and after it what was there before."""
    before = emit(block(), origin="a test").files
    build = Dispatcher.build

    def never_idle(self: Dispatcher, platform: object) -> Module:
        m = build(self, platform)
        m.d.comb += self.idle.eq(0)
        return m

    with monkeypatch.context() as changed:
        changed.setattr(Dispatcher, "build", never_idle)
        assert emit(block(), origin="a test").files["dispatcher.sv"] != before["dispatcher.sv"]
    with monkeypatch.context() as changed:
        changed.setattr(dispatcher, "passed", lambda *given: [])
        assert emit(block(), origin="a test").files != before
    assert emit(block(), origin="a test").files == before


def test_to_remember_twice_is_to_remember_once() -> None:
    before = ModuleEmitter._convert, ModuleEmitter.add, ModuleEmitter.__init__
    emission_memory.remember()
    assert (ModuleEmitter._convert, ModuleEmitter.add, ModuleEmitter.__init__) == before
