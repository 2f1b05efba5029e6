"""Every published reference case of Sparseloop, where its folder is on the machine.

``FIBERLOOM_SPARSELOOP`` names a folder with ``inputs.tar.gz`` (the original specifications) and a ``.jsonl`` file for each family
(what the published tool says of them). Prints the worst deviation of each family; ``pytest -s`` shows it.
"""

import json
import os
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sw.analytic.analysis import Analysis, analyze
from sw.analytic.search import objective_of, search
from sw.analytic.spec.load import load_search, load_spec

FOLDER = os.environ.get("FIBERLOOM_SPARSELOOP")
FAMILIES = ("fig1", "fig12_eyerissv2", "fig13_dstc", "fig15_stc", "table7_eyeriss_rle", "tutorial_v04")
# Tolerances: of cycles absolute, of counters relative or one, of energy relative.
CYCLES, COUNTERS, DATA_ENERGY, FORMAT_ENERGY = 2, 1e-4, 1e-3, 1e-2


class Worst:
    """Largest deviation of each kind, as a share of what is allowed, and the case that it is of."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[float, str]] = defaultdict(lambda: (0.0, ""))

    def add(self, kind: str, share: float, where: str) -> None:
        if share > self.found[kind][0]:
            self.found[kind] = (share, where)

    def count(self, kind: str, mine: float, theirs: float, where: str) -> None:
        """A counter: 0.01 % or 1."""
        self.add(kind, abs(mine - theirs) / max(1.0, COUNTERS * abs(theirs)), f"{where}: {mine} for {theirs}")

    def relative(self, kind: str, mine: float, theirs: float, allowed: float, where: str) -> None:
        if mine != theirs:
            self.add(kind, abs(mine - theirs) / (allowed * max(abs(theirs), 1e-12)), f"{where}: {mine} for {theirs}")

    def report(self, family: str) -> list[str]:
        lines = []
        for kind, (share, where) in sorted(self.found.items()):
            print(f"{family}: {kind}: {share:.3f} of the tolerance{': ' + where if share else ''}")
            if share > 1:
                lines.append(f"{kind}: {where}")
        return lines


def folder() -> Path:
    assert FOLDER is not None
    return Path(FOLDER)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """The original specifications, unpacked."""
    place: Path = tmp_path_factory.mktemp("sparseloop")
    with tarfile.open(folder() / "inputs.tar.gz") as archive:
        archive.extractall(place, filter="data")
    return place


def cases(family: str) -> Iterator[dict[str, Any]]:
    for line in (folder() / f"{family}.jsonl").read_text().splitlines():
        yield json.loads(line)


def files_of(inputs: Path, case: dict[str, Any], tmp_path: Path) -> list[Path] | None:
    """Files of a case; for the tutorials with the mapping that was evaluated, and the table of energies."""
    name = case["case_id"]
    if name.startswith("tutorial/"):
        return tutorial(inputs / "tutorial_v04" / name.removeprefix("tutorial/"), case, tmp_path)
    place = inputs / name.replace("table7/", "table7/")
    if not place.is_dir():
        return None
    return sorted(path for path in place.glob("*.yaml") if path.stem not in ("mapper", "constraints"))


def tutorial(place: Path, case: dict[str, Any], tmp_path: Path) -> list[Path]:
    import yaml

    mapping = tmp_path / "mapping.yaml"
    table = tmp_path / "ert.yaml"
    problem = yaml.safe_load((place / "problem.yaml").read_text())["problem"]
    names = [space["name"] for space in problem["shape"]["data_spaces"]]
    mapping.write_text(yaml.safe_dump({"mapping": printed_mapping(case["loop_nest_text"], names)}))
    actions = [
        {"name": each["name"], "actions": [{"name": key, "energy": value} for key, value in each["actions"].items()]}
        for each in case["ert_pJ"]
    ]
    table.write_text(yaml.safe_dump({"ERT": {"version": 0.4, "tables": actions}}))
    return [place / "arch.yaml", place / "problem.yaml", mapping, table]


def printed_mapping(lines: list[str], names: list[str]) -> list[dict[str, Any]]:
    """The mapping section of a loop nest as the published tool prints it. Levels in one group share the loops of the last."""
    entries: list[dict[str, Any]] = []
    level, loops = "", []

    def close() -> None:
        for spatial in (False, True):
            own = [loop for loop in reversed(loops) if (loop[2] is not None) == spatial]
            if level and own:
                factors = [f"{dimension}={bound}" for dimension, bound, _ in own]
                entry = {"target": level, "type": "spatial" if spatial else "temporal", "factors": factors}
                entry["permutation"] = [dimension for dimension, _, _ in own]
                if spatial:
                    own.sort(key=lambda loop: loop[2] != "X")
                    entry["permutation"] = [dimension for dimension, _, _ in own]
                    entry["split"] = sum(axis == "X" for _, _, axis in own)
                entries.append(entry)

    for line in lines:
        head = re.match(r"^(\w+) \[(.*)\]$", line)
        loop = re.match(r"^[| ]*for (\w+) in \[0:(\d+)\)(?: \(Spatial-([XY])\))?", line)
        if head:
            close()
            level, loops = re.sub(r"^inter_(\w+)_spatial$", r"\1", head[1]), []
            if not head[1].startswith("inter_"):
                kept = re.findall(r"(\w+):\d+ \(\d+\)", head[2])
                bypass = [name for name in names if name not in kept]
                entries.append({"target": level, "type": "dataspace", "keep": kept, "bypass": bypass})
        elif loop:
            loops.append((loop[1], int(loop[2]), loop[3]))
    close()
    return [entry for entry in entries if entry]


def compare_xml(worst: Worst, analysis: Analysis, case: dict[str, Any]) -> None:
    """Against the full record of the published tool."""
    name, spec = case["case_id"], analysis.spec
    tensors = [tensor.name for tensor in spec.workload.problem.tensors]
    for level, storage in enumerate(spec.architecture.levels):
        theirs = case["reference"]["xml"]["levels"][storage.name]
        worst.add("cycles", abs(analysis.cycles.levels[level] - theirs["cycles"]) / CYCLES, f"{name} {storage.name}")
        for number, tensor in enumerate(tensors):
            if (level, number) not in analysis.sparse.counters:
                assert not theirs["keep"][tensor], (name, storage.name, tensor)
                continue
            where = f"{name} {storage.name}.{tensor}"
            counters, tile = analysis.sparse.counters[level, number], analysis.sparse.occupancy[level, number]
            worst.count("capacity", tile.maximum, theirs["utilized_capacity"][tensor], where)
            use = analysis.uses[level]
            worst.relative("instances", use.mean[number], mean_instances(theirs, tensor), 1e-3, where)
            formats = False
            for action in ("reads", "fills", "updates"):
                own = counters.data(action)
                for kind, mine, key in (
                    ("dense", own.dense, action),
                    ("actual", own.actual, f"random_{action}"),
                    ("gated", own.gated, f"gated_{action}"),
                    ("skipped", own.skipped, f"skipped_{action}"),
                ):
                    worst.count(f"data {kind}", mine, theirs[key][tensor], f"{where} {action}")
                for kind, key in (("actual", "random"), ("gated", "gated"), ("skipped", "skipped")):
                    published = theirs[f"{key}_format_{action}"][tensor]
                    for rank, (accesses, (metadata, payload)) in enumerate(
                        zip(counters.formats[action], published, strict=True)
                    ):
                        formats = formats or bool(metadata or payload)
                        here = f"{where} {action} rank {rank}"
                        worst.count(f"format {kind}", getattr(accesses.metadata, kind), metadata, here)
                        worst.count(f"format {kind}", getattr(accesses.payload, kind), payload, here)
            energy = analysis.tensor_energy[level, number]
            allowed = FORMAT_ENERGY if formats else DATA_ENERGY
            worst.relative(
                f"energy of {'formats' if formats else 'data'}", energy, theirs["energy"][tensor], allowed, where
            )
    compare_headline(worst, analysis, case)


def mean_instances(theirs: dict[str, Any], tensor: str) -> float:
    return float(theirs["utilized_instances"][tensor])


def compare_headline(worst: Worst, analysis: Analysis, case: dict[str, Any]) -> None:
    name, headline = case["case_id"], case["headline"]
    worst.add("cycles", abs(analysis.cycles.total - headline["cycles"]) / CYCLES, name)
    computes = analysis.sparse.computes
    for kind in ("algorithmic", "actual", "gated", "skipped"):
        worst.count(f"computes {kind}", getattr(computes, kind), headline["computes"][kind], name)
    for component, energy in headline["energy_pJ_by_component"].items():
        mine = analysis.energy[component]
        allowed = DATA_ENERGY if component == analysis.spec.architecture.compute.name else FORMAT_ENERGY
        worst.relative("energy of components", mine, energy, allowed, f"{name} {component}")


def compare_text(worst: Worst, analysis: Analysis, case: dict[str, Any]) -> None:
    """Against the printed statistics, to the printed decimals."""
    name, spec = case["case_id"], analysis.spec
    worst.add("cycles", abs(analysis.cycles.total - case["headline"]["cycles"]) / CYCLES, name)
    tensors = {tensor.name: number for number, tensor in enumerate(spec.workload.problem.tensors)}
    levels = {storage.name: level for level, storage in enumerate(spec.architecture.levels) if not storage.is_spatial}
    for printed in case["reference"]["txt"]["levels"]:
        stats = printed["stats"]
        if printed["name"] == spec.architecture.compute.name:
            worst.add("energy", printed_off(analysis.energy[printed["name"]], stats["energy_total_pJ"]), name)
            for kind in ("actual", "gated", "skipped"):
                if f"{kind}_computes_total" in stats:
                    worst.count(
                        "computes", getattr(analysis.sparse.computes, kind), stats[f"{kind}_computes_total"], name
                    )
            continue
        level = levels[printed["name"]]
        worst.add("cycles", abs(analysis.cycles.levels[level] - stats["cycles"]) / CYCLES, f"{name} {printed['name']}")
        for tensor, theirs in printed["dataspaces"].items():
            compare_printed(worst, analysis, (level, tensors[tensor]), theirs, f"{name} {printed['name']}.{tensor}")


def compare_printed(
    worst: Worst, analysis: Analysis, place: tuple[int, int], theirs: dict[str, Any], where: str
) -> None:
    level, number = place
    counters, tile = analysis.sparse.counters[place], analysis.sparse.occupancy[place]
    for key in ("utilized_capacity", "max_utilized_data_storage_capacity"):
        if theirs.get(key) is not None:
            worst.count("capacity", tile.maximum, theirs[key], where)
    for action in ("reads", "fills", "updates"):
        own = counters.data(action)
        if f"scalar_{action}_per_instance" in theirs:
            worst.count("data dense", own.dense, theirs[f"scalar_{action}_per_instance"], f"{where} {action}")
        for kind, prefix in (
            ("dense", "algorithmic"),
            ("actual", "actual"),
            ("gated", "gated"),
            ("skipped", "skipped"),
        ):
            key = f"{prefix}_scalar_{action}_per_instance"
            if theirs.get(key) is not None:
                worst.count(f"data {kind}", getattr(own, kind), theirs[key], f"{where} {action}")
            published = theirs.get(f"{prefix}_scalar_format_{action}_per_instance")
            if published and kind != "dense":
                for rank, words in published.items():
                    accesses = counters.formats[action][int(rank.removeprefix("rank"))]
                    for part, theirs_of_part in words.items():
                        mine = getattr(getattr(accesses, part), kind)
                        worst.count(f"format {kind}", mine, theirs_of_part, f"{where} {action} {rank}")
    energy = analysis.tensor_energy[level, number]
    worst.add("energy", printed_off(energy * analysis.uses[level].mean[number], theirs["energy_total_pJ"]), where)


def printed_off(mine: float, theirs: float) -> float:
    """Of half a printed decimal; of large numbers, whose tables are rounded to six decimals, of 0.1 %."""
    return abs(mine - theirs) / max(0.0051, 1e-3 * theirs)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "fig13_dstc"])
def test_family(family, inputs, tmp_path, capsys):
    worst, seen = Worst(), 0
    for case in cases(family):
        files = files_of(inputs, case, tmp_path)
        if files is None or not case.get("reference"):
            continue
        analysis = analyze(load_spec(files))
        seen += 1
        (compare_text if family == "tutorial_v04" else compare_xml)(worst, analysis, case)
    with capsys.disabled():
        print()
        wrong = worst.report(family)
    assert seen
    assert not wrong, "\n".join(wrong)


def test_bars_of_figure_13(inputs, tmp_path):
    """Latency over that of the dense pair, to the two decimals of the plot."""
    dense = analyze(load_spec(files_of(inputs, {"case_id": "fig13/B_1.0-A_1.0"}, tmp_path) or []))
    bars = json.loads((folder() / "figures.json").read_text())["fig13"]
    template = folder_of_pair(inputs)
    seen = 0
    for bar in bars:
        if bar["plotted_normalised_latency"] is None:
            continue
        a, b = bar["label"]["A_density"], bar["label"]["B_density"]
        changes = [f"problem.instance.densities.{name}.density={value}" for name, value in (("A", a), ("B", b))]
        cycles = analyze(load_spec(template, changes)).cycles.total
        seen += 1
        assert round(cycles / dense.cycles.total, 2) == bar["plotted_normalised_latency"], (a, b)
    assert seen == 8


def folder_of_pair(inputs: Path) -> list[Path]:
    return sorted((inputs / "fig13" / "B_1.0-A_0.9").glob("*.yaml"))


def test_actual_data_without_counters(inputs, tmp_path):
    """Cycles are one more than the ground truth."""
    case = next(case for case in cases("fig12_eyerissv2") if case["case_id"] == "fig12/L25_actual_data")
    truth = next(
        bar["ground_truth"]
        for bar in json.loads((folder() / "figures.json").read_text())["fig12"]
        if bar["case_id"] == "fig12/L25_uniform"
    )
    analysis = analyze(load_spec(files_of(inputs, case, tmp_path) or []))
    assert abs(analysis.cycles.total - (truth + 1)) <= CYCLES


def test_the_mapper_beats_the_printed_mapping(inputs, tmp_path):
    """Energy-delay product of tutorial 04.2.2, under its constraints and with its energies."""
    case = next(case for case in cases("tutorial_v04") if "/04.2.2" in case["case_id"])
    files = files_of(inputs, case, tmp_path)
    assert files is not None
    printed = objective_of(analyze(load_spec(files)), ("edp",))
    spec, space, settings = load_search([path for path in files if path.stem != "mapping"])
    found = search(spec, space, replace(settings, evaluations=2000))
    print(f"\n04.2.2: EDP {found.value[0]:.4g} of the mapper, {printed[0]:.4g} of the printed mapping")
    assert found.value < printed


@pytest.mark.parametrize("line", [0, 15])
def test_the_mapper_reads_constraints_of_figure_1(inputs, line):
    """No mapping of its spaces beats those that the search keeps; the published mapping is in the space."""
    case = list(cases("fig1"))[line]
    place = inputs / case["case_id"]
    files = sorted(place.glob("*.yaml"))
    spec, space, settings = load_search([path for path in files if path.stem != "map"])
    found = search(spec, space, replace(settings, victory=0, timeout=0))
    published = load_spec([path for path in files if path.stem != "mapper"])
    mappings = [space.mapping(point) for point in space.points()]

    def plain(mapping):
        return [[loop for loop in level if loop.bound > 1] for level in mapping.loops], mapping.keeps

    assert plain(published.mapping) in [plain(mapping) for mapping in mappings]
    assert found.value <= objective_of(analyze(published), settings.objectives)
