"""Design files: the shipped ones, what is refused, and every error as one whole line."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from gen import parameters
from gen.design import CONFIGS, Design, DesignError, counterpart, design_names, load_design

ROOT = Path(__file__).parents[2]


def test_shipped_designs_are_what_the_contract_says():
    found = {
        name: (d.pe.count, d.pe.merge_radix, d.buffer.bytes, d.buffer.banks, d.axi.data_bits, d.tiers)
        for name in design_names()
        for d in [load_design(name)]
    }
    everywhere = ("rtl", "model", "golden")
    assert found == {
        "tiny": (2, 4, 8 << 10, 4, 128, everywhere),
        "flex_tiny": (2, 4, 8 << 10, 4, 128, everywhere),
        "flex": (8, 64, 256 << 10, 16, 128, everywhere),
        "flex_edge": (8, 64, 256 << 10, 16, 128, everywhere),
        "sage": (2048, 64, 1 << 20, 32, 512, ("model", "golden")),
        "edge": (8, 64, 256 << 10, 16, 128, everywhere),
        "server": (32, 64, 4 << 20, 32, 512, everywhere),
        "extensor": (128, 64, 30 << 20, 64, 1024, ("model", "golden")),
    }
    stationary = {name: load_design(name).pe for name in ("flex_tiny", "flex", "flex_edge", "sage")}
    sizes = {name: (pe.dataflow, pe.vector, pe.buffer_entries, pe.acf_a) for name, pe in stationary.items()}
    kind = "weight_stationary"
    assert sizes == {
        "flex_tiny": (kind, 2, 16, "csr"),
        "flex": (kind, 4, 128, "csr"),
        "flex_edge": (kind, 1, 128, "csr"),
        "sage": (kind, 8, 128, "csr"),
    }
    server = load_design("server")
    assert (server.clock.mhz, server.dram.bandwidth_gbps) == (1000, 68)


@pytest.mark.parametrize("name", design_names())
def test_files_open_with_prose_and_are_named_as_their_design(name):
    text = (CONFIGS / f"{name}.toml").read_text()
    head = text[: text.index("\n\n")].splitlines()
    assert len(head) >= 3 and all(line.startswith("#") for line in head)
    assert load_design(name).name == name


def test_the_other_engine_has_as_many_macs():
    """`flex_edge` is `edge` with it; what only one engine has is left out of the other's design."""
    named = {"name", "description"}
    edge, flex = load_design("edge"), load_design("flex")
    assert counterpart(edge).model_dump(exclude=named) == load_design("flex_edge").model_dump(exclude=named)
    pe = counterpart(flex).pe
    assert (pe.dataflow, pe.count, pe.vector, pe.acf_a) == ("gustavson", 32, 4, "csr")
    assert counterpart(load_design("flex", ["pe.acf_a=coo", "clock.part=LFE5UM5G-85F"])).clock.part == ""
    assert counterpart(load_design("sage")).pe.count == 16_384
    assert counterpart(load_design("edge", ["memory.records=packed"])).packed


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("edge", ["pe.dataflow=inner", "tiers=['model']"], "pe.dataflow = 'inner': must be one of 'gustavson', "
         "'weight_stationary'"),
        ("flex", ["pe.count=256"], "flex_gustavson: pe.count = 1024: must be at most 256 where tiers has 'rtl'"),
    ],
)  # fmt: skip
def test_designs_without_the_other_engine(name, changes, message):
    with pytest.raises(DesignError) as refused:
        counterpart(load_design(name, changes))
    assert str(refused.value) == message


def test_derived_values():
    tiny, server = load_design("tiny"), load_design("server")
    assert (tiny.lanes, tiny.line_bytes, tiny.sram_lines, tiny.fifo_lines) == (2, 16, 512, 32)
    assert (server.lanes, server.line_bytes, server.sram_lines, server.fifo_lines) == (8, 64, 65536, 1024)
    assert tiny.memory_latency_cycles == 25 and server.memory_latency_cycles == 100
    assert load_design("tiny", ["dram.latency_ns=0"]).memory_latency_cycles == 1
    assert load_design("tiny", ["dram.latency_ns=101"]).memory_latency_cycles == 26
    # The bus carries 64 GB/s at 1 GHz, less than the memory has.
    assert server.dram_bytes_per_cycle == 64
    assert load_design("server", ["dram.bandwidth_gbps=10"]).dram_bytes_per_cycle == 10


