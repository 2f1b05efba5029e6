"""The points of a sweep: every design with every tiling, engine and operand pair, and the digest that names each result."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sw import plugins
from sw.operands import UserError
from sw.sources import source_digest

from .memory_formats import ACCELERATORS_OWN, OPTION_NAMES, MemoryFormats

if TYPE_CHECKING:
    from gen.design import Design

__all__ = ["Point", "Task", "Variation", "code_version", "find_operands", "tasks", "variations"]

# Packages whose source a result depends on, by engine.
ROOMS = {"golden": ("gen", "sw"), "model": ("gen", "sw"), "rtl": ("gen", "rtl", "sw")}


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run, as plain data that can be sent to any process.

    Parameters
    ----------
    config, settings: the design's name, and what was varied in it and in formats, for people. design: its fields.
    words: of a command that has this design and these formats. formats: that A, B and C are kept in, and bits of a run.
    a, b: operands as typed, files by absolute path; ``b`` is None for A itself.
    digests: of the content of both, in that order.
    tiling, engine, seed, budget, most_tiles, transpose_a, transpose_b, as_stored: as the options of ``compare``.
    version: of the code that runs it.
    plugins: path and text of each file with policies of a user's own.
    """

    config: str
    settings: str
    words: tuple[str, ...]
    design: dict[str, Any]
    formats: tuple[Any, ...]
    a: str
    b: str | None
    digests: tuple[str, ...]
    tiling: str
    engine: str
    seed: int
    budget: int | None
    most_tiles: int
    transpose_a: bool
    transpose_b: bool
    as_stored: bool
    version: str
    plugins: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """The digest of everything that the result depends on; names of files and designs are not part of it."""
        content = asdict(self)
        for name in ("config", "settings", "words", "a", "b", "plugins"):
            del content[name]
        # Only where there are some: results of other sweeps keep their names.
        content |= {"own": [text for _, text in self.plugins]} if self.plugins else {}
        content["second"] = self.b is not None
        content["design"] = {k: v for k, v in self.design.items() if k != "description"}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def pair(self) -> tuple[Any, ...]:
        """The fields that decide which operands are loaded."""
        return self.digests, self.b is None, self.transpose_a, self.transpose_b, self.as_stored


@cache
def code_version(tier: str) -> str:
    """The installed version and a digest of the source that the tier's results come from."""
    from importlib import metadata

    try:
        version = metadata.version("fiberloom")
    except metadata.PackageNotFoundError:
        version = "unknown"
    return f"{version}-{source_digest(ROOMS[tier])}"


def find_operands(given: Iterable[str]) -> list[tuple[str, str | None]]:
    """Operand pairs: ``A``, or ``A,B``; patterns match files, PyAMG's examples, and data sets already downloaded.

    Raises UserError for a pattern that matches nothing.
    """
    found: dict[tuple[str, str | None], None] = {}
    for word in given:
        left, comma, right = word.partition(",")
        if comma and not Path(word).exists() and not has_magic(word):
            found[left, right] = None
            continue
        names = _matches(word)
        if not names:
            raise UserError(f"{word}: matches no operand")
        found.update(dict.fromkeys((name, None) for name in names))
    return list(found)


def _matches(word: str) -> list[str]:
    if not has_magic(word) or Path(word).exists():
        return [word]
    from sw.operands.collections import catalogue, is_kept
    from sw.operands.examples import pyamg_names
    from sw.operands.networks import split_weight, weight_names

    if (weight := split_weight(word)) is not None and weight[1]:
        path, pattern = weight
        names = weight_names(path, word)
        return [f"{path}:{name}" for name in names if fnmatchcase(name, pattern)] or (
            [word] if pattern in names else []
        )
    if ":" in word:
        names = [f"pyamg:{name}" for name in pyamg_names()]
        names += [entry.spec for entry in catalogue() if entry.source != "frostt" and is_kept(entry)]
        return [name for name in names if fnmatchcase(name, word)]
    return sorted(glob(word, recursive=True))


@dataclass(frozen=True, kw_only=True)
class Variation:
    """A design and formats of the sweep: its name, what varies, and the checked design or the reason why there is none.

    ``words``: of a command that has them.
    """

    config: str
    settings: str
    words: tuple[str, ...]
    formats: MemoryFormats
    design: "Design | None"
    complaint: str = ""


