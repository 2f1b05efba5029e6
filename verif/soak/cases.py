"""The soak's cases: each is a function of a seed and a number, whatever ran before it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gen.design import Design
from sw.formats.csr import Csr
from sw.formats.storage import storage_format
from sw.model.tier import simulate
from sw.plan.kept_matrix import KeptMatrix
from sw.plan.plan import Plan, plan
from sw.plan.tiles_of_b import passes_over
from sw.runtime.registers import CONVERTED
from sw.runtime.simulation.loader import CHANNELS, BusTiming
from sw.scheme.errors import SchemeError
from sw.scheme.scheme import Scheme
from sw.scheme.terms import WEIGHT_STATIONARY

from .conversions import MOST_BYTES, Kept, draw_conversions
from .designs import ATTEMPTS, design_of, weight
from .golden import golden_of, walk_of
from .operands import Limits, draw_operands
from .schemes import ALONG_I, KINDS, PLAIN, TILES, TUNED, Budget, draw_scheme

__all__ = ["CASES_PER_DESIGN", "DISTURBANCES", "PLACEMENTS", "Case", "Disturbance", "Product", "make_case"]

# Numbers that a design has; time ends a design's turn before.
CASES_PER_DESIGN = 10_000
# Of `tiny`, in a memory that does not slow it down.
MOST_MACS = 100_000
MOST_NONZEROS = 600_000
MOST_CYCLES = 400_000
LATENCIES = (1, 5, 40, 40, 150, 700, 2000, 5000)
SLOW = 300
FEW_MACS = 300
# Share of cases whose schemes are to have a thousand tiles, on designs that are simulated quickly.
MANY_TILES = 0.15
LIGHT = 6.0
# One run; several without a reset; runs that are disturbed, and one after them.
PLANS = {"one run": 9, "several runs": 5, "disturbed": 8}
DISTURBANCES = ("read error", "write error", "pin reset", "soft reset", "wrong operand", "wrong operand")
# Where images begin: at the bottom, across 4 GiB or above it, at the top of the address space.
PLACEMENTS = ("low", "across 4 GiB", "high", "top")
CALM_FREEZES = 0.8


@dataclass(frozen=True)
class Disturbance:
    """What spoils a run.

    Parameters
    ----------
    kind: one of ``DISTURBANCES``.
    share: when, as a share of the beats or cycles of an undisturbed run.
    seed: of all else that is drawn.
    """

    kind: str
    share: float
    seed: int


@dataclass(frozen=True)
class Freeze:
    """Channels of the memory that do nothing for ``cycles`` cycles; ``share``: when, as a share of the model's cycles."""

    share: float
    cycles: int
    channels: tuple[str, ...]


@dataclass(frozen=True)
class Product:
    """One multiplication: operands, how it is tiled, in which order partitions lie in the SRAM.

    ``kind``: of the scheme, one of ``KINDS``; ``size``, ``values``: of the operands; ``gaps``: lines left free below each
    partition; ``formats``: of tensors, "a", "b" and "c", that are converted on their way.
    """

    a: Csr
    b: Csr
    scheme: Scheme
    kind: str
    size: str
    values: str
    partitions: str
    gaps: tuple[int, ...]
    text: str
    formats: tuple[tuple[str, str], ...] = ()

    def planned(self, design: Design) -> Plan[Csr]:
        """What the hardware meets."""
        made = plan(self.scheme, self.a, self.b, design)
        kept: dict[str, Any] = {
            f"stored_{tensor}": KeptMatrix.of(self.tensor(tensor, design), kind) for tensor, kind in self.formats
        }
        return replace(made, **kept)

    def tensor(self, name: str, design: Design) -> Csr:
        """A, B or the golden C."""
        if name != "c":
            return self.a if name == "a" else self.b
        walk = walk_of(design, self.a, self.b, self.scheme)
        return golden_of(design, self.a, self.b, self.scheme, walk).structural

    @property
    def macs(self) -> int:
        """Effectual multiplications."""
        return int(np.diff(self.b.pointers)[self.a.coordinates].sum())

    def bases(self, line_bytes: int) -> dict[str, int]:
        """First SRAM line of each tensor's partition."""
        found, at = {}, 0
        for tensor, gap in zip(self.partitions, self.gaps, strict=True):
            found[tensor] = at + gap
            at = found[tensor] + self.scheme.buffer_bytes[tensor] // line_bytes
        return found


@dataclass(frozen=True)
class Step:
    """A run of product number ``product``, good unless it is disturbed."""

    product: int
    disturbance: Disturbance | None = None
    freezes: tuple[Freeze, ...] = ()