def test_changes_are_checked_like_the_file():
    changed = load_design("tiny", ["pe.value=fp32", "pe.count=3", "name=mine", "clock.mhz=12.5"])
    assert (changed.pe.value, changed.pe.count, changed.name, changed.clock.mhz) == ("fp32", 3, "mine", 12.5)


def test_arithmetic_is_the_value_type_and_its_departure():
    assert load_design("tiny").pe.arithmetic == "int32"
    assert load_design("tiny", ["pe.value=int8", "pe.overflow=saturate"]).pe.arithmetic == "int8_saturate"
    assert load_design("tiny", ["pe.value=bf16", "pe.subnormals=flush"]).pe.arithmetic == "bf16_flush"


def test_designs_cannot_be_changed_afterwards():
    with pytest.raises(ValidationError):
        load_design("tiny").pe.count = 4


SECTIONS = "name, description, tiers, pe, coordinate, buffer, axi, converter, tuning, clock, dram, memory"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["buffer.banks=3"], "--set buffer.banks=3: must be a power of two between 1 and 64"),
        (["pe.count=0"], "--set pe.count=0: must be an integer between 1 and 16384"),
        (["pe.count=true"], "--set pe.count=true: must be an integer between 1 and 16384"),
        (["pe.count=2.0"], "--set pe.count=2.0: must be an integer between 1 and 16384"),
        (["pe.count=many"], "--set pe.count=many: must be an integer between 1 and 16384"),
        (["pe.merge_radix=512"], "--set pe.merge_radix=512: must be a power of two between 2 and 256"),
        (
            ["pe.dataflow=weight"],
            "--set pe.dataflow=weight: must be one of 'gustavson', 'outer', 'inner', 'weight_stationary'",
        ),
        (
            ["pe.dataflow=inner", 'tiers=["rtl", "model"]'],
            "--set pe.dataflow=inner: must be one of 'gustavson', 'weight_stationary' where tiers has 'rtl': "
            "the others have no hardware",
        ),
        (
            ["pe.vector=8"],
            "--set pe.vector=8: must be left out: only weight_stationary has it, and pe.dataflow is gustavson",
        ),
        (
            ["pe.dataflow=weight_stationary"],
            "configs/tiny.toml with --set pe.dataflow=weight_stationary: tuning.dynamic = true: must be false where "
            "pe.dataflow is weight_stationary: its tiles are as wide as its PEs",
        ),
        (["pe.vector=3"], "--set pe.vector=3: must be a power of two between 1 and 32"),
        (["pe.buffer_entries=2"], "--set pe.buffer_entries=2: must be an integer between 4 and 1024"),
        (["pe.acf_a=zvc"], "--set pe.acf_a=zvc: must be one of 'csr', 'coo', 'dense'"),
        (["pe.value=double"], "--set pe.value=double: must be one of 'int8', 'int16', 'int32', 'bf16', 'fp32'"),
        (["pe.overflow=clip"], "--set pe.overflow=clip: must be one of 'wrap', 'saturate'"),
        (["pe.subnormals=no"], "--set pe.subnormals=no: must be one of 'keep', 'flush'"),
        (
            ["pe.value=bf16", "pe.overflow=saturate"],
            "--set pe.overflow=saturate: must be 'wrap' where pe.value is bf16: it overflows to infinity",
        ),
        (
            ["pe.value=int8", "pe.subnormals=flush"],
            "--set pe.subnormals=flush: must be 'keep' where pe.value is int8: it has none",
        ),
        (["coordinate.width=16"], "--set coordinate.width=16: must be 32"),
        (["axi.data_bits=64"], "--set axi.data_bits=64: must be one of 128, 256, 512, 1024"),
        (["clock.mhz=nan"], "--set clock.mhz=nan: must be a number between 1 and 10000"),
        (["clock.mhz=0"], "--set clock.mhz=0: must be a number between 1 and 10000"),
        (["tuning.dynamic=1"], "--set tuning.dynamic=1: must be true or false"),
        (["converter.style=c"], "--set converter.style=c: must be one of 'none', 'b', 'm', 'mr'"),
        (["converter.conversions=3"], "--set converter.conversions=3: must be one line of text"),
        (["buffer.bytes=8200"], "--set buffer.bytes=8200: must be a multiple of 4 banks of 16-byte lines"),
        (["buffer.bytes=256"], "--set buffer.bytes=256: must be at least 352: the smallest partitions of A and B"),
        (["buffer.fifo_bytes=8"], "--set buffer.fifo_bytes=8: must be a multiple of the line, 16 bytes"),
        (
            ["buffer.fifo_bytes=48"],
            "--set buffer.fifo_bytes=48: must be between 64 and 7904: the rest holds A and B",
        ),
        (["axi.burst_beats=64", "axi.data_bits=1024"], "--set axi.burst_beats=64: must be at most 32: "
         "AXI bursts stay in 4 KiB"),
        (["pe.coun=2"], "--set pe.coun=2: no such field: must be one of "
         "dataflow, count, merge_radix, value, leaf_lines, queue_lines, overflow, subnormals, "
         "vector, buffer_entries, acf_a (did you mean count?)"),
        (["cache.bytes=2"], f"--set cache.bytes=2: no such field: must be one of {SECTIONS}"),
        (["pe=3"], "--set pe=3: must be a table with dataflow, count, merge_radix, value, leaf_lines, queue_lines, "
         "overflow, subnormals, vector, buffer_entries, acf_a"),
        (["name.first=3"], "--set name.first=3: name has no fields"),
        (["name=two words"], "--set name=two words: must be letters, digits, '-' and '_', beginning with a letter, "
         "at most 64"),
        (["tiers=[]"], "--set tiers=[]: must be one or more different names"),
        (['tiers=["rtl", "fpga"]'], "--set tiers=[\"rtl\", \"fpga\"]: must be one of 'rtl', 'model', 'golden'"),
        (["tiers=3"], "--set tiers=3: must be a list"),
        (["pe.count"], "--set pe.count: must be section.field=value"),
        (["pe.=3"], "--set pe.=3: must be section.field=value"),
        # A value is one value, whatever it looks like.
        (["pe.count=2\nmerge_radix=8"], "--set pe.count=2\nmerge_radix=8: must be an integer between 1 and 16384"),
    ],
)  # fmt: skip
def test_refused_changes(changes, message):
    with pytest.raises(DesignError) as refused:
        load_design("tiny", changes)
    assert str(refused.value) == message
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("banks = 4", "banks = 3", "{path}: buffer.banks = 3: must be a power of two between 1 and 64"),
        ("banks = 4", "", "{path}: buffer.banks: is missing"),
        ("banks = 4", "banks = 4\nways = 2", "{path}: buffer.ways: no such field: must be one of "
         "bytes, banks, fifo_bytes, line_beats"),
        ("[clock]\nmhz = 250", "", "{path}: clock: is missing (a table with mhz, asynchronous_reset, part)"),
        ("banks = 4", "banks = [1, 2]", "{path}: buffer.banks = [1, 2]: must be a power of two between 1 and 64"),
        ("dynamic = true", "dynamic = 1", "{path}: tuning.dynamic = 1: must be true or false"),
        ("bytes = 8192", "bytes = 8193", "{path}: buffer.bytes = 8193: must be a multiple of 4 banks of "
         "16-byte lines"),
        ("mhz = 250", "mhz = '" + "9" * 90 + "'", "{path}: clock.mhz = '" + "9" * 56 + "...: "
         "must be a number between 1 and 10000"),
    ],
)  # fmt: skip
def test_refused_files(tmp_path, old, new, message):
    text = (CONFIGS / "tiny.toml").read_text()
    assert text.count(f"\n{old}") == 1
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(f"\n{old}", f"\n{new}"))
    with pytest.raises(DesignError) as refused:
        load_design(path)
    assert str(refused.value) == message.format(path=path)


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        ("tiny", ["buffer.line_beats=3"], "--set buffer.line_beats=3: must be a power of two between 1 and 8"),
        ("edge", ["axi.data_bits=512", "buffer.line_beats=4"], "--set buffer.line_beats=4: must be at most 2: a line is "
         "128 bytes and a burst at most"),
        ("tiny", ["axi.burst_beats=2", "buffer.line_beats=4"], "--set buffer.line_beats=4: must be at most 2: a line is "
         "128 bytes and a burst at most"),
        ("tiny", ["buffer.bytes=8256", "buffer.line_beats=2"], "--set buffer.bytes=8256: must be a multiple of 4 banks of "
         "32-byte lines"),
    ],
)  # fmt: skip
def test_a_line_is_some_beats(config, changes, message):
    with pytest.raises(DesignError) as refused:
        load_design(config, changes)
    assert str(refused.value) == message


