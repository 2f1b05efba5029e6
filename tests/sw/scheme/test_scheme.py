"""The scheme: what is legal, what is said when it is not, and that JSON brings it back."""

import json
from dataclasses import MISSING, fields, replace

import pytest

from gen.design import load_design
from sw.golden.partition import Partition
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.shares import default_partition
from sw.scheme.terms import BUFFERING, ORDERS, STREAMING
from tests.sw.cost.machines import EDGE, SMALLEST, TINY

SHAPE = (100, 80, 60)
LARGEST = "9223372036854775807"
GOOD = Scheme(
    policy="hand",
    order="ijk",
    T_i=100,
    T_j=40,
    T_k=30,
    buffer_bytes={"A": 256, "B": 7936, "C": 0},
    fifo_bytes={"A": 64, "B": 512},
    mode={"A": STREAMING, "B": BUFFERING, "C": STREAMING},
    seconds=0.25,
    predicted={"cycles": 10, "dram_bytes": 2000},
    alternatives=[{"order": "ikj", "T_i": 100, "T_j": 80, "T_k": 15, "cycles": 11, "dram_bytes": 1900}],
)


def test_json_brings_it_back():
    assert Scheme.from_json(GOOD.to_json()) == GOOD
    assert json.loads(GOOD.to_json())["buffer_bytes"] == {"A": 256, "B": 7936, "C": 0}


# Values that no field has by default and that no two fields share; the loads that go with tiles and those without.
STREAMED = {"A": BUFFERING, "B": STREAMING, "C": BUFFERING}
UNUSUAL = {
    "policy": "somebody's",
    "order": "kji",
    "T_i": 11,
    "T_j": 12,
    "T_k": 13,
    "buffer_bytes": {"A": 21, "B": 22, "C": 23},
    "fifo_bytes": {"A": 31, "B": 32},
    "mode": STREAMED,
    "tuning": True,
    "tiles": [[0, 11, 0, 12, 41, 42], [11, 15, 0, 12, 43, 44]],
    "load": "used",
    "strips": 0,
    "row_order": "greedy",
    "partial_rows": "joined",
    "scratch_bytes": 24,
    "seconds": 0.1 + 0.2,
    "predicted": {"cycles": 51, "dram_bytes": 2**53 + 1},
    "alternatives": [
        {"order": "ikj", "T_i": 61, "T_j": 62, "T_k": 63, "mode": STREAMED, "tuning": True, "load": "used"},
        {"policy": "another", "predicted": {"cycles": 64, "dram_bytes": 65}, "share": 0.7},
    ],
}


# Strips go with a list, and tiles with neither.
STRIPS = {"load": "list", "tiles": [], "strips": 71}


@pytest.mark.parametrize(
    "change",
    [{}, STRIPS, {"load": "list", "tiles": []}, {"mode": {"A": STREAMING, "B": BUFFERING, "C": BUFFERING}}],
    ids=["used", "strips", "list", "other modes"],
)
def test_json_brings_back_what_is_not_the_default(change, tmp_path):
    """The fields are those of the class, so that a new one is missed here."""
    wanted = UNUSUAL | change
    unusual = Scheme(**wanted)
    assert set(wanted) == {item.name for item in fields(Scheme)}
    assert list(json.loads(unusual.to_json())) == list(wanted), "keys keep their order"
    for item in fields(Scheme):
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        if item.name not in {"strips"} | set(change):
            assert getattr(unusual, item.name) != default, item.name
    assert json.loads(unusual.to_json()) == wanted
    read = Scheme.from_json(unusual.to_json())
    assert read == unusual and read.to_json() == unusual.to_json()
    file = tmp_path / "scheme.json"
    file.write_text(unusual.to_json() + "\n", encoding="utf-8")
    from_file = Scheme.from_json(file.read_text(encoding="utf-8"))
    for item in fields(Scheme):
        assert getattr(from_file, item.name) == getattr(read, item.name) == wanted[item.name], item.name


