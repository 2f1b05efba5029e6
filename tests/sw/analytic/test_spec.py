"""Reading specifications: both dialects, expressions, and one clear line for each mistake."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from sw.analytic.analysis import analyze
from sw.analytic.errors import SpecError
from sw.analytic.result import record
from sw.analytic.spec.expressions import ExpressionError, evaluate
from sw.analytic.spec.load import SHIPPED, load_layers, load_search, load_spec, shipped_names

SPEC = Path("sparse_product")
# The same machine, workload and mapping in dialect v0.3.
OLD = """
architecture:
  version: 0.3
  subtree:
    - name: chip
      local:
        - name: DRAM
          class: DRAM
          attributes:
            {width: 64, datawidth: 16, metadata_storage_width: 64, metadata_datawidth: 16, read_bandwidth: 8, write_bandwidth: 8}
        - name: Buffer
          class: SRAM
          attributes:
            data_storage_depth: 2048
            data_storage_width: 16
            word-bits: 16
            metadata_storage_depth: 2048
            metadata_storage_width: 16
            metadata_datawidth: 16
            read_bandwidth: 24
            write_bandwidth: 16
      subtree:
        - name: lane[0..7]
          local:
            - name: MAC
              class: mac
              attributes: {datawidth: 16}
problem:
  shape:
    name: product
    dimensions: [M, N, K]
    data-spaces:
      - {name: A, projection: [[[M]], [[K]]]}
      - {name: B, projection: [[[K]], [[N]]]}
      - {name: Z, projection: [[[M]], [[N]]], read-write: True}
  instance: {M: 64, N: 64, K: 64, densities: {A: {distribution: hypergeometric, density: 0.1}}}
mapping:
  - {target: DRAM, type: temporal, factors: N0 M1 K1, permutation: NMK}
  - {target: Buffer, type: temporal, factors: M=64 K=64 N=1, permutation: KMN}
  - {target: Buffer, type: spatial, factors: N8, permutation: NMK, split: 1}
sparse_optimizations:
  targets:
    - name: DRAM
      representation-format: {data-spaces: [{name: A, ranks: [{format: UOP}, {format: CP}]}]}
    - name: Buffer
      representation-format: {data-spaces: [{name: A, ranks: [{format: UOP}, {format: CP}]}]}
      action-optimization:
        - {type: skipping, target: B, condition-on: [A]}
        - {type: skipping, options: [{target: Z, condition-on: [A]}]}
ERT:
  version: 0.3
  tables:
    - {name: chip.DRAM, actions: [{name: read, energy: 512}, {name: write, energy: 512}, {name: metadata_read, energy: 512}]}
    - name: chip.Buffer
      actions:
        - {name: read, energy: 2}
        - {name: write, energy: 2.2}
        - {name: metadata_read, energy: 1}
        - {name: metadata_write, energy: 1.1}
    - {name: "chip.lane[0..7].MAC", actions: [{name: mac_random, arguments: null, energy: 0.6}]}