def test_sizes_follow_the_line():
    one, two = load_design("tiny"), load_design("tiny", ["buffer.line_beats=2"])
    assert (two.line_bytes, two.lanes) == (2 * one.line_bytes, 2 * one.lanes)
    assert (two.bus_bytes, two.dram_bytes_per_cycle) == (one.bus_bytes, one.dram_bytes_per_cycle)
    assert (two.sram_lines, two.burst_lines) == (one.sram_lines // 2, one.burst_lines // 2)


def test_a_field_of_the_file_that_a_change_rules_out_is_shown_with_the_change():
    with pytest.raises(
        DesignError, match=r"^configs/tiny\.toml with --set buffer\.bytes=64: buffer\.banks = 4: must be at most 2"
    ):
        load_design("tiny", ["buffer.bytes=64"])


def test_shipped_files_are_called_by_their_path_in_the_tree(monkeypatch, tmp_path):
    (tmp_path / "tiny.toml").write_text((CONFIGS / "tiny.toml").read_text().replace("banks = 4", "banks = 3"))
    monkeypatch.setattr("gen.design.CONFIGS", tmp_path)
    with pytest.raises(DesignError, match=r"^configs/tiny\.toml: buffer\.banks = 3: must be a power of two"):
        load_design("tiny")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name = ", r": not a TOML file \(Invalid value \(at end of document\)\)$"),
        (b"\xff", r": not a TOML file \('utf-8' codec can't decode byte 0xff in position 0: invalid start byte\)$"),
        (b"", r"broken\.toml: name, description, pe, coordinate, buffer, axi, converter, tuning, clock, dram: are missing "
         r"\(with base = \"edge\" a file says only what differs\)$"),
    ],
)  # fmt: skip
def test_files_that_are_no_designs(tmp_path, content, message):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(DesignError, match=message):
        load_design(str(path))