@pytest.mark.parametrize("name", [item.name for item in fields(Scheme)])
def test_each_field_is_read_from_json(name):
    """Alone: all the others are those of another scheme."""
    needs = {"load": {"tiles"}, "tiles": {"load"}, "strips": {"load"}}.get(name, set())
    unusual = UNUSUAL | (STRIPS if name == "strips" else {})
    document = json.loads(GOOD.to_json()) | {other: unusual[other] for other in {name} | needs}
    read = Scheme.from_dict(document)
    assert getattr(read, name) == unusual[name] != getattr(GOOD, name)
    assert {item.name for item in fields(Scheme) if getattr(read, item.name) != getattr(GOOD, item.name)} == {
        name
    } | needs


def test_defaults_may_be_absent_from_json():
    document = json.loads(GOOD.to_json())
    for name in ("tuning", "partial_rows", "scratch_bytes", "seconds", "predicted", "alternatives"):
        del document[name]
    read = Scheme.from_dict(document)
    assert read.partial_rows == "carried" and not read.joins
    assert read.scratch_bytes == 0
    assert read.tuning is False
    assert (read.seconds, read.predicted, read.alternatives) == (0.0, {}, [])
    assert (read.cycles, read.dram_bytes) == (None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": "iij"}, "scheme: order = 'iij': must be one of ijk, ikj, jik, jki, kij, kji"),
        ({"T_i": 0}, "scheme: T_i = 0: must be an integer of at least 1"),
        ({"T_k": 1.5}, "scheme: T_k = 1.5: must be an integer of at least 1"),
        ({"T_j": True}, "scheme: T_j = True: must be an integer of at least 1"),
        (
            {"buffer_bytes": {"A": 1}},
            "scheme: buffer_bytes = {'A': 1}: must be an object with exactly the keys A, B, C",
        ),
        ({"fifo_bytes": {"A": -1, "B": 2}}, "scheme: fifo_bytes.A = -1: must be an integer of at least 0"),
        (
            {"mode": {"A": "x", "B": STREAMING, "C": STREAMING}},
            "scheme: mode.A = 'x': must be streaming or buffering",
        ),
        ({"tuning": 1}, "scheme: tuning = 1: must be true or false"),
        ({"seconds": -1}, "scheme: seconds = -1: must be a number of seconds, at least 0"),
        ({"policy": ""}, "scheme: policy = '': must be a name"),
        ({"predicted": {"cycles": -1}}, "scheme: predicted.cycles = -1: must be an integer of at least 0"),
        ({"alternatives": {}}, "scheme: alternatives = {}: must be a list of objects"),
        ({"alternatives": [3]}, "scheme: alternatives[0] = 3: must be an object"),
        ({"alternatives": [{"predicted": 5}]}, "scheme: alternatives[0].predicted = 5: must be an object"),
        ({"alternatives": [{}, {"predicted": None}]}, "scheme: alternatives[1].predicted = None: must be an object"),
        (
            {"alternatives": [{"predicted": {"cycles": "x"}}]},
            "scheme: alternatives[0].predicted.cycles = 'x': must be an integer of at least 0",
        ),
        (
            {"alternatives": [{"cycles": "abc"}]},
            "scheme: alternatives[0].cycles = 'abc': must be an integer of at least 0",
        ),
        ({"alternatives": [{"T_j": 0}]}, "scheme: alternatives[0].T_j = 0: must be an integer of at least 1"),
        (
            {"alternatives": [{"order": ["i"]}]},
            "scheme: alternatives[0].order = ['i']: must be one of ijk, ikj, jik, jki, kij, kji",
        ),
        (
            {"alternatives": [{"mode": None}]},
            "scheme: alternatives[0].mode = None: must be an object with exactly the keys A, B, C",
        ),
        (
            {"alternatives": [{"windows": [2]}]},
            "scheme: alternatives[0].windows = [2]: must be a name, true, false or a number of at most "
            "9223372036854775807",
        ),
        (
            {"predicted": {"cycles": 2**63}},
            "scheme: predicted.cycles = 9223372036854775808: must be at most " + LARGEST,
        ),
        (
            {"T_i": 10**400},
            f"scheme: T_i = 1{'0' * 17}...{'0' * 19}: must be at most {LARGEST}",
        ),
        ({"seconds": 10**400}, f"scheme: seconds = 1{'0' * 17}...{'0' * 19}: must be a number of seconds, at least 0"),
    ],
)
def test_a_malformed_field_is_named(change, message):
    document = json.loads(GOOD.to_json()) | change
    with pytest.raises(SchemeError) as caught:
        Scheme.from_dict(document)
    assert str(caught.value) == message


