"""Emitted modules are for people: few nets without a name, states by name, short names; and each does what its RTLIL says."""

import re

import pytest
from amaranth.hdl import Module, Shape, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from gen.design import load_design
from gen.elaborate import accelerator
from gen.keywords import KEYWORDS
from gen.platform import ModuleEmitter
from gen.verilog import converted, emit
from gen.writer import write_module
from gen.yosys import YosysError, run_jobs
from rtl.lib.block import Block
from rtl.lib.stream import StreamQueue, StreamRegister, StreamSkid
from tests.gen.blocks import Lookup, Pair
from tests.gen.proofs import cell_proof, initial_values, proof


def declared(text: str) -> list[str]:
    return re.findall(r"(?m)^  (?:input |output )?\s*logic (?:\[[^]]+\] )?(\w+)", text)


def bodies(verilog) -> dict[str, str]:
    return {name: re.sub(r"//.*", "", verilog.files[name]) for name in verilog.sources}


def test_every_module_of_tiny_does_what_its_rtlil_says(tiny, tmp_path):
    modules = {module.name: module for module in tiny.modules}
    own = [module for module in tiny.modules if not module.parameters]
    assert len(own) > 70
    run_jobs([proof(module, modules, tmp_path / module.name) for module in own])
    for module in own:
        text = tiny.files[f"{module.verilog}.sv"]
        begins = dict(re.findall(r"(?m)^.* logic (?:\[[^]]+\] )?(\w+) = (\S+?)[;,]?$", text))
        for name, value in initial_values(module).items():
            given = begins.get(name)
            if given is not None and "'" in given:
                base = 16 if "'h" in given else 10
                assert int(re.split(r"'[hdb]", given)[1], base) == value, (module.name, name)


@pytest.mark.parametrize(
    "block",
    [
        StreamQueue(shape=9, depth=1), StreamQueue(shape=3, depth=2), StreamQueue(shape=17, depth=5),
        StreamQueue(shape=8, depth=16), StreamQueue(shape=9, depth=3, block_memory=True),
        StreamQueue(shape=33, depth=64, block_memory=True), StreamQueue(shape=1, depth=6, block_memory=True),
        StreamRegister(shape=1), StreamRegister(shape=9), StreamRegister(shape=105),
        StreamSkid(shape=1), StreamSkid(shape=9), StreamSkid(shape=105),
    ],
    ids=lambda block: block.module_name,
)  # fmt: skip
def test_modules_for_all_sizes_do_what_their_source_says(block, tmp_path):
    top, _ = converted(block)
    assert top.parameters
    run_jobs([cell_proof(top, tmp_path)])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("high + 32'd1", "high + 32'd2"), ("high <= 32'd0", "high <= 32'd1"), ("assign", "assign open = 1'b0;\n  assign")],
)
def test_a_proof_finds_what_is_wrong(right, wrong, tmp_path):
    """Each other than the first two changes nothing: it is proved."""
    top, modules = converted(Odd())
    text = write_module(top.rtlil, {}).text
    assert right in text
    changed = text.replace(right, wrong, 1)
    if "open" in wrong:
        run_jobs([proof(top, modules, tmp_path, changed)])
        return
    with pytest.raises(YosysError, match="unproven"):
        run_jobs([proof(top, modules, tmp_path, changed)])


class Odd(Block):
    """All that widths, signs, parts and conditions can be."""

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(signed(7)),
                "b": In(5),
                "c": In(3),
                "o": Out(14),
                "p": Out(9),
                "high": Out(32),
                "q": Out(4),
                "less": Out(7),
            }
        )

    def build(self, platform) -> Module:
        m = Module()
        narrow = Signal(signed(4))
        bits = Signal(8)
        m.d.comb += [narrow.eq(self.a - self.b), self.o.eq((self.a * narrow) ^ (self.b << self.c))]
        m.d.comb += [self.p.eq((self.a >> self.c) + (self.b + self.c)[1:4]), bits[0].eq(self.b[0])]
        m.d.comb += [bits[n + 1].eq(bits[n] ^ self.a[n]) for n in range(7)]
        with m.If((self.a < narrow) & (self.b == 0)):
            m.d.sync += self.high.eq(self.high + 1)
        with m.Elif(bits.bit_select(self.c, 2) == 2):
            with m.Switch(self.b):
                with m.Case("1--01"):
                    m.d.sync += self.high.eq(-self.a)
                with m.Case("0----", "-1---"):
                    pass
                with m.Default():
                    m.d.sync += self.high[4:9].eq(self.b)
        m.d.comb += [self.q.eq((bits >> self.c)[2:6]), self.less.eq(-self.c)]
        with m.FSM(name="walk"):
            with m.State("REST"):
                with m.If(self.b.any()):
                    m.next = "GO"
            with m.State("GO"):
                m.d.comb += self.q.eq(bits[4:])
                m.next = "TURN"
            with m.State("TURN"):
                with m.If(self.c.all()):
                    m.next = "REST"
        return m


def test_widths_signs_and_parts_are_those_of_the_source(tmp_path):
    top, modules = converted(Odd())
    run_jobs([proof(top, modules, tmp_path)])


def test_states_go_by_their_names():
    text = emit(Odd(), origin="a test").files["odd.sv"]
    assert re.findall(r"localparam logic \[1:0\] (\w+) = (\S+);", text) == [
        ("REST", "2'd0"),
        ("GO", "2'd1"),
        ("TURN", "2'd2"),
    ]
    assert "walk_state <= TURN;" in text and "case (walk_state)" in text and re.search(r"(?m)^ +GO: ", text)
    assert not re.search(r"walk_state (<=|==|!=) 2'", text)


