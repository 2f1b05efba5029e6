"""Design files: which hardware. Read, checked and refused here, without the hardware library."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from rtl.leaf_lines import leaf_slots, short_leaf_lines
from rtl.storage import PAGE_BYTES, element_count

from .fields import choice, did_you_mean, flag, identifier, integer, number, power_of_two, text, text_or_none

if TYPE_CHECKING or sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "CONFIGS",
    "Design",
    "DesignError",
    "counterpart",
    "design_names",
    "did_you_mean",
    "load_design",
    "written_value",
]

# Next to this package, in the checkout and in an installation.
CONFIGS = Path(__file__).resolve().parent.parent / "configs"

MOST_LINE_BYTES = 128
# Least SRAM lines: what a tile scheme must be able to give to A, to B's FIFO-managed region, to its data and metadata.
MINIMUM_LINES_A = 16
MINIMUM_FIFO_LINES = 4
MINIMUM_LINES_B = 2
MOST_SCRATCH_SLOTS = 32
MOST_BUILT_PES = 256
TIERS = ("rtl", "model", "golden")
GUSTAVSON, WEIGHT_STATIONARY = "gustavson", "weight_stationary"
DATAFLOWS = (GUSTAVSON, "outer", "inner", WEIGHT_STATIONARY)
# Dataflows that have hardware.
BUILT = (GUSTAVSON, WEIGHT_STATIONARY)
# What only weight-stationary PEs have.
STATIONARY_FIELDS = ("vector", "buffer_entries", "acf_a")

# A field, its value, and what it must be.
Complaint = tuple[str, object, str]


class DesignError(Exception):
    """A design that cannot be read or built. The text is one line: file, field, value, what is allowed."""

    exit_code = 2


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Pe(_Section):
    """Processing elements.

    dataflow: intra-tile dataflow. count: how many. merge_radix: leaves that one job merges. value: value type.
    leaf_lines: lines of prefetch for each leaf. queue_lines: lines of each PE's output queue. overflow: what integers
    do beyond their range. subnormals: whether floating point has them. vector: MACs of a weight-stationary PE.
    buffer_entries: of its buffer, a coordinate or a value each. acf_a: A's format on the bus of these PEs.
    """

    dataflow: Annotated[str, choice(*DATAFLOWS)]
    count: Annotated[int, integer(1, 16384)]
    merge_radix: Annotated[int, power_of_two(2, 256)]
    value: Annotated[str, choice("int8", "int16", "int32", "bf16", "fp32")]
    leaf_lines: Annotated[int, power_of_two(1, 64)]
    queue_lines: Annotated[int, integer(1, 8192)]
    overflow: Annotated[str, choice("wrap", "saturate")] = "wrap"
    subnormals: Annotated[str, choice("keep", "flush")] = "keep"
    vector: Annotated[int, power_of_two(1, 32)] = 4
    buffer_entries: Annotated[int, integer(4, 1024)] = 128
    acf_a: Annotated[str, choice("csr", "coo", "dense")] = "csr"

    @property
    def arithmetic(self) -> str:
        """The value type, and how its sums and products depart from the default: ``int8_saturate``, ``bf16_flush``."""
        special = [word for word in (self.overflow, self.subnormals) if word in ("saturate", "flush")]
        return "_".join([self.value, *special])


class Coordinate(_Section):
    """Coordinates. width: bits."""

    width: Annotated[int, choice(32)]


class Buffer(_Section):
    """The banked SRAM that A, B and C share.

    bytes: all of it. banks: lines that can be read in one cycle. fifo_bytes: default size of the FIFO-managed region,
    where overbooked tiles stream their bumped data. line_beats: beats of the bus that make a line, in which units move
    nonzeros: more than one let packed records keep the bus busy.
    """

    bytes: Annotated[int, integer(1, 1 << 30)]
    banks: Annotated[int, power_of_two(1, 64)]
    fifo_bytes: Annotated[int, integer(1, 1 << 30)]
    line_beats: Annotated[int, power_of_two(1, 8)] = 1


class Axi(_Section):
    """The memory bus. data_bits: a beat. outstanding: bursts in flight, each way. burst_beats: the longest burst."""

    data_bits: Annotated[int, choice(128, 256, 512, 1024)]
    address_bits: Annotated[int, integer(32, 64)]
    outstanding: Annotated[int, integer(1, 256)]
    burst_beats: Annotated[int, power_of_two(1, 256)]


class Converter(_Section):
    """MINT. style: separate (b), merged (m), merged with shared arithmetic (mr). prefix_sum: its network.

    conversions: those that it is built for: ``all``, ``figure_8`` (of MINT) or pairs such as ``csr-csc,any-coo``.
    counters: of the transposition, each with a bucket; a pass sorts by log2 of them bits. sram_bytes: of the SRAM in which
    entries are transposed that fit into half of it. lane_bits: of a bus beat for each lane, which converts an entry a cycle.
    """

    style: Annotated[str, choice("none", "b", "m", "mr")]
    prefix_sum: Annotated[str, choice("serial_chain", "work_efficient", "highly_parallel")]
    conversions: Annotated[str, text()] = "all"
    counters: Annotated[int, power_of_two(16, 65536)] = 1024
    sram_bytes: Annotated[int, power_of_two(512, 1 << 24)] = 65536
    lane_bits: Annotated[int, power_of_two(16, 32)] = 32


class Tuning(_Section):
    """dynamic: the tiling controller may change tile shapes during a run."""

    dynamic: Annotated[bool, flag()]


class Clock(_Section):
    """mhz: what constraints ask for and nanoseconds are counted in. asynchronous_reset: ``aresetn`` may change at any time.

    part: on which place and route of the whole design reached ``mhz``; empty where none did. Times are
    given for such a clock alone.
    """

    mhz: Annotated[float, number(1, 10_000)]
    asynchronous_reset: Annotated[bool, flag()] = False
    part: Annotated[str, text_or_none()] = ""


class Dram(_Section):
    """Memory behind the bus, for simulation and models. bandwidth_gbps: 10^9 bytes a second. latency_ns: of a read."""

    bandwidth_gbps: Annotated[float, number(0.001, 100_000)]
    latency_ns: Annotated[float, number(0, 100_000)]


class Memory(_Section):
    """How A, B and C lie in memory. records: ``plain``, 8 bytes a nonzero, or ``packed`` to the bits of coordinate and value.

    converts_a, converts_b: the accelerator takes A, or B, in other formats than its own, too, and converts it on its way in.
    converts_c: it writes C in other formats than its own, too, and converts it on its way out.
    """

    records: Annotated[str, choice("plain", "packed")] = "plain"
    converts_a: Annotated[bool, flag()] = False
    converts_b: Annotated[bool, flag()] = False
    converts_c: Annotated[bool, flag()] = False


class Design(_Section):
    """A checked design. Sections and fields are those of the files in ``configs``.

    ``tiers`` says in which of ``rtl``, ``model`` and ``golden`` the design runs. Left out, it runs in all that its dataflow has.
    """

    name: Annotated[str, identifier()]
    description: Annotated[str, text()]
    tiers: tuple[Annotated[str, choice(*TIERS)], ...] = TIERS
    pe: Pe
    coordinate: Coordinate
    buffer: Buffer
    axi: Axi
    converter: Converter
    tuning: Tuning
    clock: Clock
    dram: Dram
    memory: Memory = Memory()

    @property
    def packed(self) -> bool:
        """Nonzeros lie in memory as packed records."""
        return self.memory.records == "packed"

    @property
    def converts(self) -> str:
        """Tensors that the accelerator converts on their way: some of "abc", in this order."""
        return "".join(tensor for tensor in "abc" if getattr(self.memory, f"converts_{tensor}"))

    @property
    def lanes(self) -> int:
        """Nonzeros in a line: one SRAM word."""
        return int(element_count(self.line_bytes))

    @property
    def bus_bytes(self) -> int:
        """Bytes of a beat of the bus."""
        return self.axi.data_bits // 8

    @property
    def line_bytes(self) -> int:
        """Bytes of a line."""
        return self.bus_bytes * self.buffer.line_beats

    @property
    def burst_lines(self) -> int:
        """Lines of the longest burst."""
        return self.axi.burst_beats // self.buffer.line_beats

    @property
    def sram_lines(self) -> int:
        """Lines of the SRAM."""
        return self.buffer.bytes // self.line_bytes

    @property
    def fifo_lines(self) -> int:
        """Lines of the FIFO-managed region by default."""
        return self.buffer.fifo_bytes // self.line_bytes

    def leaf_slots(self, leaf: int) -> int:
        """Line slots of leaf number ``leaf`` of a job."""
        return leaf_slots(self.pe.leaf_lines, leaf)

    @property
    def short_leaf_lines(self) -> int:
        """Lines of the longest leaf in memory that is short."""
        return short_leaf_lines(self.pe.leaf_lines)

    @property
    def scratch_slots(self) -> int:
        """Rows of more leaves than a job takes that may be in flight: the largest power of two not above the number of PEs."""
        return min(MOST_SCRATCH_SLOTS, 1 << (self.pe.count.bit_length() - 1))

    @property
    def memory_latency_cycles(self) -> int:
        """Clock cycles from a read request to its data."""
        return max(1, -int(-self.dram.latency_ns * self.clock.mhz // 1000))

    @property
    def dram_bytes_per_cycle(self) -> float:
        """What memory can deliver, never more than the bus can carry."""
        return float(min(self.bus_bytes, self.dram.bandwidth_gbps * 1000 / self.clock.mhz))

    @model_validator(mode="before")
    @classmethod
    def _tiers_of_the_dataflow(cls, content: Any) -> Any:
        """Without ``tiers``, designs of dataflows without hardware run in all tiers but ``rtl``."""
        if isinstance(content, dict) and "tiers" not in content:
            pe = content.get("pe")
            if isinstance(pe, dict) and pe.get("dataflow") in DATAFLOWS and pe["dataflow"] not in BUILT:
                return {**content, "tiers": TIERS[1:]}
        return content

    @model_validator(mode="after")
    def _fits_together(self) -> "Design":
        found = [*self._wrong_values(), *self._wrong_sizes(), *self._wrong_tiers()]
        if found:
            raise PydanticCustomError("design", "must fit together", {"complaints": found})
        return self

    def _wrong_values(self) -> Iterator[Complaint]:
        integers = self.pe.value.startswith("int")
        if self.pe.overflow != "wrap" and not integers:
            allowed = f"'wrap' where pe.value is {self.pe.value}: it overflows to infinity"
            yield "pe.overflow", self.pe.overflow, allowed
        if self.pe.subnormals != "keep" and integers:
            yield "pe.subnormals", self.pe.subnormals, f"'keep' where pe.value is {self.pe.value}: it has none"
        if self.packed and self.pe.dataflow not in BUILT:
            yield "memory.records", self.memory.records, f"'plain' where pe.dataflow is {self.pe.dataflow}"
        stationary = self.pe.dataflow == WEIGHT_STATIONARY
        if self.pe.buffer_entries % 2:
            yield "pe.buffer_entries", self.pe.buffer_entries, "even: a coordinate and a value lie side by side"
        for name in STATIONARY_FIELDS:
            if not stationary and (value := getattr(self.pe, name)) != Pe.model_fields[name].default:
                allowed = f"left out: only {WEIGHT_STATIONARY} has it, and pe.dataflow is {self.pe.dataflow}"
                yield f"pe.{name}", value, allowed
        if stationary and self.tuning.dynamic:
            yield (
                "tuning.dynamic",
                True,
                f"false where pe.dataflow is {WEIGHT_STATIONARY}: its tiles are as wide as its PEs",
            )
        for name in ("converts_a", "converts_b", "converts_c"):
            if getattr(self.memory, name) and not self.packed:
                yield f"memory.{name}", True, "false where memory.records is plain"
        if self.memory.converts_b and stationary:
            yield "memory.converts_b", True, f"false where pe.dataflow is {WEIGHT_STATIONARY}: it reads B by columns"

    def _wrong_sizes(self) -> Iterator[Complaint]:
        if self.axi.burst_beats * self.bus_bytes > PAGE_BYTES:
            most = PAGE_BYTES // self.bus_bytes
            yield "axi.burst_beats", self.axi.burst_beats, f"at most {most}: AXI bursts stay in 4 KiB"
        most_beats = min(MOST_LINE_BYTES // self.bus_bytes, self.axi.burst_beats)
        if self.buffer.line_beats > most_beats:
            allowed = f"at most {most_beats}: a line is {MOST_LINE_BYTES} bytes and a burst at most"
            yield "buffer.line_beats", self.buffer.line_beats, allowed
            return  # what follows depends on the line
        line = self.line_bytes
        if self.buffer.fifo_bytes % line:
            yield "buffer.fifo_bytes", self.buffer.fifo_bytes, f"a multiple of the line, {line} bytes"
        free = self.sram_lines - MINIMUM_LINES_A - MINIMUM_LINES_B
        if self.buffer.bytes % (line * self.buffer.banks):
            yield "buffer.bytes", self.buffer.bytes, f"a multiple of {self.buffer.banks} banks of {line}-byte lines"
        elif self.sram_lines < 2 * self.buffer.banks:
            yield "buffer.banks", self.buffer.banks, f"at most {self.sram_lines // 2}: two lines a bank at least"
        elif free < MINIMUM_FIFO_LINES:
            least = (MINIMUM_LINES_A + MINIMUM_LINES_B + MINIMUM_FIFO_LINES) * line
            yield "buffer.bytes", self.buffer.bytes, f"at least {least}: the smallest partitions of A and B"
        elif not self.buffer.fifo_bytes % line and not MINIMUM_FIFO_LINES <= self.fifo_lines <= free:
            allowed = f"between {MINIMUM_FIFO_LINES * line} and {free * line}: the rest holds A and B"
            yield "buffer.fifo_bytes", self.buffer.fifo_bytes, allowed

    def _wrong_tiers(self) -> Iterator[Complaint]:
        if not self.tiers or len(set(self.tiers)) != len(self.tiers):
            yield "tiers", list(self.tiers), "one or more different names"
        # What the hardware of this version lacks.
        if "rtl" in self.tiers and self.pe.dataflow not in BUILT:
            allowed = f"one of {', '.join(map(repr, BUILT))} where tiers has 'rtl': the others have no hardware"
            yield "pe.dataflow", self.pe.dataflow, allowed
        if "rtl" in self.tiers and self.pe.count > MOST_BUILT_PES:
            yield "pe.count", self.pe.count, f"at most {MOST_BUILT_PES} where tiers has 'rtl'"


def counterpart(design: Design) -> Design:
    """The design with the other of the two engines that have hardware, and as many MACs: all else is the same.

    Weight-stationary PEs have one MAC each there, since A comes a nonzero a cycle. Raises DesignError where a field of
    ``design`` excludes that engine.
    """
    content = design.model_dump()
    pe = content["pe"]
    if design.pe.dataflow == GUSTAVSON:
        pe |= {"dataflow": WEIGHT_STATIONARY, "vector": 1}
        content["tuning"]["dynamic"] = False
    elif design.pe.dataflow == WEIGHT_STATIONARY:
        pe |= {"dataflow": GUSTAVSON, "count": design.pe.count * design.pe.vector}
        pe |= {name: Pe.model_fields[name].default for name in STATIONARY_FIELDS}
    else:
        raise DesignError(f"pe.dataflow = {design.pe.dataflow!r}: must be one of {', '.join(map(repr, BUILT))}")
    content["name"] = f"{design.name}_{pe['dataflow']}"
    content["description"] = f"{design.name} with pe.dataflow = {pe['dataflow']} and as many MACs"
    content["clock"]["part"] = ""
    try:
        return Design.model_validate(content)
    except ValidationError as error:
        raise DesignError(_in_one_line(list(_complaints(error)), _Read(content), content["name"], {})) from None


def design_names() -> list[str]:
    """The designs that come with Fiberloom."""
    return sorted(path.stem for path in CONFIGS.glob("*.toml"))


def load_design(config: str | Path, changes: Sequence[str] = ()) -> Design:
    """Reads a design.

    Parameters
    ----------
    config: name of a shipped design, or the path of a TOML file. ``base`` in a file names another design, whose fields it has
        where it says nothing else.
    changes: ``section.field=value`` each; a value that is not TOML is taken as text.

    Raises DesignError, with everything that is wrong.
    """
    path, shown = _find(str(config), f"--config {config}")
    read = _read(path, shown, ())
    sources: dict[str, str] = {}
    for change in changes:
        sources[_apply(read.content, change)] = f"--set {change}"
    try:
        return Design.model_validate(read.content)
    except ValidationError as error:
        raise DesignError(_in_one_line(list(_complaints(error)), read, shown, sources)) from None


@dataclass(frozen=True)
class _Read:
    """What a file and its bases say; ``places``: of each field that comes from a base, that file's name."""

    content: dict[str, Any]
    places: dict[str, str] = field(default_factory=dict)