ART: {version: 0.3, tables: [{name: chip.Buffer, area: 5000}, {name: "chip.lane[0..7].MAC", area: 100}]}
"""


def analyzed(*paths: Path, changes: tuple[str, ...] = ()):
    return analyze(load_spec(paths, changes))


def test_the_shipped_product_by_hand():
    """64 x 64 x 64, 410 nonzeros of A in 4096 places; B comes in 8 tiles of 64 x 8, one lane for each column."""
    found = record(analyzed(SPEC))
    share = 410 / 4096
    macs = 64**3 - int(64**3 * (1 - share))
    assert found["computes"]["algorithmic"] == 64**3 and found["computes"]["actual"] == macs == 26240
    assert found["cycles"] == 26240 // 8 and found["utilization"] == 1.0
    buffer, dram = found["levels"]
    assert [level["name"] for level in found["levels"]] == ["Buffer", "DRAM"]
    a, b, z = (buffer["tensors"][name] for name in "ABZ")
    assert a["occupancy"] == {"mean": 410, "max": 410} and b["tile"] == z["tile"] == 512
    assert a["fills"] == {"dense": 4096, "actual": 410, "gated": 0, "skipped": 0}
    assert a["reads"] == {"dense": 64 * 64 * 8, "actual": 410 * 8, "gated": 0, "skipped": 0}
    assert b["reads"] == {"dense": 64**3, "actual": macs, "gated": 0, "skipped": 64**3 - macs}
    assert b["fills"]["actual"] == 4096 and z["fills"]["dense"] == 0, "partial sums never come back"
    assert z["updates"] == b["reads"] and z["reads"]["dense"] == 64**3 - 4096
    coordinates, offsets = a["format"]
    assert (coordinates["format"], offsets["format"]) == ("CP", "UOP")
    assert coordinates["bits"] == {"mean": 410 * 16, "max": 410 * 16} and offsets["bits"]["mean"] == 65 * 16
    assert coordinates["reads"]["actual"] == 410 * 8 and offsets["reads"]["payload"]["actual"] == 65 * 8
    assert dram["tensors"]["Z"]["updates"]["actual"] == 4096
    # Rows of four words of data, of four words of format data.
    assert found["energy_pJ"]["DRAM"] == 512 * (103 + 1024 + 1024 + -(-(410 + 65) // 4))
    of_buffer = 2.0 * (3280 + macs + z["reads"]["actual"]) + 2.2 * (410 + 4096 + macs) + 1.0 * (3280 + 520) + 1.1 * 475
    assert found["energy_pJ"]["Buffer"] == pytest.approx(of_buffer)
    assert found["energy_pJ"]["MAC"] == pytest.approx(0.6 * macs)
    assert found["energy_pJ"]["total"] == pytest.approx(sum(v for k, v in found["energy_pJ"].items() if k != "total"))


def test_both_dialects_say_the_same(tmp_path):
    """But that v0.3 counts fills of partial sums that do not exist yet."""
    old = tmp_path / "old.yaml"
    old.write_text(OLD)
    mine, theirs = record(analyzed(SPEC)), record(analyzed(old))
    assert theirs["levels"][0]["tensors"]["Z"]["fills"] == {"dense": 4096, "actual": 4096, "gated": 0, "skipped": 0}
    for document in (mine, theirs):
        del document["levels"][0]["tensors"]["Z"]["fills"], document["energy_pJ"], document["notes"]
    assert mine.pop("area_um2") is None and theirs.pop("area_um2") == 5000 + 8 * 100
    assert mine == theirs


def test_several_files_are_one_specification(tmp_path):
    whole = OLD.split("\nproblem:")
    (tmp_path / "arch.yaml").write_text(whole[0])
    (tmp_path / "rest.yaml").write_text("problem:" + whole[1])
    (tmp_path / "one.yaml").write_text(OLD)
    parts = record(analyzed(tmp_path / "arch.yaml", tmp_path / "rest.yaml"))
    assert parts == record(analyzed(tmp_path / "one.yaml"))


def test_expressions_and_variables(tmp_path):
    path = tmp_path / "spec.yaml"
    text = (SHIPPED / "sparse_product.yaml").read_text()
    text = text.replace("depth: 2048", "depth: tiles * 2**10").replace("    M: 64\n", "    M: max(side, 8)\n")
    path.write_text(text + "\nvariables: {side: 8 * 8, tiles: ceil(side / 33)}\n")
    assert record(analyzed(path)) == record(analyzed(SPEC))


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "().__class__", "[1][0]", "lambda: 1", "x", "2 ** 10 ** 10", "1 / 0", "'a' * 9", "True", "1 if 1 else 2",
     "log(-1)", "9" * 2000, "max()", "a"],
)  # fmt: skip
def test_no_code_of_a_specification_runs(text):
    with pytest.raises(ExpressionError):
        evaluate(text, {"a": "a + 1", "b": True})


def test_values_can_be_changed_by_name():
    base = analyzed(SPEC)
    faster = analyzed(SPEC, changes=("problem.instance.densities.A.density=0.05",))
    narrow = analyzed(SPEC, changes=("architecture.nodes.Buffer.attributes.read_bandwidth=8",))
    assert faster.cycles.total < base.cycles.total < narrow.cycles.total


def test_factors_with_remainders():
    """60 columns in tiles of 8: the last has 4, and four lanes idle. The others are as with 64 columns."""
    changes = ("problem.instance.N=60", 'mapping.DRAM.factors=["N=8"]', 'mapping.lanes.factors=["N=8,4"]')
    found = record(analyzed(SPEC, changes=changes))
    buffer, dram = found["levels"]
    assert found["computes"]["algorithmic"] == 64 * 64 * 60
    assert found["cycles"] == -(-found["computes"]["actual"] * 8 // 60) and found["utilization"] == pytest.approx(
        60 / 64
    )
    assert buffer["tensors"]["B"]["tile"] == 512 and buffer["tensors"]["B"]["fills"]["dense"] == 64 * 60
    assert dram["tensors"]["Z"]["updates"]["dense"] == 64 * 60
    rest = record(analyzed(SPEC, changes=("problem.instance.N=60", "mapping.DRAM.factors=[N=0]", changes[2])))
    wide = record(analyzed(SPEC, changes=("problem.instance.N=60", 'mapping.DRAM.factors=["N=9,8"]', changes[2])))
    assert rest == wide == found, "what is left, and an outermost loop that never runs beyond its remainder"


def test_masks_and_matrices_are_actual_data(tmp_path):
    rng = np.random.default_rng(5)
    matrix = sp.csr_array(rng.random((64, 64)) < 0.1).astype(np.int64)
    scipy.io.mmwrite(tmp_path / "a.mtx", matrix)
    # The first rank of the projection is the fastest.
    (tmp_path / "a.txt").write_text("".join("01"[value] for value in matrix.toarray().T.ravel()))
    (tmp_path / "spec.yaml").write_text((SHIPPED / "sparse_product.yaml").read_text())
    counts = []
    for name in ("a.mtx", "a.txt"):
        change = f"problem.instance.densities.A={{distribution: actual_data, data_file_path: {name}}}"
        counts.append(record(analyzed(tmp_path / "spec.yaml", changes=(change,))))
    assert counts[0] == counts[1] and counts[0]["computes"]["actual"] == 64 * matrix.nnz


MISTAKES = [
    ("problem.instance.L=4", "", "no such key: must be one of M, N, K, densities, commonDensity"),
    ("problem.instance.K=0", "", "must be at least 1"),
    ("problem.instance.K=two", "", "no variable 'two': there are no variables"),
    ("problem.instance.densities.A.density=1.5", "", "must be a number between 0 and 1"),
    (
        "problem.instance.densities.A.distribution=even",
        "",
        "must be one of hypergeometric, uniform, fixed_structured, block, n_of_m, banded, real_data, actual_data",
    ),
    ("problem.shape.data_spaces.A.projection=[[[M]], [[L]]]", "projection[1][0] = 'L'", "must be one of M, N, K"),
    ("problem.shape.data_spaces.Z.read_write=false", "", "must have one data space with read_write: true"),
    ("architecture.nodes.Buffer.attributes.dept=3", "", "no such attribute: did you mean depth?"),
    ("architecture.nodes.lanes.spatial.meshZ=2", "", "must be 1"),
    ("architecture.nodes.Buffer.attributes.read_bandwidth=0", "", "must be above 0"),
    ("mapping.DRAM.factors=[N=4]", "mapping: factors of N", "4 x 8 = 32: must be 64"),
    ("mapping.lanes.factors=[N=16]", "mapping: factors of N", "8 x 16 = 128: must be 64"),
    ("mapping.DRAM.factors=[N=0, M=3]", "mapping: factors of M", "3 x 64 = 192: must be 64"),
    (
        "mapping.DRAM.factors=[N=3,1]",
        "",
        "must be factors such as M=4, of M, N, K",
    ),
    ("mapping.DRAM.factors='N=3,1'", "mapping: factors of N", "3,1 x 8 = 8 points: must be 64"),
    ("mapping.DRAM.factors='N=3,4'", "", "must have a remainder between 1 and 3"),
    ("mapping.DRAM.permutation=NXK", "", "must be of M, N, K, innermost first"),
    ("mapping.Buffer.target=Cache", "", "must be one of DRAM, Buffer, lanes"),
    ("ERT.tables.MAC.actions.compute.energy=-1", "", "must be a number between 0 and 1e+30"),
]


@pytest.mark.parametrize(("change", "value", "allowed"), MISTAKES, ids=[change for change, _, _ in MISTAKES])
def test_a_mistake_is_one_clear_line(change, value, allowed):
    with pytest.raises(SpecError) as caught:
        analyzed(SPEC, changes=(change,))
    line = str(caught.value)
    file = f"{SHIPPED}/sparse_product.yaml: "
    assert "\n" not in line and line.endswith(f": {allowed}") and line.startswith((f"--set {change}: ", file)), line
    assert value in line, line


def refused(tmp_path: Path, old: str, new: str) -> str:
    text = (SHIPPED / "sparse_product.yaml").read_text()
    assert old in text
    path = tmp_path / "spec.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        analyzed(path)
    return str(caught.value).replace(f"{path}", "spec.yaml")


BUFFER = "architecture.nodes.Buffer.sparse_optimizations"
SPACES = f"{BUFFER}.representation_format.data_spaces"


def test_a_key_without_a_value_is_as_if_left_out():
    changes = (f"{BUFFER}.action_optimization=", "architecture.nodes.Buffer.attributes.block_size=")
    assert record(analyzed(SPEC, changes=changes)) == record(
        analyzed(SPEC, changes=(f"{BUFFER}.action_optimization=[]",))
    )


def test_a_tensor_has_one_representation_at_a_level():
    ranks = "ranks: [{format: UOP}, {format: CP}]"
    with pytest.raises(SpecError, match="'A': has a representation at Buffer already$"):
        analyzed(SPEC, changes=(f"{SPACES}=[{{name: A, {ranks}}}, {{name: A, {ranks}}}]",))


@pytest.mark.parametrize("inner", ["U", "UOP", "UB"])
def test_values_in_full_rows_below_a_list_are_refused(inner):
    """They would take more than the nonzeros, which is what a level is said to hold."""
    plain = "architecture.nodes.DRAM.sparse_optimizations="
    with pytest.raises(
        SpecError, match="Buffer: A, innermost rank: uncompressed: must be compressed, as a rank outside"
    ):
        analyzed(SPEC, changes=(plain, f"{SPACES}.A.ranks=[{{format: CP}}, {{format: {inner}}}]"))
    analyzed(SPEC, changes=(plain, f"{SPACES}.A.ranks=[{{format: CP}}, {{format: CP}}]"))


SAFS = "architecture.nodes[1].sparse_optimizations"
REFUSED = {
    "words": (
        "depth: 2048",
        "depth: 1024",
        "mapping: Buffer: largest tiles: A 410 + B 512 + Z 512 = 1,434 words: must be at most 1,024",
    ),
    "bits": (
        "metadata_storage_depth: 2048",
        "metadata_storage_depth: 400",
        "mapping: Buffer: format data of the largest tiles: A 7,600 bits: must be at most 6,400",
    ),
    "instances": ("{meshX: 8}", "{meshX: 4}", "mapping: MAC: instances: 8: must be at most 4"),
    "row": (
        "        depth: 2048\n        width: 16",
        "        depth: 2048\n        width: 24",
        "architecture.nodes[1].attributes: width 24: must be a multiple of 1 words of 16 bits = 16",
    ),
    "key": (
        "        action_optimization",
        "        action_optimisation",
        f"{SAFS}.action_optimisation = [{{'type': 'skipping', 'options': [{{'target': 'B', 'condition_on': ['A']}}]}}, {{...: no "
        "such key: must be one of name, representation_format, action_optimization, compute_optimization (did you mean "
        "action_optimization?)",
    ),
    "tensor": (
        "target: B",
        "target: C",
        f"{SAFS}.action_optimization[0].options[0].target = 'C': must be one of A, B, Z",
    ),
    "kind": (
        "type: skipping",
        "type: jumping",
        f"{SAFS}.action_optimization[0].type = 'jumping': must be one of gating, skipping, skipping-spatial, position-skipping",
    ),
    "ranks": (
        "                - format: UOP\n                - format: CP\n        action",
        "                - format: CP\n        action",
        "mapping: Buffer: A: 1 ranks: must be more: they must stand for the loops M=64 K=64",
    ),
    "section": (
        "mapping:",
        "mappings:",
        "mappings: no such section: must be one of architecture, problem, mapping, sparse_optimizations, ERT, ART, variables, "
        "mapper, constraints, architecture_constraints, mapspace_constraints, mapspace, network",
    ),
    "double": (
        "problem:\n",
        "problem:\n  version: 1\n",
        "not a YAML file (line 63, column 3: key 'version' is given twice)",
    ),
    "share": (
        "density: 0.1",
        "density: -0.1",
        "problem.instance.densities.A.density = -0.1: must be a number between 0 and 1",
    ),
    "entry": (
        "{name: read, energy: 2.0}",
        "{name: read, energi: 2.0}",
        "ERT.tables[1].actions[0].energi = 2.0: no such key: must be one of name, energy, arguments (did you mean energy?)",
    ),
    "compute": (
        "class: mac",
        "class: SRAM",
        "architecture: must have one component for compute (class with mac or compute), the innermost; has none",
    ),
    "mesh": ("meshX: 8", "meshX: 0", "architecture.nodes[2].spatial.meshX = 0: must be at least 1"),
    "class": ("      class: SRAM\n", "", "architecture.nodes[1].class: is missing"),
    "factors": ("factors: [M=64, K=64]", "factors: [M=32, K=64]", "mapping: factors of M: 32: must be 64"),
    "multicast": (
        "    type: temporal\n    factors: [N=8]",
        "    type: temporal\n    no_multicast_no_reduction: [A]\n    factors: [N=8]",
        "mapping[0].no_multicast_no_reduction: must stand in the spatial entry of the level",
    ),
    "tag": (
        "    - !Component\n      name: MAC",
        "    - !Chip\n      name: MAC",
        "architecture.nodes[3] = 'Chip': must be !Component, !Container, !Hierarchical or !Parallel",
    ),
}


@pytest.mark.parametrize(("old", "new", "line"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(tmp_path, old, new, line):
    assert refused(tmp_path, old, new) == f"spec.yaml: {line}"


def test_files_that_cannot_be_read(tmp_path):
    def refusal(path: Path) -> str:
        with pytest.raises(SpecError) as caught:
            load_spec([path])
        return str(caught.value).removeprefix(f"{path}: ")

    assert refusal(tmp_path / "none.yaml") == "no such file"
    assert refusal(tmp_path) == "must be a file"
    assert refusal(Path("sparse_prodct")) == "no such file: must be a YAML file or one of " + ", ".join(shipped_names())
    path = tmp_path / "list.yaml"
    path.write_text("- 1\n")
    assert refusal(path) == "must be sections such as architecture, problem and mapping"
    path.write_bytes(b"a: \xff")
    assert refusal(path).startswith("not a YAML file ('utf-8' codec")
    lines = ["a: &a0 [1]", *(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 20)}]" for n in range(1, 12))]
    path.write_text("\n".join(lines))
    assert refusal(path) == "must hold at most 1,000,000 values"


def test_shipped_specifications_can_be_analyzed():
    assert "sparse_product" in shipped_names()
    for name in shipped_names():
        if name in NETWORKS:
            layers = load_layers([Path(name)])
            spec, space, _ = load_search([Path("scnn"), Path(name)], layer=layers[-1])
            assert spec.workload.problem.computes > 1 and space.count(10) is None
            assert len({layer.name for layer in layers}) == len(layers)
        else:
            found = record(analyzed(Path(name)))
            assert found["valid"] and found["cycles"] > 0 and not found["notes"]


NETWORKS = ("alexnet", "vgg16", "resnet50", "mobilenet", "bert_base")


@pytest.mark.parametrize(
    ("name", "operations"),
    # Of AlexNet, VGG16, ResNet50 and MobileNet as their papers or common counts have them, convolutions alone, in 10^9.
    [("alexnet", 0.666), ("vgg16", 15.35), ("resnet50", 3.86), ("mobilenet", 0.568), ("bert_base", 11.17)],
)
def test_layers_of_networks_have_the_known_operations(name, operations):
    total = 0
    for layer in load_layers([Path(name)]):
        own = layer.values["problem.instance"]
        total += layer.times * own["M"] * own["C"] * own["P"] * own["Q"] * own["R"] * own["S"]
    assert total / 1e9 == pytest.approx(operations, rel=0.01)