def test_names_that_are_no_designs(tmp_path):
    names = "edge, extensor, flex, flex_edge, flex_tiny, sage, server, tiny"
    with pytest.raises(DesignError) as refused:
        load_design("egde")
    assert str(refused.value) == (
        f"--config egde: no such design: must be one of {names} or a TOML file (did you mean edge?)"
    )
    with pytest.raises(DesignError) as refused:
        load_design(tmp_path)
    assert str(refused.value) == f"--config {tmp_path}: is a folder: must be one of {names} or a TOML file"


def test_hardware_of_a_design_without_any_is_refused():
    with pytest.raises(DesignError) as refused:
        parameters.accelerator(load_design("extensor"))
    assert str(refused.value) == (
        "design extensor: tiers = ['model', 'golden']: has no hardware; it runs in model and golden"
    )


@pytest.mark.parametrize(("lines", "first"), [(1, 8), (4, 32), (16, 64), (64, 64)])
def test_first_leaves_have_more_slots(lines, first):
    design = load_design("tiny", ["pe.merge_radix=16", f"pe.leaf_lines={lines}"])
    slots = [design.leaf_slots(n) for n in range(16)]
    assert slots == [first] * 4 + [lines] * 12
    assert design.short_leaf_lines == 2 * lines


def test_every_parameter_of_the_design_reaches_the_hardware():
    small = parameters.accelerator(load_design("tiny"))
    changes = {
        "pes": "pe.count=3", "radix": "pe.merge_radix=8", "value": "pe.value=fp32", "leaf_lines": "pe.leaf_lines=8",
        "queue_lines": "pe.queue_lines=9", "banks": "buffer.banks=8", "sram_lines": "buffer.bytes=16384",
        "fifo_lines": "buffer.fifo_bytes=1024", "address_width": "axi.address_bits=48",
        "outstanding": "axi.outstanding=7", "burst_beats": "axi.burst_beats=8",
    }  # fmt: skip
    for name, change in changes.items():
        changed = parameters.accelerator(load_design("tiny", [change]))
        assert {key for key in small if small[key] != changed[key]} == {name}
    wider = parameters.accelerator(load_design("tiny", ["axi.data_bits=256"]))
    assert {key for key in small if small[key] != wider[key]} == {"lanes", "sram_lines", "fifo_lines"}


def test_reading_a_design_needs_no_hardware_library():
    code = "import sys, gen.design; print(sorted({'amaranth', 'numpy'} & {m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_equal_designs_are_equal():
    assert load_design("tiny") == load_design("tiny", ["pe.count=2"]) != load_design("tiny", ["pe.count=3"])
    assert isinstance(hash(load_design("tiny")), int) and isinstance(load_design("tiny"), Design)