def test_unknown_and_missing_fields_are_named():
    document = json.loads(GOOD.to_json())
    with pytest.raises(SchemeError, match="^scheme: colour = 'red': must be absent: the fields are order, T_i,"):
        Scheme.from_dict(document | {"colour": "red"})
    del document["T_k"]
    with pytest.raises(SchemeError, match="^scheme: T_k = None: must be present$"):
        Scheme.from_dict(document)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000])
def test_other_documents_are_refused_in_one_line(text):
    with pytest.raises(SchemeError, match="^scheme: document = ") as caught:
        Scheme.from_json(text)
    assert "\n" not in str(caught.value)


# Parts of rows are joined by the last k step.
JOINED = {"partial_rows": "joined"}


def test_legal_schemes_pass():
    replace(GOOD, partial_rows="joined", T_k=2).validate(TINY, *SHAPE)
    GOOD.validate(TINY, *SHAPE)
    every = replace(GOOD, mode=dict.fromkeys("ABC", BUFFERING), buffer_bytes={"A": 1024, "B": 4096, "C": 2048})
    every.validate(TINY, *SHAPE)
    for order in ORDERS:
        replace(every, order=order, mode=GOOD.mode | {"A": BUFFERING}).validate(TINY, *SHAPE)
    replace(GOOD, T_j=80, mode=dict.fromkeys("ABC", STREAMING)).validate(TINY, *SHAPE)


@pytest.mark.parametrize(
    ("change", "field", "allowed"),
    [
        ({"T_k": 61}, "T_k", "from 1 to K = 60"),
        ({"T_i": 101}, "T_i", "from 1 to I = 100"),
        ({"T_j": 81}, "T_j", "from 1 to J = 80"),
        ({"buffer_bytes": {"A": 256, "B": 7928, "C": 0}}, "buffer_bytes.B", "a multiple of the line size 16"),
        ({"fifo_bytes": {"A": 64, "B": 500}}, "fifo_bytes.B", "a multiple of the line size 16"),
        ({"buffer_bytes": {"A": 256, "B": 7936, "C": 16}}, "buffer_bytes", "together at most the buffer's 8192 bytes"),
        ({"buffer_bytes": {"A": 240, "B": 7936, "C": 0}}, "buffer_bytes.A", "at least 256"),
        ({"fifo_bytes": {"A": 48, "B": 512}}, "fifo_bytes.A", "from 64 to the partition's 256"),
        ({"fifo_bytes": {"A": 64, "B": 48}}, "fifo_bytes.B", "from 64 to the partition's 7936"),
        ({"buffer_bytes": {"A": 256, "B": 752, "C": 0}}, "buffer_bytes.B", "at least 768: metadata of 30 rows"),
        (
            {"mode": dict.fromkeys("AB", BUFFERING) | {"C": STREAMING}, "buffer_bytes": {"A": 800, "B": 4096, "C": 0}},
            "buffer_bytes.A",
            "at least 816: metadata of 100 rows",
        ),
        (JOINED | {"T_k": 1}, "T_k", "at least 2 where partial_rows is joined"),
        (JOINED | {"T_j": 80, "T_k": 60, "load": "list"}, "partial_rows", "carried where load is list"),
        (
            JOINED | {"mode": dict.fromkeys("ABC", BUFFERING), "buffer_bytes": {"A": 1024, "B": 4096, "C": 1664}},
            "partial_rows",
            "carried where mode.C is buffering",
        ),
        ({"mode": dict.fromkeys("ABC", STREAMING)}, "mode.B", "buffering while T_j = 40 is less than J = 80"),
        (
            {"order": "kij", "mode": {"A": STREAMING, "B": BUFFERING, "C": BUFFERING}},
            "mode.C",
            "streaming while k is not innermost in kij",
        ),
        (
            {"mode": dict.fromkeys("ABC", BUFFERING), "buffer_bytes": {"A": 1024, "B": 4096, "C": 1616}},
            "buffer_bytes.C",
            "at least 1632 and a multiple of 32: two halves for 100 rows",
        ),
        (
            {"mode": dict.fromkeys("ABC", BUFFERING), "buffer_bytes": {"A": 1024, "B": 4096, "C": 1648}},
            "buffer_bytes.C",
            "at least 1632 and a multiple of 32",
        ),
        ({"scratch_bytes": 8}, "scratch_bytes", "a multiple of the line size 16, at most the 0 of buffer_bytes.C"),
        ({"scratch_bytes": 32}, "scratch_bytes", "a multiple of the line size 16, at most the 0 of buffer_bytes.C"),
        (
            {
                "mode": dict.fromkeys("ABC", BUFFERING),
                "buffer_bytes": {"A": 1024, "B": 4096, "C": 1664},
                "scratch_bytes": 64,
            },
            "buffer_bytes.C",
            "at least 1632 and a multiple of 32 with 64 of scratch_bytes aside",
        ),
    ],
)
def test_illegal_schemes_say_field_and_bound(change, field, allowed):
    with pytest.raises(SchemeError) as caught:
        replace(GOOD, **change).validate(TINY, *SHAPE)
    assert caught.value.field == field
    assert caught.value.allowed.startswith(allowed)
    assert str(caught.value).startswith(f"scheme: {field} = ")


