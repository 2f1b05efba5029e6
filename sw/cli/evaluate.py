"""One tiling of one multiplication on one design, from the policy to the result record: what ``compare`` and ``sweep`` repeat."""

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from sw.engine_result import EngineResult, Progress
from sw.operands import UserError

from .memory_formats import ACCELERATORS_OWN, Conversions, MemoryFormats
from .pipeline import (
    BEST,
    HIGH,
    NORMAL,
    SchemeChoice,
    choose_scheme,
    engine_seconds,
    golden_product,
    interruptible,
    load_operands,
    make_plan,
    plain,
    refuse_without_hardware,
    run_engine,
    verify,
)
from .timing import Stopwatch, timed

if TYPE_CHECKING:
    from gen.design import Design
    from sw.formats.csr import Csr
    from sw.golden.compare import Check
    from sw.golden.spgemm import Product
    from sw.operands import Operand
    from sw.scheme.scheme import Scheme

__all__ = ["Bench", "Evaluation", "Tiling", "check_budget", "evaluate", "parse_tilings"]

TUNING = "tuning"
# Policies that take longer than all others together: run when they are named, or matched by a pattern.
EXHAUSTIVE = ("optimal",)


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """A policy with its variants, as a user names it: ``hyte``, ``hyte+tuning``, ``auto+uneven``, ``auto+greedy``.

    ``tuning``: the shapes change during the run. ``row_order``: in which A's rows are met. ``effort``: of ``EFFORTS``.
    ``options``: the policy's own.
    """

    name: str
    policy: str
    tuning: bool = False
    row_order: str | None = None
    effort: str = NORMAL
    options: dict[str, Any] = field(default_factory=dict)


def parse_tilings(given: list[str] | None, *, budget: int | None = None) -> list[Tiling]:
    """Tilings by name: commas separate, ``*`` and ``?`` match policies, ``+`` adds a variant.

    Every policy when none is given, but those that run schemes by the hundred (``optimal``). ``budget`` goes to these alone.
    Raises UserError.
    """
    from gen.design import did_you_mean
    from sw.policies.registry import option_names, policy_names
    from sw.scheme.terms import ROW_ORDERS

    orders = (*ROW_ORDERS, BEST)
    found: dict[str, Tiling] = {}
    usual = [name for name in policy_names() if name not in EXHAUSTIVE]
    for word in [word for text in given or usual for word in text.split(",")]:
        name, *variants = word.strip().split("+")
        known_policies = policy_names()
        policies = [policy for policy in known_policies if fnmatchcase(policy, name)]
        if not policies:
            hint = did_you_mean(name, known_policies)
            raise UserError(
                f"--tiling {word}: must be one of {', '.join(known_policies)}, or a pattern that matches some{hint}"
            )
        for policy in policies:
            known = option_names(policy)
            flags = [variant for variant in variants if variant not in (TUNING, HIGH, *orders)]
            rows = [variant for variant in variants if variant in orders]
            if len(rows) > 1:
                raise UserError(f"--tiling {word}: +{rows[1]}: must be the only one of {', '.join(orders)}")
            # Options that are flags: all others need a value.
            more = [variant for variant, option in ((HIGH, "effort"), ("uneven", "uneven")) if option in known]
            if HIGH in variants and HIGH not in more:
                flags.insert(0, HIGH)
            if any(flag != "uneven" or flag not in known for flag in flags):
                allowed = [TUNING, *orders, *more]
                raise UserError(f"--tiling {word}: +{flags[0]}: must be {' or '.join(f'+{v}' for v in allowed)}")
            options: dict[str, Any] = dict.fromkeys(flags, True)
            if budget is not None and "budget" in known:
                options["budget"] = budget
            full = "+".join([policy, *variants])
            row_order = rows[0] if rows else None
            tuning = TUNING in variants
            effort = HIGH if HIGH in variants else NORMAL
            found[full] = Tiling(
                name=full, policy=policy, tuning=tuning, row_order=row_order, effort=effort, options=options
            )
    return list(found.values())


def check_budget(budget: int | None, tilings: list[Tiling]) -> None:
    """Refuses a budget that is none, or that no tiling takes. Raises UserError."""
    if budget is not None and budget < 1:
        raise UserError(f"--budget {budget}: must be at least 1")
    if budget is not None and not any(tiling.policy in EXHAUSTIVE for tiling in tilings):
        raise UserError(
            f"--budget {budget}: is of {', '.join(EXHAUSTIVE)}: name it with --tiling, or leave the budget out"
        )