@dataclass(frozen=True)
class Case:
    """Runs on one machine, one after the other.

    Parameters
    ----------
    name: ``SEED:NUMBER``, from which :func:`make_case` makes it again.
    design, timing: what runs, with which memory. placement: one of ``PLACEMENTS``, ``offset`` a share that goes with it.
    products, steps: what is multiplied, in which order; the last step is good.
    plan: one of ``PLANS``.
    conversions: of tensors of the products, after the runs.
    """

    name: str
    design: Design
    timing: BusTiming
    placement: str
    offset: float
    products: tuple[Product, ...]
    steps: tuple[Step, ...]
    plan: str
    conversions: tuple[Kept, ...] = ()

    @cached_property
    def text(self) -> str:
        """For people, on one line."""
        steps = ", ".join(
            f"{step.product}{f' with {step.disturbance.kind}' if step.disturbance else ''}" for step in self.steps
        )
        products = "; ".join(f"[{n}] {product.text}" for n, product in enumerate(self.products))
        converted = "".join(f"; {kept.text}" for kept in self.conversions)
        return f"{products}; runs {steps}; memory {self.placement}, {self.timing}{converted}"


def make_case(seed: int, number: int, schemes: Sequence[str] = KINDS) -> Case:
    """Case ``number`` of a seed; its design is that of all cases with the same ``number // CASES_PER_DESIGN``.

    ``schemes``: those of ``KINDS`` that are drawn.
    """
    turn, index = divmod(number, CASES_PER_DESIGN)
    design = design_of(seed, turn)
    rng = random.Random(f"{seed} case {number}")
    numbers = np.random.default_rng([seed, number])
    plan = rng.choices(tuple(PLANS), tuple(PLANS.values()))[0]
    many = weight(design) < LIGHT and rng.random() < MANY_TILES
    timing = _quick(rng) if many else _timing(rng)
    # Kinds take turns, in another order for each design: so even a few cases of a design have most of them.
    kinds = random.Random(f"{seed} kinds {turn} {index // len(schemes)}").sample(schemes, len(schemes))
    wanted = [kinds[index % len(schemes)]]
    count = 1 if plan == "one run" else rng.randint(2, 3) if plan == "several runs" else rng.randint(1, 2)
    wanted += [rng.choice(schemes) for _ in range(count - 1)]
    runs = 1 if plan == "one run" else 3 if plan == "several runs" else 4
    products = tuple(_product(design, kind, timing, runs, many, rng, numbers) for kind in wanted)
    if plan != "disturbed":  # operands that are spoiled lie as the accelerator has them
        stored = random.Random(f"{seed} stored {number}")
        products = tuple(_stored(product, design, stored) for product in products)
    return Case(
        name=f"{seed}:{number}",
        design=design,
        timing=timing,
        placement=rng.choice(PLACEMENTS),
        offset=rng.random(),
        products=products,
        steps=_steps(plan, count, rng),
        plan=plan,
        conversions=draw_conversions(design, count, random.Random(f"{seed} conversions {number}")),
    )


def _steps(plan: str, count: int, rng: random.Random) -> tuple[Step, ...]:
    if plan == "disturbed":
        found = [Step(0)]
        for _ in range(rng.randint(1, 3)):
            kind = rng.choice(DISTURBANCES)
            found.append(Step(0, Disturbance(kind, rng.random(), rng.randrange(1 << 32))))
            if rng.random() < 0.3:
                found.append(Step(rng.randrange(count)))
        return (*found, Step(rng.randrange(count)))
    order = list(range(count))
    if plan == "several runs":
        rng.shuffle(order)
        order += [rng.randrange(count) for _ in range(rng.randint(0, 2))]
    return tuple(Step(n, None, _freezes(rng)) for n in order)


def _freezes(rng: random.Random) -> tuple[Freeze, ...]:
    """Mostly none. The longest is longer than the patience of the machine's watchdog."""
    if rng.random() < CALM_FREEZES:
        return ()
    names = [tuple(rng.sample(CHANNELS, rng.randint(1, len(CHANNELS)))) for _ in range(rng.randint(1, 3))]
    return tuple(Freeze(rng.random(), rng.choice((300, 3000, 10_000, 70_000)), channels) for channels in names)


def _timing(rng: random.Random) -> BusTiming:
    if rng.random() < 0.2:
        return BusTiming()
    latency = rng.choice(LATENCIES)
    return BusTiming(
        read_latency=latency,
        write_latency=rng.choice(LATENCIES),
        jitter=rng.choice((0, 10, 60, 400)),
        write_jitter=rng.choice((0, 0, 50, 700, 3000)),
        # One burst at a time in the slowest memory takes all the time there is for next to nothing.
        outstanding=rng.choice((4, 16, 64, 64))
        if latency > SLOW and rng.random() < 0.8
        else rng.choice((1, 2, 4, 16, 64)),
        beats_per_cycle=rng.choice((0.3, 1.0, 1.0, 2.0)),
        stall=rng.choice((0.0, 0.0, 0.1, 0.4)),
        reorder=rng.random() < 0.6,
        seed=rng.randint(0, 2**31),
    )


def _quick(rng: random.Random) -> BusTiming:
    """A memory in which visits of tiles cost little."""
    return BusTiming(
        read_latency=rng.choice((1, 5, 20)),
        write_latency=rng.choice((1, 20)),
        jitter=rng.choice((0, 10)),
        write_jitter=rng.choice((0, 0, 100)),
        outstanding=rng.choice((4, 64)),
        reorder=rng.random() < 0.5,
        seed=rng.randint(0, 2**31),
    )