def test_tuning_needs_hardware_for_it_and_a_tile_of_b():
    tuned = replace(GOOD, tuning=True)
    tuned.validate(load_design("tiny"), *SHAPE)
    with pytest.raises(
        SchemeError, match="^scheme: tuning = True: must be false: the design has tuning.dynamic = false$"
    ):
        tuned.validate(load_design("tiny", ["tuning.dynamic=false"]), *SHAPE)
    with pytest.raises(SchemeError, match="^scheme: tuning = True: must be false while mode.B is streaming"):
        replace(tuned, T_j=80, mode={**GOOD.mode, "B": STREAMING}).validate(load_design("tiny"), *SHAPE)


def test_metadata_bound_is_exact():
    """30 rows of metadata are 15 lines, 32 lines of FIFO-managed region, one line of segments."""
    replace(GOOD, buffer_bytes={"A": 256, "B": 48 * 16, "C": 0}).validate(TINY, *SHAPE)


def test_clip_and_counts():
    wide = replace(GOOD, T_i=10**6, T_j=10**6, T_k=7)
    clipped = wide.clip(*SHAPE)
    assert (clipped.T_i, clipped.T_j, clipped.T_k) == (100, 80, 7)
    assert clipped.tiles_per_rank(*SHAPE) == (1, 1, 9)


def test_partitions_lie_one_after_the_other():
    scheme = replace(GOOD, buffer_bytes={"A": 256, "B": 1024, "C": 160})
    assert scheme.partition_lines(16) == {"A": (0, 16), "B": (16, 64), "C": (80, 10)}
    assert scheme.fifo_lines(16) == {"A": 4, "B": 32}


@pytest.mark.parametrize("machine", [TINY, EDGE, SMALLEST], ids=["tiny", "edge", "smallest"])
def test_default_partition_is_legal_and_uses_every_line(machine):
    parts, fifo = default_partition(machine)
    assert sum(parts.values()) == machine.bytes
    scheme = replace(GOOD, T_i=1, T_j=1, T_k=1, buffer_bytes=parts, fifo_bytes=fifo)
    scheme.validate(machine, *SHAPE)


def test_a_buffer_without_room_is_refused():
    smaller = replace(SMALLEST, bytes=21 * 16)
    with pytest.raises(SchemeError, match="must be at least 16 lines for A and 6 for B out of 21$"):
        default_partition(smaller)


def test_resident_lines_are_what_metadata_and_fifo_leave():
    assert Partition(lines=100, fifo_lines=10, lanes=4).data_lines(31) == 82


def test_orders_are_in_register_order():
    assert ORDERS == ("ijk", "ikj", "jik", "jki", "kij", "kji")