@pytest.mark.parametrize("dataflow", ["outer", "inner"])
def test_dataflows_without_hardware_run_in_the_other_tiers(dataflow):
    assert load_design("edge", [f"pe.dataflow={dataflow}"]).tiers == ("model", "golden")
    assert load_design("edge").tiers == ("rtl", "model", "golden")
    assert load_design("extensor", [f"pe.dataflow={dataflow}"]).tiers == ("model", "golden")


# Bases ---------------------------------------------------------------------------------------------------------------


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_file_over_a_base_says_what_differs(tmp_path):
    path = written(tmp_path, "wide-one.toml", 'base = "edge"\n[pe]\ncount = 4\n[memory]\nrecords = "packed"\n')
    own, edge = load_design(path), load_design("edge")
    assert (own.pe.count, own.memory.records, own.name) == (4, "packed", "wide-one")
    assert own.description == "edge, but pe.count = 4, memory.records = 'packed'"
    changes = ["pe.count=4", "memory.records=packed", "name=wide-one", f"description={own.description}"]
    assert own == load_design("edge", changes) != edge


def test_a_base_may_have_a_base_beside_it(tmp_path, monkeypatch):
    """Bases that are files are found beside the file that names them, wherever the command runs."""
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    written(tmp_path, "first.toml", 'base = "tiny"\nname = "first"\ndescription = "the first"\n[pe]\ncount = 3\n')
    path = written(tmp_path, "second.toml", 'base = "first.toml"\n[clock]\nmhz = 100\n')
    found = load_design(path)
    assert (found.pe.count, found.clock.mhz, found.buffer) == (3, 100, load_design("tiny").buffer)
    assert (found.name, found.description) == ("second", "first, but clock.mhz = 100")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base = 3\n", "{path}: base = 3: must be the name of a design or of a TOML file"),
        ('base = "mine.toml"\n', "{path}: base = 'mine.toml': must be another design: these files are each other's base"),
        ('base = "egde"\n', "{path}: base = 'egde': no such design: must be one of edge, extensor, flex, flex_edge, "
         "flex_tiny, sage, server, tiny or a TOML file "
         "(did you mean edge?)"),
        # Everything at once, the file named once.
        ('base = "edge"\nnamed = 1\n[pe]\ncount = 0\nmerge_radius = 4\n[clock]\nmhz = "fast"\n',
         "{path}: pe.count = 0: must be an integer between 1 and 16384; pe.merge_radius: no such field: must be one of dataflow, "
         "count, merge_radix, value, leaf_lines, queue_lines, overflow, subnormals, "
         "vector, buffer_entries, acf_a (did you mean merge_radix?); "
         "clock.mhz = 'fast': must be a number between 1 and 10000; "
         f"named: no such field: must be one of {SECTIONS} (did you mean name?)"),
        # Fields that do not fit together, too.
        ('base = "edge"\ntiers = []\n[pe]\nsubnormals = "flush"\nvalue = "int8"\n[axi]\nburst_beats = 256\ndata_bits = 1024\n',
         "{path}: pe.subnormals = 'flush': must be 'keep' where pe.value is int8: it has none; "
         "axi.burst_beats = 256: must be at most 32: AXI bursts stay in 4 KiB; "
         "tiers = []: must be one or more different names"),
        # The field stands in the base.
        ('base = "edge"\n[axi]\ndata_bits = 1024\n[buffer]\nbanks = 64\nfifo_bytes = 256\nbytes = 8192\n',
         "{path}: buffer.banks = 64: must be at most 32: two lines a bank at least"),
        ('base = "edge"\n[pe]\nvalue = "int8"\n[buffer]\nbytes = 4096\n',
         "configs/edge.toml under {path}: buffer.fifo_bytes = 4096: must be between 64 and 3808: the rest holds A and B"),
    ],
)  # fmt: skip
def test_refused_files_over_a_base(tmp_path, text, message):
    path = written(tmp_path, "mine.toml", text)
    with pytest.raises(DesignError) as refused:
        load_design(path)
    assert str(refused.value) == message.format(path=path)


def test_files_that_are_each_others_base_are_refused(tmp_path):
    first = written(tmp_path, "first.toml", 'base = "second.toml"\n')
    written(tmp_path, "second.toml", 'base = "first.toml"\n')
    with pytest.raises(DesignError, match=r"second\.toml: base = 'first\.toml': must be another design"):
        load_design(first)