def _as_modelled(design: Design, timing: BusTiming) -> Design:
    """The design with this memory, as far as the model can have it."""
    latency = timing.read_latency + timing.jitter / 2
    rate = min(1.0, timing.beats_per_cycle) * (1 - timing.stall) ** 2
    # The model has one latency. Bursts to write are held up by their acknowledgements as those to read are by their answers;
    # half of all bursts at most are such.
    held = max(latency, (timing.write_latency + timing.write_jitter / 2) / 2)
    rate = min(rate, min(16, design.axi.burst_beats) * timing.outstanding / held)
    dram = design.dram.model_copy(
        update={
            "latency_ns": latency * 1000 / design.clock.mhz,
            "bandwidth_gbps": rate * design.bus_bytes * design.clock.mhz / 1000,
        }
    )
    return design.model_copy(update={"dram": dram})


def _product(
    design: Design,
    kind: str,
    timing: BusTiming,
    runs: int,
    many: bool,
    rng: random.Random,
    numbers: np.random.Generator,
) -> Product:
    """Operands and a scheme of the kind, which take seconds in all runs together. ``many``: a thousand tiles, where they have so
    many."""
    if design.pe.dataflow == WEIGHT_STATIONARY:
        kind = PLAIN.get(kind, kind)
    elif not design.tuning.dynamic:
        kind = TUNED.get(kind, kind)
    cycles = MOST_CYCLES / weight(design) ** 0.75 / runs**0.5
    modelled = _as_modelled(design, timing)
    slowness = design.bus_bytes / modelled.dram_bytes_per_cycle
    share = cycles / MOST_CYCLES / slowness
    visit = 80 + 4 * timing.read_latency + 2 * (timing.write_latency + timing.write_jitter / 2) + 2 * timing.jitter
    for attempt in range(ATTEMPTS):
        # Of the same kind, smaller and smaller where the larger ones cannot be: they would not fit, or take too long. Where
        # nothing is quick enough, because every access takes thousands of cycles, a little more time as well.
        scale, patience = share / (1 + attempt / 8), 1 + attempt / 20
        visits, sweeps = int(2 * cycles * patience / visit), int(cycles * patience / slowness)
        tiles = TILES[-1] if many else rng.choice(TILES)
        budget = Budget(visits=max(4, visits), sweeps=max(2000, sweeps), tiles=tiles)
        most = Limits(macs=max(60, int(MOST_MACS * scale)), nonzeros=max(60, int(MOST_NONZEROS * scale)))
        sizes = () if not many else ("medium", "large") if kind in ALONG_I else ("small", "medium")
        operands = draw_operands(design.pe.value, most, rng, numbers, sizes)
        macs = int(np.diff(operands.b.pointers)[operands.a.coordinates].sum())
        # Products of next to nothing are worth a few cases.
        if macs < min(FEW_MACS, most.macs // 4) and rng.random() < 0.8:
            continue
        for _ in range(4):
            try:
                scheme = draw_scheme(kind, design, operands.a, operands.b, budget, rng)
            except SchemeError:
                continue
            if (simulate(modelled, plan(scheme, operands.a, operands.b, modelled)).cycles or 0) > cycles * patience:
                break
            free = design.sram_lines - sum(scheme.buffer_bytes.values()) // design.line_bytes
            gaps = [rng.randint(0, free // 3) for _ in "ABC"]
            text = f"{operands.text}; {kind}: {_words(scheme, design)}"
            partitions = "".join(rng.sample("ABC", 3))
            a, b = operands.a, operands.b
            return Product(a, b, scheme, kind, operands.size, operands.values, partitions, tuple(gaps), text)
    raise RuntimeError(f"no operands and scheme found for {kind} on {design.model_dump_json()}")


def _stored(product: Product, design: Design, rng: random.Random) -> Product:
    """With formats for tensors that the design and the scheme convert on their way, most of the times."""
    b, found = product.b, []
    extent = product.a.rows, b.columns, b.rows
    for tensor in design.converts:
        if not passes_over(tensor.upper(), product.scheme, extent, b, design) or rng.random() >= 0.8:
            continue
        matrix = product.tensor(tensor, design)
        bare = tensor == "c" or matrix.without_zeros().nnz == matrix.nnz
        kind = rng.choice([kind for kind in CONVERTED if bare or storage_format(kind).keeps_zeros])
        if KeptMatrix.of(matrix, kind).kept.layout.bytes <= MOST_BYTES:
            found.append((tensor, kind))
    text = "".join(f"; {tensor.upper()} in {kind}" for tensor, kind in found)
    return replace(product, formats=tuple(found), text=product.text + text)


def _words(scheme: Scheme, design: Design) -> str:
    lines = "/".join(str(scheme.buffer_bytes[tensor] // design.line_bytes) for tensor in "ABC")
    strips = f", {scheme.strips} strips" if scheme.strips else ""
    return f"{scheme.order} {scheme.T_i}x{scheme.T_k}x{scheme.T_j} (i x k x j), lines {lines}{strips}"