def test_nets_have_names(tiny):
    """At most one in five is called by a number; today none is."""
    names = [name for text in bodies(tiny).values() for name in declared(text)]
    assert len(names) > 3000
    assert sum(re.fullmatch(r"_?\d+_?|_\w*\d+_", name) is not None for name in names) <= len(names) / 5
    # Nor is any called as Amaranth calls those that it finds no name for.
    assert [name for name in names if re.fullmatch(r"(signal|like)(_\d+)?(__\w+)?", name)] == []
    assert not any("$" in name for name in names)
    assert not any("\\" in text for text in bodies(tiny).values())


def test_no_name_is_a_keyword(tiny):
    for text in bodies(tiny).values():
        assert not KEYWORDS & set(declared(text))


def test_module_names_are_short(tiny):
    names = [name.removesuffix(".sv") for name in tiny.sources]
    assert max(map(len, names)) <= 40
    assert {"accelerator", "machine", "gustavson_pe", "register_file", "stream_queue"} <= set(names)


def test_names_tell_only_what_differs():
    class Pair(Block):
        def __init__(self) -> None:
            super().__init__({"i": In(4), "o": Out(4)})

        def build(self, platform) -> Module:
            m = Module()
            for n, depth in enumerate((4, 6)):
                m.submodules[f"lookup{n}"] = lookup = Lookup(init=(n,) * depth)
                m.d.comb += lookup.enable.eq(1)
            return m

    emitter = ModuleEmitter()
    with pytest.raises(ValueError, match="Two different blocks are both called lookup"):
        emitter.add(Pair())


def test_queues_and_registers_are_one_module_each(tiny):
    kinds = {"stream_queue": 20, "stream_register": 10, "stream_skid": 5}
    for name, fewest in kinds.items():
        assert sum(source.startswith(name) for source in tiny.sources) == 1
        builds = {module.parameters for module in tiny.modules if module.verilog == name}
        assert len(builds) > fewest
        used = [text for text in bodies(tiny).values() if re.search(rf"(?m)^  {name} #\(\.WIDTH\(\d+\)", text)]
        assert used


def test_ports_are_declared_where_they_are_named(tiny):
    for name, text in bodies(tiny).items():
        head = text[text.index("module ") : text.index(");")]
        assert re.search(r"(?m)^  (input |output) logic ", head), name
        assert not re.search(r"(?m)^  (input|output) .*;", text), name


def leaves(shape, name: str) -> list[tuple[str, int]]:
    """Name and width of each part of a payload that has no parts."""
    if isinstance(shape, type) and issubclass(shape, data.Struct):
        shape = shape.as_shape()
    if isinstance(shape, data.StructLayout):
        return [leaf for key, part in shape.members.items() for leaf in leaves(part, f"{name}__{key}")]
    if isinstance(shape, data.ArrayLayout):
        return [leaf for n in range(shape.length) for leaf in leaves(shape.elem_shape, f"{name}__{n}")]
    return [(name, Shape.cast(shape).width)]


def test_ports_are_plain_vectors_with_names(tiny):
    """Each is one field, element or number of its block's signature, and no table says what else it holds."""
    widest = 0
    split = 0
    for module in tiny.modules:
        text = tiny.files[f"{module.verilog}.sv"]
        assert "lowest bit first" not in text
        if module.parameters:
            continue
        head = text[text.index("module ") : text.index(");")]
        found = [(name, int(high or 0) + 1) for high, name in re.findall(r"logic (?:\[(\d+):0\] )?(\w+)", head)]
        expected = []
        for path, member, _ in module.block.signature.flatten(module.block):
            parts = leaves(member.shape, "__".join(map(str, path)))
            split += len(parts) > 1
            expected += parts
        assert [port for port in found if port not in (("clk", 1), ("rst", 1))] == expected, module.name
        widest = max(widest, *(width for _, width in found))
    assert split > 400
    assert widest == 160, "a line of positions, and the word before it"


def test_fields_that_ask_the_same_are_one_process(tmp_path):
    class Chooser(Block):
        """Takes one of two pairs."""

        def __init__(self) -> None:
            super().__init__({"a": In(Pair), "b": In(Pair), "take": In(2), "o": Out(Pair)})

        def build(self, platform) -> Module:
            m = Module()
            m.d.comb += self.o.eq(self.a)
            with m.If(self.take[0]):
                m.d.comb += self.o.eq(self.b)
                with m.If(self.take[1]):
                    m.d.comb += self.o.low.eq(self.a.low + 1)
            with m.If(self.take == 3):
                m.d.comb += self.o.high.eq(7)
            return m

    top, modules = converted(Chooser())
    text = write_module(top.rtlil, {}).text
    assert re.findall(r"(?m)^    o__\w+ = a__\w+;$", text) == ["    o__low = a__low;", "    o__high = a__high;"]
    run_jobs([proof(top, modules, tmp_path)])


@pytest.mark.parametrize(
    "changes", [["pe.value=fp32"], ["pe.count=3", "pe.merge_radix=8", "axi.data_bits=512"]], ids=str
)
def test_other_designs_have_short_names_too(changes):
    _, modules = converted(accelerator(load_design("tiny", changes)))
    assert max(map(len, modules)) <= 40
