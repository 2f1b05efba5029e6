"""``fiberloom analyze``: the analytical model of an architecture, a workload, its SAFs and a mapping."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sw.analytic.errors import SpecError

from . import options
from .analyze_design import Against, Density, Design
from .analyze_options import (
    Changes,
    Cluster,
    Evaluations,
    Jobs,
    Loads,
    Map,
    MappingFile,
    Objective,
    Out,
    Report,
    Seconds,
    Seed,
    Specs,
    Subjects,
    Sweeps,
    Victory,
)
from .printed import Outcome, printed
from .reasons import Interrupted

if TYPE_CHECKING:
    from sw.analytic.analysis import Analysis
    from sw.analytic.mapspace import MapSpace
    from sw.analytic.search import Search, Spread
    from sw.analytic.spec.extensions import Extensions
    from sw.analytic.spec.load import Spec
    from sw.analytic.spec.read_mapper import Settings
    from sw.analytic.spec.read_network import Layer

    from .console import Console

__all__ = ["command"]


def analyze(
    console: "Console",
    specs: Specs,
    changes: Changes = None,
    sweeps: Sweeps = None,
    subjects: Subjects = None,
    loads: Loads = None,
    mapping: MappingFile = None,
    search: Map = False,
    objective: Objective = None,
    evaluations: Evaluations = None,
    seconds: Seconds = None,
    victory: Victory = None,
    seed: Seed = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    design: Design = None,
    tiling: options.Tiling = None,
    scheme_file: options.SchemeFile = None,
    transpose_b: options.TransposeB = False,
    density: Density = None,
    against: Against = None,
    out: Out = None,
    report: Report = None,
) -> Outcome:
    """Analyse an accelerator: cycles, energy, and every actual, gated and skipped access, from a specification alone.

    The files are those of Timeloop and Sparseloop, dialect v0.3 or v0.4, with the sections architecture, problem, mapping, and
    where there are any sparse_optimizations, ERT and ART. Exit code 2 for a bad specification, and for a mapping that does not
    fit; with --json the latter prints {"valid": false, "reason": ...} as well. --map searches under the sections mapper and
    constraints; Ctrl-C ends it and keeps the best. --design takes operands in place of files and analyses a design of
    Fiberloom on them.
    """
    # Nothing that loads SciPy or Numba: an analysis takes milliseconds, they take a second.
    from sw.analytic.analysis import InvalidMapping
    from sw.analytic.points import sweep_points
    from sw.analytic.result import invalid_record
    from sw.analytic.spec.extensions import load_extensions

    limits = {"objective": objective, "evaluations": evaluations, "seconds": seconds, "victory": victory, "seed": seed}
    of_design = _OfDesign(tiling, scheme_file, transpose_b, density, against)
    _check_folders({"--out": out, "--report": report})
    if design is not None:
        _refuse_beside_design(
            {
                "map": search,
                "mapping": mapping,
                "sweep": sweeps,
                "load": loads,
                **limits,
                "jobs": jobs,
                "cluster": cluster,
            }
        )
        return _print_design(console, specs, design, changes or [], of_design, subjects or (), out, report)
    of_design.require_none()
    _check_options(limits | {"jobs": jobs, "cluster": cluster}, mapping, search=search)
    if cluster is not None and loads:
        raise SpecError(f"--cluster {cluster}: must not stand with --load: workers have no such file")
    of_one = next(
        (f"--{name}" for name, value in (("explain", subjects), ("out", out), ("report", report)) if value), None
    )
    if sweeps and of_one:
        raise SpecError(f"--sweep {sweeps[0]}: must not stand with {of_one}")
    asked = _Asked(console, specs, changes or (), load_extensions(loads or ()), mapping, search, limits, jobs, cluster)
    try:
        if sweeps:
            points = [(point, asked.point_record(point)) for point in sweep_points(sweeps)]
            _print_points(console, points)
            if not any(record["valid"] for _, record in points):
                raise SpecError(f"--sweep {sweeps[0]}: no point fits: {points[0][1]['reason']}")
            return Outcome()
        layers = asked.layers()
        if layers:
            if of_one:
                raise SpecError(f"{of_one}: must not stand with a network: it has layers")
            _print_network(console, asked.network(layers, ()))
            return Outcome()
        analysis, found = asked.analysis((), None)
    except InvalidMapping as error:
        console.document(invalid_record(str(error)))
        raise
    return _print_one(console, analysis, found, subjects or (), out, report)


command = printed(analyze)


@dataclass(frozen=True)
class _OfDesign:
    """Options that only ``--design`` reads."""

    tiling: str | None
    scheme: Path | None
    transpose_b: bool
    density: str | None
    against: str | None

    def require_none(self) -> None:
        given = next((name for name, value in vars(self).items() if value), None)
        if given is not None:
            raise SpecError(f"--{given.replace('_', '-')}: needs --design")


def _refuse_beside_design(given: dict[str, Any]) -> None:
    name = next((name for name, value in given.items() if value is not None and value is not False), None)
    if name is not None:
        raise SpecError(f"--{name}: must not stand with --design: write the specification with --out and analyse that")


def _print_design(
    console: "Console",
    operands: Sequence[Path],
    design: str,
    changes: list[str],
    of_design: _OfDesign,
    subjects: Sequence[str],
    out: Path | None,
    report: Path | None,
) -> Outcome:
    from sw.analytic.analysis import InvalidMapping
    from sw.analytic.result import invalid_record

    from .analyze_design import analyze_design, compared_lines

    try:
        analysis, rows = analyze_design(
            console,
            [str(each) for each in operands],
            design=design,
            changes=changes,
            tiling=of_design.tiling,
            scheme_file=of_design.scheme,
            transpose_b=of_design.transpose_b,
            density=of_design.density or "uniform",
            against=of_design.against,
            out=out,
        )
    except InvalidMapping as error:
        console.document(invalid_record(str(error)))
        raise
    extra = {"comparison": [row.as_dict() for row in rows]} if rows else {}
    found = _print_one(console, analysis, None, subjects, None, report, extra)
    if rows:
        console.print("\n" + "\n".join(compared_lines(rows, str(of_design.against))))
    return found


@dataclass(frozen=True)
class _Asked:
    """What the command line asks for, of each point and each layer alike."""

    console: "Console"
    specs: list[Path]
    changes: Sequence[str]
    extensions: "Extensions"
    mapping: Path | None
    search: bool
    limits: dict[str, Any]
    jobs: int | None
    cluster: str | None

    def layers(self, point: Sequence[str] = ()) -> "list[Layer]":
        from sw.analytic.spec.load import load_layers

        return load_layers(self.specs, (*self.changes, *point))

    def analysis(self, point: Sequence[str], layer: "Layer | None") -> "tuple[Analysis, Search | None]":
        """Of the mapping that the specification has, or of the best one. Raises InvalidMapping."""
        from sw.analytic.analysis import analyze as analyzed
        from sw.analytic.spec.load import load_search, load_spec

        changes = (*self.changes, *point)
        if not self.search:
            return analyzed(load_spec(self.specs, changes, self.extensions, self.mapping, layer)), None
        spec, space, settings = load_search(self.specs, changes, self.extensions, layer)
        quiet = self.console.quiet or self.console.as_json
        found = _search(spec, space, _limited(settings, self.limits), self._spread(), quiet=quiet)
        assert found.best is not None
        return found.best, found

    def _spread(self) -> "Spread":
        """Where a search is done."""
        from functools import partial

        from sw.analytic.processes import cores, in_order

        if self.cluster is None:
            return partial(in_order, self.jobs or cores())
        from .search_cluster import on_cluster

        return on_cluster(self.cluster)

    def record(self, point: Sequence[str], layer: "Layer | None") -> dict[str, Any]:
        from sw.analytic.result import record

        analysis, found = self.analysis(point, layer)
        document = record(analysis)
        if found is not None:
            document["search"] = _search_record(found)
            if found.stopped == "interrupt":
                raise Interrupted("a point or a layer has not been analysed")
        return document

    def network(self, layers: "Sequence[Layer]", point: Sequence[str]) -> dict[str, Any]:
        """Raises InvalidMapping, which names the layer."""
        from sw.analytic.analysis import InvalidMapping
        from sw.analytic.network import network_record

        records = []
        for layer in layers:
            try:
                records.append(self.record(point, layer))
            except InvalidMapping as error:
                raise InvalidMapping(f"layer {layer.name}: {error}") from None
        return network_record(layers, records)

    def point_record(self, point: Sequence[str]) -> dict[str, Any]:
        """Of a point of a sweep; one that does not fit says why."""
        from sw.analytic.analysis import InvalidMapping
        from sw.analytic.result import invalid_record

        try:
            layers = self.layers(point)
            return self.network(layers, point) if layers else self.record(point, None)
        except InvalidMapping as error:
            return invalid_record(str(error))


def _print_one(
    console: "Console",
    analysis: "Analysis",
    found: "Search | None",
    subjects: Sequence[str],
    out: Path | None,
    report: Path | None,
    extra: dict[str, Any] | None = None,
) -> Outcome:
    from sw.analytic.explain import explain
    from sw.analytic.result import record

    if not console.as_json:
        for note in analysis.spec.notes:
            console.warn(note)
    if out is not None:
        _write(out, analysis, whole=found is None)
    if report is not None:
        _write_report(report, analysis, console.words)
    explanations = [explain(analysis, subject) for subject in subjects]
    document = record(analysis) | (extra or {})
    if found is not None:
        document["search"] = _search_record(found)
    if explanations:
        document["explanations"] = {lines[0]: lines[1:] for lines in explanations}
    console.document(document)
    if not explanations:
        lines = [] if found is None else [_outcome(found), *_nest(analysis), ""]
        console.print("\n".join([*lines, *_summary(analysis)]))
    elif not console.as_json:
        print("\n\n".join("\n".join(lines) for lines in explanations), flush=True)
    if found is not None and found.stopped == "interrupt":
        raise Interrupted(f"the best of {found.evaluations:,} mappings is kept")
    return Outcome()


def _print_points(console: "Console", found: list[tuple[tuple[str, ...], dict[str, Any]]]) -> None:
    """A line for each point of a sweep."""
    documents = [{"set": dict(each.split("=", 1) for each in point), **record} for point, record in found]
    console.document({"points": documents})
    width = max(len(" ".join(point)) for point, _ in found)
    lines = [f"{'':<{width}}{'cycles':>18}{'energy, pJ':>20}{'actual computes':>18}{'utilization':>13}"]
    lines += [f"{' '.join(point):<{width}}{_totals(record)}" for point, record in found]
    console.print("\n".join(lines))


def _print_network(console: "Console", record: dict[str, Any]) -> None:
    """A line for each layer, and their sum."""
    if not console.as_json:
        for note in record["notes"]:
            console.warn(note)
    console.document(record)
    names = [
        f"{layer['name']} x {layer['times']}" if layer["times"] > 1 else layer["name"] for layer in record["layers"]
    ]
    width = max(map(len, (*names, "network")))
    lines = [f"{'':<{width}}{'cycles':>18}{'energy, pJ':>20}{'actual computes':>18}{'utilization':>13}"]
    lines += [f"{name:<{width}}{_totals(layer)}" for name, layer in zip(names, record["layers"], strict=True)]
    console.print("\n".join([*lines, f"{'network':<{width}}{_totals(record)}"]))


def _totals(record: dict[str, Any]) -> str:
    if not record["valid"]:
        return f"  does not fit: {record['reason']}"
    return (
        f"{record['cycles']:>18,}{record['energy_pJ']['total']:>20,.2f}{record['computes']['actual']:>18,}"
        f"{record['utilization']:>13.4f}"
    )


def _check_options(options: dict[str, Any], mapping: Path | None, *, search: bool) -> None:
    given = next((name for name, value in options.items() if value is not None), None)
    if given is not None and not search:
        raise SpecError(f"--{given}: needs --map")
    if options["jobs"] is not None and options["cluster"] is not None:
        raise SpecError(f"--jobs {options['jobs']}: must be left out with --cluster, which has the workers it has")
    if search and mapping is not None:
        raise SpecError(f"--mapping {mapping}: must not stand with --map, which finds a mapping")


def _check_folders(paths: "dict[str, Path | None]") -> None:
    """By option."""
    for option, path in paths.items():
        if path is not None:
            from .output import check_folder

            check_folder(path.parent, option)


def _limited(settings: "Settings", limits: dict[str, Any]) -> "Settings":
    """Options stand above the section ``mapper``."""
    from dataclasses import replace

    from sw.analytic.spec.read_mapper import OBJECTIVES

    given = {name: value for name, value in limits.items() if value is not None and name != "objective"}
    if limits["objective"] is not None:
        given["objectives"] = tuple(limits["objective"].lower().split(","))
        wrong = next((name for name in given["objectives"] if name not in OBJECTIVES), None)
        if wrong is not None:
            raise SpecError(f"--objective {limits['objective']}: {wrong!r}: must be of {', '.join(OBJECTIVES)}")
    return replace(settings, **given)


def _search(spec: "Spec", space: "MapSpace", settings: "Settings", spread: "Spread", *, quiet: bool) -> "Search":
    """With a line of progress that has the best so far, renewed some times a second; where standard error is no terminal, some
    lines in all."""
    from sw.analytic.search import search

    lively = sys.stderr.isatty()
    pause, shown = (0.2, 0.0) if lively else (10.0, time.monotonic())

    def report(found: "Search") -> None:
        nonlocal shown
        if quiet or time.monotonic() - shown < pause:
            return
        shown = time.monotonic()
        print(
            f"\r\033[K{_progress(found)}" if lively else _progress(found),
            end="" if lively else "\n",
            file=sys.stderr,
            flush=True,
        )

    try:
        return search(spec, space, settings, report, spread)
    finally:
        if lively and shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _progress(found: "Search") -> str:
    of = "" if found.size is None else f" of {found.size:,}"
    return f"fiberloom: {found.evaluations:,}{of} mappings, {found.valid:,} valid; best {_value(found)}"


def _value(found: "Search") -> str:
    from sw.analytic.search import OBJECTIVE_UNITS

    pairs = zip(found.objectives, found.value, strict=False)
    return ", ".join(f"{name} {value:,.6g} {OBJECTIVE_UNITS[name]}" for name, value in pairs) or "none"


def _outcome(found: "Search") -> str:
    of = "of more" if found.size is None else f"of {found.size:,}"
    return (
        f"best {_value(found)}; {found.evaluations:,} mappings {of}, {found.valid:,} valid, "
        f"{found.seconds:.1f} s; ended by {found.stopped}"
    )


def _search_record(found: "Search") -> dict[str, Any]:
    return {
        "objectives": dict(zip(found.objectives, found.value, strict=True)),
        "mappings": found.size,
        "evaluations": found.evaluations,
        "valid": found.valid,
        "seconds": found.seconds,
        "ended_by": found.stopped,
    }


def _nest(analysis: "Analysis") -> list[str]:
    """A line for each level, outermost first: loops, outermost first, and tensors that it keeps."""
    from sw.analytic.explain import loops_text

    spec = analysis.spec
    lines = []
    for level in reversed(range(len(spec.architecture.levels))):
        places = [place for place in spec.mapping.places if place.level == level]
        kept = [
            t.name for t, here in zip(spec.workload.problem.tensors, spec.mapping.keeps[level], strict=True) if here
        ]
        keeps = "" if spec.architecture.levels[level].is_spatial else f"; keeps {', '.join(kept) or 'nothing'}"
        lines.append(f"  {spec.architecture.levels[level].name}: {loops_text(analysis, places)}{keeps}")
    return lines


def _write(path: Path, analysis: "Analysis", *, whole: bool) -> None:
    """The whole specification, or the mapping alone."""
    from sw.analytic.spec.write_mapping import mapping_text
    from sw.analytic.spec.write_spec import spec_text, written_sections

    from .output import as_text, write_files

    spec = analysis.spec
    if whole:
        text = spec_text(written_sections(spec.document, path.parent))
    else:
        text = mapping_text(spec.document, spec.mapping, spec.architecture)
    write_files(path.parent, {path.name: as_text(text)})


def _write_report(path: Path, analysis: "Analysis", words: list[str] | None) -> None:
    from sw.report.analysis import render

    from .output import as_text, write_files
    from .pipeline import repeat_command

    write_files(path.parent, {path.name: as_text(render(analysis, repeat_command(words)))}, option="--report")


def _summary(analysis: "Analysis") -> list[str]:
    """Cycles, energy and the traffic of each level, outermost first."""
    spec, computes = analysis.spec, analysis.sparse.computes
    total = sum(analysis.energy.values())
    offered = analysis.cycles.total * spec.architecture.compute.instances
    lines = [
        f"cycles {analysis.cycles.total:,} (compute units alone {analysis.cycles.compute:,}), "
        f"utilization {computes.actual / offered if offered else 0:.4f}",
        f"energy {total:,.2f} pJ: "
        + ", ".join(f"{name} {energy:,.2f}" for name, energy in reversed(analysis.energy.items())),
        f"computes {computes.algorithmic:,}: {computes.actual:,} actual, {computes.gated:,} gated, {computes.skipped:,} skipped",
        "",
        f"{'level.tensor':<28}{'tile':>12}{'most':>12}{'':>10}{'actual':>16}{'gated':>16}{'skipped':>16}",
    ]
    names = [tensor.name for tensor in spec.workload.problem.tensors]
    for level in reversed(range(len(spec.architecture.levels))):
        for number, name in enumerate(names):
            if (level, number) not in analysis.sparse.counters:
                continue
            tile = analysis.sparse.occupancy[level, number]
            head = f"{f'{spec.architecture.levels[level].name}.{name}':<28}{tile.size:>12,}{tile.maximum:>12,}"
            for action in ("reads", "fills", "updates"):
                own = analysis.sparse.counters[level, number].data(action)
                if own.dense:
                    lines.append(f"{head}{action:>10}{own.actual:>16,}{own.gated:>16,}{own.skipped:>16,}")
                    head = " " * 52
    return lines