def _read(path: Path, shown: str, above: tuple[Path, ...]) -> _Read:
    """A file over its base. ``above``: files that have it as their base."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DesignError(f"{shown}: cannot be read ({error.strerror or error})") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DesignError(f"{shown}: not a TOML file ({error})") from None
    if "base" not in content:
        return _Read(content)
    base = content.pop("base")
    label = f"{shown}: base = {_written(base)}"
    if not isinstance(base, str):
        raise DesignError(f"{label}: must be the name of a design or of a TOML file")
    # A file is looked for beside the one that names it.
    below, called = _find(base if base in design_names() else str(path.parent / base), label)
    if below.resolve() in {other.resolve() for other in (*above, path)}:
        raise DesignError(f"{label}: must be another design: these files are each other's base")
    under = _read(below, called, (*above, path))
    places = {name: under.places.get(name, called) for name in _names_in(under.content)}
    merged = _over(under.content, content)
    if "name" not in content:
        merged["name"] = re.sub(r"[^A-Za-z0-9_-]", "_", path.stem)
    if "description" not in content:
        differs = [f"{name} = {_written(value)}" for name, value in _leaves(content) if name != "name"]
        merged["description"] = f"{under.content.get('name')}, but {', '.join(differs)}" if differs else f"as {base}"
    own = {"name", "description", *_names_in(content)}
    return _Read(merged, {name: place for name, place in places.items() if name not in own})


def _over(below: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """The content, and what it does not say as below."""
    merged = dict(below)
    for name, value in content.items():
        tables = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _over(merged[name], value) if tables else value
    return merged


def _leaves(content: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Fields by their dotted names, with their values."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _names_in(content: Mapping[str, Any]) -> list[str]:
    return [name for name, _ in _leaves(content)]


def _find(config: str, label: str) -> tuple[Path, str]:
    """The file, and its name for errors; ``label`` is where the design was asked for."""
    names = design_names()
    if config in names:
        return CONFIGS / f"{config}.toml", f"configs/{config}.toml"
    path = Path(config)
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "no such design"
        hint = did_you_mean(path.name, names)
        raise DesignError(f"{label}: {what}: must be one of {', '.join(names)} or a TOML file{hint}")
    if not path.is_file():  # reading a pipe without a writer would never end
        raise DesignError(f"{label}: must be a file, not a folder, a pipe or a device")
    return path, config


def _apply(content: dict[str, Any], change: str) -> str:
    """Writes one change into the content; returns the field it names."""
    name, equals, value = change.partition("=")
    name = name.strip()
    parts = name.split(".")
    if not equals or not all(parts):
        raise DesignError(f"--set {change}: must be section.field=value")
    target: Any = content
    for part in parts[:-1]:
        target = target.setdefault(part, {})
        if not isinstance(target, dict):
            raise DesignError(f"--set {change}: {part} has no fields")
    target[parts[-1]] = written_value(value.strip())
    return name


def written_value(written: str) -> Any:
    """What ``--set`` makes of a value: TOML's, and text where it is no TOML."""
    try:
        parsed = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError:
        return written
    return parsed["value"] if set(parsed) == {"value"} else written