class Bench:
    """One pair of operands in the forms that runs need, each made once.

    The model's figures do not depend on values, and values depend on the tiling by rounding alone. So for the model the golden
    product is computed and checked once for each value type, under the first scheme.
    """

    def __init__(
        self,
        left: "str | Operand",
        right: "str | Operand | None",
        *,
        transpose_a: bool,
        transpose_b: bool,
        as_stored: bool,
    ) -> None:
        clock = Stopwatch()
        self.operands: dict[str, Operand] = load_operands(
            left, right, transpose_a=transpose_a, transpose_b=transpose_b, as_stored=as_stored
        )
        self._stored: dict[tuple[Any, ...], tuple[dict[str, Operand], Csr, Csr]] = {}
        self._products: dict[tuple[Any, ...], tuple[Product, list[Check]]] = {}
        self.seconds = clock.lap()

    @property
    def shape(self) -> tuple[int, int, int]:
        """I, J, K."""
        (rows, inner), columns = self.operands["A"].shape, self.operands["B"].shape[1]
        return rows, columns, inner

    def stored(self, value: str, formats: MemoryFormats) -> "tuple[dict[str, Operand], Csr, Csr]":
        """Both operands as they lie in memory, with values of the design's type.

        Raises OperandError for values that it cannot hold.
        """
        key = value, formats.without_zeros
        if key not in self._stored:
            operands = dict(self.operands)
            self._stored[key] = operands, *formats.stored(operands, value)
        return self._stored[key]

    def checked_product(
        self, design: "Design", formats: MemoryFormats, scheme: "Scheme"
    ) -> "tuple[Product, list[Check]]":
        """The golden product and its checks, for runs that compute no values of their own."""
        key = design.pe.arithmetic, formats.without_zeros
        if key not in self._products:
            _, a, b = self.stored(design.pe.value, formats)
            product, _ = golden_product(design, scheme, a, b)
            self._products[key] = product, verify(a, b, product, None, self.operands["B"].unfolded)
        return self._products[key]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The outcome: the record of ``run`` with ``tiling`` and ``hardware`` added, and the scheme."""

    record: dict[str, Any]
    scheme: "Scheme"


def evaluate(
    bench: Bench,
    design: "Design",
    tiling: Tiling,
    engine: str,
    *,
    formats: MemoryFormats = ACCELERATORS_OWN,
    seed: int,
    command: str,
    most_tiles: int | None = None,
    progress: Progress = lambda share, note: None,
) -> Evaluation:
    """Schedules, runs and verifies; seconds of each phase are counted.

    ``formats``: that A, B and C are kept in; the design has the records that they need. ``most_tiles``: schemes of more are
    refused before they are run. Raises UserError in one line for options that contradict each other.
    """
    from sw.runtime.result import result_record

    seconds = {"load": bench.seconds}
    choice = SchemeChoice(
        tiling=tiling.policy,
        options=tiling.options,
        tuning=True if tiling.tuning else None,
        seed=seed,
        row_order=tiling.row_order,
        effort=tiling.effort,
    )
    formats.require_built(engine, design)
    # Values that the design cannot hold are reported before any tile is chosen.
    operands, a, b = bench.stored(design.pe.value, formats)
    progress(None, f"{tiling.name}: choosing tiles")
    clock = Stopwatch()
    passes = interruptible(formats.passes, design, a, b, seed)
    scheme = interruptible(timed, lambda: choose_scheme(choice, operands, design, passes))
    # The policy's own part of the time for choosing.
    seconds["schedule"] = scheme.seconds
    refuse_without_hardware(engine, scheme)
    formats.require_scheme(scheme)
    tiles = len(scheme.tiles)
    if not tiles:
        counts = scheme.tiles_per_rank(*bench.shape)
        tiles = counts[0] * counts[1] * counts[2]
    if most_tiles is not None and tiles > most_tiles:
        raise UserError(f"cuts into {tiles:,} tiles: at most {most_tiles:,} are run (--most-tiles)")

    planned = interruptible(make_plan, choice, scheme, a, b, design)
    conversions = Conversions(formats, engine, design, scheme, planned, a, b)
    tier = conversions.tier
    progress(None, f"{tiling.name}: running")
    clock.lap()
    if tier == "model":
        product, checks = interruptible(bench.checked_product, design, formats, scheme)
        conversions.require_sizes(product.structural)
        seconds["verify"] = clock.lap()
        result = run_engine(tier, design, conversions.overlapped(), progress)
        seconds["simulate"] = clock.lap()
    else:
        product, adjustments = interruptible(golden_product, design, scheme, a, b)
        conversions.require_sizes(product.structural)
        result = EngineResult(c=product.structural, adjustments=adjustments)
        if tier == "rtl":
            seconds["verify"] = clock.lap()
            planned = conversions.overlapped()
            result = conversions.around(lambda: run_engine(tier, design, planned, progress), progress)
            result = replace(result, seconds=engine_seconds(clock.lap(), result.seconds))
        found, compared = result if tier == "rtl" else None, partial(verify, bare=conversions.leaves_bare)
        checks = interruptible(compared, a, b, product, found, operands["B"].unfolded)
        checks += conversions.checks
    result, _ = conversions.added(result, None)
    seconds["verify"] = seconds.get("verify", 0.0) + clock.lap()
    seconds["compile"] = clock.compiling
    record = result_record(
        engine=engine,
        engine_result=replace(result, occupancy={}),
        design=design,
        scheme=scheme,
        operands=operands,
        product=product,
        checks=checks,
        seconds=seconds,
        command=command,
        stored=conversions.stored,
    )
    return Evaluation(record=plain({"tiling": tiling.name, "hardware": not scheme.uneven, **record}), scheme=scheme)