def variations(
    configs: list[str], settings: list[str], value: str | None, formats: Sequence[MemoryFormats] = (ACCELERATORS_OWN,)
) -> list[Variation]:
    """Every design with every combination of settings and all formats; ``SECTION.FIELD=V1,V2`` is two settings.

    Raises UserError when none is one.
    """
    from gen.design import design_names, did_you_mean

    from .pipeline import load_design, refuse_contradiction

    names: dict[str, None] = {}
    for word in [word for text in configs for word in text.split(",")]:
        shipped = [name for name in design_names() if fnmatchcase(name, word)]
        files = sorted(glob(word)) if has_magic(word) else []
        if has_magic(word) and not shipped + files:
            hint = did_you_mean(word, design_names())
            allowed = f"{', '.join(design_names())} or files{hint}"
            raise UserError(f"--config {word}: matches no design: must be one of {allowed}")
        names.update(dict.fromkeys(shipped or files or [word]))
    axes: dict[str, list[str]] = {}
    for setting in settings:
        field, equals, values = setting.partition("=")
        if not equals or not values:
            raise UserError(f"--set {setting}: must be SECTION.FIELD=VALUE,...")
        axes.setdefault(field.strip(), []).extend(text.strip() for text in values.split(","))
    refuse_contradiction(value, [f"pe.value={text}" for text in axes.get("pe.value", [])])
    texts = [dict.fromkeys(kept.options.get(name) for kept in formats) for name in OPTION_NAMES]
    several = {name for name, given in zip(OPTION_NAMES, texts, strict=True) if len(given) > 1}
    found = []
    for config in names:
        _check_kinds(config, axes, value)
        for chosen, kept in itertools.product(itertools.product(*axes.values()), formats):
            changes = [f"{field}={text}" for field, text in zip(axes, chosen, strict=True)]
            varied = [text for text in changes if len(axes[text.partition("=")[0]]) > 1]
            varied += [f"{name}={text}" for name, text in kept.options.items() if name in several]
            words = [word for change in changes for word in ("--set", change)]
            words += ["--value", value] if value is not None else []
            words += [word for name, text in kept.options.items() for word in (f"--{name}", text)]
            try:
                design, complaint = load_design(config, kept.settings(changes), value), ""
            except UserError as error:
                design, complaint = None, str(error)
            label = Path(config).stem if config.endswith(".toml") else config
            found.append(
                Variation(
                    config=label, settings=" ".join(varied), words=tuple(words), formats=kept, design=design,
                    complaint=complaint,
                )
            )  # fmt: skip
    if all(variation.design is None for variation in found):
        raise UserError(found[0].complaint)
    return found


def _check_kinds(config: str, axes: dict[str, list[str]], value: str | None) -> None:
    """Refuses a value that no design could have in its field: text for a number, a number for a name.

    One that is out of range here, or that does not go with the others, is a point that fails. Raises UserError.
    """
    from gen.design import DesignError, load_design, written_value

    from .pipeline import load_design as checked

    try:
        base = load_design(config).model_dump(mode="json")
    except DesignError:
        return  # said of each of its points
    for field, texts in axes.items():
        present: Any = base
        for part in field.split("."):
            present = present.get(part) if isinstance(present, dict) else None
        kinds = (int, float) if isinstance(present, float) else (type(present),)
        for text in texts:
            if present is not None and type(written_value(text)) not in kinds:
                checked(config, [f"{field}={text}"], value)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A point with its names in the sweep's table; ``complaint`` is the reason when it cannot begin."""

    names: dict[str, Any]
    point: Point | None
    complaint: str = ""


def tasks(
    designs: list[Variation],
    tilings: list[str],
    engines: list[str],
    pairs: list[tuple[str, str | None]],
    **common: Any,
) -> list[Task]:
    """Every combination; those of one operand pair follow one another. ``common``: the other fields of ``Point``."""
    from sw.operands.identity import fingerprint

    found = []
    for a, b in pairs:
        digests, trouble = [], ""
        try:
            digests = [fingerprint(spec) for spec in (a, b) if spec is not None]
        except UserError as error:
            trouble = str(error)
        for varied, engine, tiling in itertools.product(designs, engines, tilings):
            names: dict[str, Any] = {
                "a": a,
                "b": b or a,
                "design": varied.config,
                "settings": varied.settings,
                "tiling": tiling,
            }
            names |= {
                name.replace("-", "_"): given for name, given in zip(OPTION_NAMES, varied.formats.given, strict=True)
            }
            names |= {"engine": engine, "seed": common["seed"], "kept": False}
            if trouble or varied.design is None:
                found.append(Task(names=names, point=None, complaint=trouble or varied.complaint))
                continue
            point = Point(
                config=varied.config,
                settings=varied.settings,
                words=varied.words,
                formats=varied.formats.given,
                design=varied.design.model_dump(mode="json"),
                a=_anywhere(a),
                b=None if b is None else _anywhere(b),
                digests=tuple(digests),
                tiling=tiling,
                engine=engine,
                version=code_version(engine),
                plugins=tuple(plugins.sources()),
                **common,
            )
            found.append(Task(names=names | {"key": point.key}, point=point))
    return found


def _anywhere(spec: str) -> str:
    """The operand by a name that works in another folder."""
    return str(Path(spec).resolve()) if Path(spec).exists() else spec