def _complaints(error: ValidationError) -> Iterator[Any]:
    """What is wrong, one after the other; of fields that do not fit together one each."""
    for one in error.errors(include_url=False):
        for name, value, allowed in one.get("ctx", {}).get("complaints", ()):
            yield {"type": "design", "loc": tuple(name.split(".")), "input": value, "msg": f"must be {allowed}"}
        if "complaints" not in one.get("ctx", {}):
            yield one


def _in_one_line(found: list[Any], read: _Read, shown: str, sources: Mapping[str, str]) -> str:
    """Everything that is wrong; the file's name once."""
    missing = [".".join(map(str, one["loc"])) for one in found if one["type"] == "missing"]
    texts = []
    if len(missing) > 1:
        texts.append(f'{shown}: {", ".join(missing)}: are missing (with base = "edge" a file says only what differs)')
        found = [one for one in found if one["type"] != "missing"]
    # One mistake in a value that several fields depend on is told once.
    texts += dict.fromkeys(_explain(one, read, shown, sources) for one in found)
    return "; ".join(texts[:1] + [text.removeprefix(f"{shown}: ") for text in texts[1:]])


def _explain(one: Any, read: _Read, shown: str, sources: Mapping[str, str]) -> str:
    """A complaint, with the field, the value and what is allowed."""
    location = [str(part) for part in one["loc"] if not isinstance(part, int)]
    name = ".".join(location)
    change = next((text for given, text in sources.items() if given == name or given.startswith(f"{name}.")), None)
    if one["type"] == "missing":
        return f"{shown}: {name}: is missing{_described(location)}"
    if one["type"] == "extra_forbidden":
        known = _fields(location[:-1])
        hint = did_you_mean(location[-1], known)
        return f"{change or f'{shown}: {name}'}: no such field: must be one of {', '.join(known)}{hint}"
    allowed = str(one.get("ctx", {}).get("error", one["msg"]))
    if one["type"] in ("model_type", "model_attributes_type", "dict_type"):
        allowed = f"must be a table with {', '.join(_fields(location))}"
    elif one["type"] == "tuple_type":
        allowed = "must be a list"
    if change:
        return f"{change}: {allowed}"
    # The field may be right in the file and refused because of another field that was changed.
    beside = f" with {' '.join(sources.values())}" if sources else ""
    place = read.places.get(name, shown)
    # A field of the base may be right there, and wrong with what stands over it.
    over = f" under {shown}" if place != shown else ""
    return f"{place}{over}{beside}: {name} = {_written(one['input'])}: {allowed}"


def _written(value: object) -> str:
    """A value as the file would write it, cut when long."""
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _fields(path: Iterable[str]) -> list[str]:
    """Fields of the section at ``path``."""
    model: type[BaseModel] = Design
    for part in path:
        inner = model.model_fields[part].annotation if part in model.model_fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)


def _described(path: Sequence[str]) -> str:
    known = _fields(path)
    return f" (a table with {', '.join(known)})" if known else ""
