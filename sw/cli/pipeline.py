"""The steps of ``run``, ``schedule`` and similar commands: operands, design, scheme, engine, checks."""

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sw.engine_result import EngineResult, Progress
from sw.names import shell_line
from sw.notes import detail
from sw.operands import MissingToolError, Operand, UserError, load
from sw.operands.generators import is_open, with_size
from sw.operands.standard_input import SOURCE, STANDARD_INPUT

from .options import ENGINES

if TYPE_CHECKING:
    from gen.design import Design
    from sw.cost.passes import Passes
    from sw.formats.csr import Csr
    from sw.golden.compare import Check
    from sw.golden.spgemm import Product
    from sw.operands.window import Unfolded
    from sw.plan.plan import Matrix, Plan
    from sw.scheme.errors import SchemeError
    from sw.scheme.scheme import Scheme
    from sw.stats.pattern import Index, Pattern

__all__ = [
    "BEST",
    "ENGINES",
    "SchemeChoice",
    "choose_scheme",
    "engine_seconds",
    "golden_product",
    "interruptible",
    "load_design",
    "load_operands",
    "make_plan",
    "plain",
    "predicted",
    "refuse_contradiction",
    "refuse_without_hardware",
    "repeat_command",
    "require_tier",
    "run_engine",
    "verify",
]

# Of the orders of A's rows the one of the fewest predicted cycles.
BEST = "best"
# How much a policy may try; ``HIGH``: every order of A's rows, and more of the model tier.
EFFORTS = NORMAL, HIGH = "normal", "high"
T = TypeVar("T")
# Extra keys of `schedule --json` beside the scheme itself.
PREDICTIONS = ("cycles", "dram_bytes")


def load_operands(
    left: str | Operand, right: str | Operand | None, *, transpose_a: bool, transpose_b: bool, as_stored: bool
) -> dict[str, Operand]:
    """``A`` and ``B``, their shapes checked against each other.

    Without ``right``, ``B`` is ``A`` before any transposition. A generator's name may leave the size of
    the rank that both share to the other operand (``dense:K:32``).
    """
    if left == right == STANDARD_INPUT:
        raise UserError(f"{right}: A is {SOURCE}, too, which can be read once only: leave B out for A x A")
    a_open, b_open = is_open(left), right is not None and is_open(right)
    if a_open and (b_open or right is None):
        other = "B leaves it open too" if b_open else "there is no B"
        raise UserError(f"{left}: K stands for a size of the other operand: {other}")
    if a_open and right is not None:
        b = load(right, as_stored=as_stored)
        given = load(with_size(str(left), b.shape[1 if transpose_b else 0]), as_stored=as_stored)
    else:
        given = load(left, as_stored=as_stored)
        b = given
        if right is not None:
            size = given.shape[0 if transpose_a else 1]
            b = load(with_size(str(right), size) if b_open else right, as_stored=as_stored)
    a = given.transposed() if transpose_a else given
    if transpose_b:
        b = b.transposed()
    for name, operand in (("A", a), ("B", b)):
        if 0 in operand.shape:
            raise UserError(
                f"{operand.source}: {name} is {operand.shape[0]} x {operand.shape[1]}: both must be at least 1"
            )
    if a.shape[1] != b.shape[0]:
        hint = "" if transpose_a or transpose_b or right is not None else " (for A x A^T give --transpose-b)"
        raise UserError(
            f"A is {a.shape[0]} x {a.shape[1]} and B is {b.shape[0]} x {b.shape[1]}: "
            f"columns of A must equal rows of B{hint}"
        )
    for name, operand in (("A", a), ("B", b)):
        detail(f"  {name}: {operand.source}, {operand.shape[0]} x {operand.shape[1]}, {operand.matrix.nnz:,} nonzeros")
    return {"A": a, "B": b}


def load_design(config: str, settings: list[str], value: str | None) -> "Design":
    """The design called ``config`` (a shipped name or a file) with the command line's changes."""
    from gen.design import DesignError, load_design

    refuse_contradiction(value, settings)
    settings = [*settings, *([f"pe.value={value}"] if value is not None else [])]
    try:
        design = load_design(config, settings)
        detail(f"design {design.name}: --config {config} {' '.join(f'--set {each}' for each in settings)}".rstrip())
        return design
    except DesignError as error:
        raise UserError(str(error)) from None


def refuse_contradiction(value: str | None, settings: list[str]) -> None:
    """``--value`` is short for a setting; another value in ``--set`` contradicts it. Raises UserError."""
    for text in settings:
        field, _, other = text.partition("=")
        if value is not None and field.strip() == "pe.value" and other.strip().strip("\"'") != value:
            raise UserError(f"--value {value}: --set {text} says otherwise: must be one of them")


@dataclass(frozen=True, kw_only=True)
class SchemeChoice:
    """Where the tile scheme comes from: a policy, a file, or sizes given by hand (which come last and win).

    ``tiling`` is None when no policy was named: then ``auto`` decides all, or sizes given by hand stand alone. ``tuning``
    is None when the scheme's own field counts. ``options`` are the policy's own. ``row_order``: of :mod:`sw.plan.row_order`, or
    ``BEST`` for that of the fewest predicted cycles; None as the scheme says, and ``BEST`` where ``auto`` decides all.
    ``effort``: one of ``EFFORTS``, which ``auto`` takes to decide. ``partial_rows``: what becomes of them; None as the
    scheme says, or what goes with sides and tuning that were given by hand. ``load``: one of ``GATHERS``, for which
    ``auto`` looks for the best tiles; None as the scheme says.
    """

    tiling: str | None = None
    file: Path | None = None
    order: str | None = None
    sizes: tuple[int | None, int | None, int | None] = (None, None, None)
    tuning: bool | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    row_order: str | None = None
    partial_rows: str | None = None
    load: str | None = None
    effort: str = NORMAL

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise UserError(f"--effort {self.effort}: must be one of {', '.join(EFFORTS)}")
        if self.effort != NORMAL and (self.file is not None or self.alone):
            raise UserError(f"--effort {self.effort}: must be left out where no policy decides")
        for name, size in zip(("T_i", "T_j", "T_k"), self.sizes, strict=True):
            if size is not None and size < 1:
                raise UserError(f"--{name} {size}: must be at least 1")
        if self.file is not None and self.tiling is not None:
            raise UserError(f"--tiling {self.tiling}: must be left out with --scheme, which says how to tile")
        if self.seed < 0:
            raise UserError(f"--seed {self.seed}: must be at least 0")

    @property
    def forced(self) -> bool:
        return self.order is not None or any(size is not None for size in self.sizes)

    @property
    def alone(self) -> bool:
        """What is given by hand decides."""
        return self.forced and self.tiling is None and self.load is None


def choose_scheme(
    choice: SchemeChoice, operands: dict[str, Operand], design: "Design", passes: "Passes | None" = None
) -> "Scheme":
    """The scheme, checked against design and shapes; every error is a UserError. ``passes``: conversions beside the run."""
    from sw.policies.manual import manual
    from sw.policies.registry import find_policy
    from sw.scheme.errors import SchemeError
    from sw.scheme.terms import CARRIED

    a, b = operands["A"].matrix, operands["B"].matrix
    shape = (int(a.shape[0]), int(b.shape[1]), int(a.shape[1]))
    try:
        if choice.tiling is not None:
            find_policy(choice.tiling)
        if choice.file is not None:
            scheme = _force(_read_scheme(choice.file), choice, shape, design)
        elif choice.alone:
            scheme = manual(design, shape, choice.sizes, choice.order)
        else:
            scheme = _of_policy(choice, a, b, design, passes)
            if choice.forced:
                scheme = _force(scheme, choice, shape, design)
        if choice.tuning is not None:
            scheme = replace(scheme, tuning=choice.tuning)
            if choice.tuning and choice.file is None:
                scheme = replace(scheme, partial_rows=CARRIED)
        if choice.partial_rows not in (None, scheme.partial_rows):
            scheme = replace(scheme, partial_rows=choice.partial_rows, predicted={}, alternatives=[])
        if choice.load not in (None, scheme.load):
            scheme = replace(scheme, load=choice.load, predicted={}, alternatives=[])
        if choice.row_order is not None and choice.row_order not in (BEST, scheme.row_order):
            scheme = replace(scheme, row_order=choice.row_order, predicted={}, alternatives=[])
        scheme.validate(design, *shape)
        return scheme
    except SchemeError as error:
        raise UserError(_as_typed(error, choice)) from None


def _of_policy(choice: SchemeChoice, a: Any, b: Any, design: "Design", passes: "Passes | None") -> "Scheme":
    """The policy's scheme, in the order of A's rows of the fewest expected cycles.

    With high effort the model runs the scheme of each order whole. ``seconds`` are those of all; compiling does not count.
    """
    from sw.cost.passes import NO_PASSES
    from sw.formats.canonical import canonical
    from sw.model.judge import judge
    from sw.plan.thresholds import HIGH_EFFORT, ORDER_GAIN_HIGH
    from sw.policies.registry import option_names, schedule
    from sw.scheme.errors import SchemeError
    from sw.scheme.terms import NATURAL
    from sw.stats.pattern import Pattern

    from .timing import compile_seconds

    policy = choice.tiling or "auto"
    options = dict(choice.options)
    # The shapes of lists are not tuned.
    if choice.tuning and design.pe.dataflow == "gustavson" and "lists" in option_names(policy):
        options |= {"lists": False}
    if choice.load is not None and design.pe.dataflow == "gustavson" and "load" in option_names(policy):
        options |= {"load": choice.load}
    if choice.effort == HIGH:
        if "effort" not in option_names(policy):
            raise SchemeError("effort", HIGH, f"{NORMAL} with {policy}")
        options |= {"effort": HIGH_EFFORT}
    began, before = time.perf_counter(), compile_seconds()
    patterns = Pattern.of(a), Pattern.of(b)
    runs = judge(design)

    def decided(name: str, order: "Index | None") -> "tuple[int, Scheme]":
        met = a if order is None else canonical(a)[order]
        scheme = schedule(policy, met, b, design, seed=choice.seed, judge=runs, passes=passes, **options)
        cycles = runs(scheme, Pattern.of(met), patterns[1]) if choice.effort == HIGH else _expected_cycles(scheme)
        return cycles, replace(scheme, row_order=name)

    orders = _orders(choice, policy, patterns, design, passes or NO_PASSES)
    cycles, best = min(starmap(decided, orders.items()), key=itemgetter(0))
    if choice.row_order in (None, BEST) and NATURAL not in orders and not best.gathers:
        # An order is for tiles that load the rows of B that they use: others move as much in any.
        in_natural = decided(NATURAL, None)
        if cycles > ORDER_GAIN_HIGH * in_natural[0]:
            best = in_natural[1]
    seconds = time.perf_counter() - began - (compile_seconds() - before)
    return replace(best, seconds=max(0.0, seconds))


def _orders(
    choice: SchemeChoice, policy: str, patterns: "tuple[Pattern, Pattern]", design: "Design", passes: "Passes"
) -> "dict[str, Index | None]":
    """Orders of A's rows for which the policy decides; ``patterns``: of A and B."""
    from sw.plan.best_orders import best_orders
    from sw.plan.row_order import row_order
    from sw.scheme.terms import NATURAL

    decides_all = policy == "auto" and design.pe.dataflow == "gustavson" and not choice.forced and not choice.tuning
    name = choice.row_order or (BEST if decides_all and not passes.fixes_rows else NATURAL)
    if name == BEST:
        return best_orders(*patterns, design, every=choice.effort == HIGH)
    return {name: row_order(name, *patterns, design)}


def _expected_cycles(scheme: "Scheme") -> int:
    """Cycles that the policy expects: those of the model where it has run the scheme there."""
    return scheme.predicted.get("judged_cycles", scheme.predicted["cycles"])


def make_plan(choice: SchemeChoice, scheme: "Scheme", a: "Matrix", b: "Matrix", design: "Design") -> "Plan[Matrix]":
    """What the hardware meets of a scheme. Refuses what B's partition cannot hold: a UserError.

    ``a``, ``b``: operands, or patterns where nothing is to run.
    """
    from sw.formats.csr import Csr
    from sw.plan.plan import plan
    from sw.scheme.errors import SchemeError

    try:
        return plan(scheme, a, b, design, with_places=isinstance(a, Csr))
    except SchemeError as error:
        raise UserError(_as_typed(error, choice)) from None


def predicted(
    planned: "Plan[Pattern]",
    scheme: "Scheme",
    operands: dict[str, Operand],
    design: "Design",
    seed: int,
    passes: "Passes",
) -> "Scheme":
    """The scheme with the cost model's prediction, where it has none: sides given by hand. ``planned``: the scheme's plan."""
    from sw.cost.dataflows import predict_dataflow
    from sw.cost.predict import predict_rows
    from sw.cost.stationary import predict_stationary
    from sw.formats.canonical import canonical
    from sw.scheme.terms import NATURAL, WEIGHT_STATIONARY
    from sw.stats.workload import Workload

    if scheme.predicted:
        return scheme
    a = operands["A"].matrix if planned.row_order is None else canonical(operands["A"].matrix)[planned.row_order]
    workload = Workload(a, operands["B"].matrix, lanes=design.lanes, seed=seed)
    if design.pe.dataflow == "gustavson":
        prediction = predict_rows(workload, design, replace(scheme, row_order=NATURAL), planned)
    elif design.pe.dataflow == WEIGHT_STATIONARY:
        prediction = predict_stationary(workload, design, scheme)
    else:
        prediction = predict_dataflow(workload, design, scheme)
    return passes.added(replace(scheme, predicted=prediction.as_dict()))


def _as_typed(error: "SchemeError", choice: SchemeChoice) -> str:
    """The error message, with the option that it is about."""
    if choice.tiling is not None and error.field == "policy":
        return f"--tiling {error.value}: must be {error.allowed}"
    if choice.tuning and error.field == "tuning":
        return f"--tuning: must be {error.allowed}"
    if error.field == "effort":
        return f"--effort {error.value}: must be {error.allowed}"
    if error.field == "load" and choice.load is not None:
        return f"--load {error.value}: must be {error.allowed}"
    if choice.file is not None:
        return f"{choice.file}: {error}"
    if error.field == "partial_rows" and choice.partial_rows is not None:
        return f"--partial-rows {error.value}: must be {error.allowed}"
    if error.field == "row_order" and choice.row_order is not None:
        return f"--row-order {error.value}: must be {error.allowed}"
    typed = {"order": choice.order} | dict(zip(("T_i", "T_j", "T_k"), choice.sizes, strict=True))
    if typed.get(error.field) is not None and typed[error.field] == error.value:
        return f"--{error.field} {error.value}: must be {error.allowed}"
    return str(error)


def _read_scheme(path: Path) -> "Scheme":
    from sw.scheme.scheme import Scheme

    if path.exists() and not path.is_file():  # reading a pipe without a writer would never end
        raise UserError(f"--scheme {path}: must be a file, not a folder, a pipe or a device")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--scheme {path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UserError(f"--scheme {path}: not JSON ({error})") from None
    except RecursionError:
        raise UserError(f"--scheme {path}: not a scheme (nested too deeply)") from None
    if isinstance(document, dict):
        document = {name: value for name, value in document.items() if name not in PREDICTIONS}
    return Scheme.from_dict(document)


def _force(scheme: "Scheme", choice: SchemeChoice, shape: tuple[int, int, int], design: "Design") -> "Scheme":
    """The scheme with what was given by hand, clipped to the shape; a prediction for other tiles is dropped.

    Tiles that load what they use go with every order and side along i: with another side they leave a scheme by hand, k whole
    unless its side is given. Tiles of their own shapes become tiles of one shape, their longest sides.
    """
    from sw.policies.manual import manual
    from sw.scheme.terms import CARRIED

    scheme = scheme.clip(*shape)
    if not choice.forced:
        return scheme
    order = choice.order or scheme.order
    i, j, k = choice.sizes
    if scheme.gathers and (j or k):
        # The partition was made for rows that are used: it has no room for partial rows.
        return manual(design, shape, (i or scheme.T_i, j, k), order)
    if scheme.gathers:
        scheme = replace(scheme, strips=i or scheme.strips) if scheme.strips else replace(scheme, T_i=i or scheme.T_i)
        return replace(scheme, policy="forced", order=order, predicted={}, alternatives=[]).clip(*shape)
    sides = (scheme.T_i, scheme.T_j, scheme.T_k)
    i, j, k = (old if new is None else new for old, new in zip(sides, choice.sizes, strict=True))
    scheme = replace(
        scheme,
        policy="forced",
        order=order,
        T_i=i,
        T_j=j,
        T_k=k,
        predicted={},
        alternatives=[],
        tiles=[],
        load="tile",
        partial_rows=scheme.partial_rows if choice.file else CARRIED,
    )
    return scheme.clip(*shape)


def require_tier(engine: str, design: "Design") -> None:
    """Refuses an engine that is none, or that the design does not have: not every dataflow has hardware."""
    from gen.design import did_you_mean

    if engine not in ENGINES:
        raise UserError(f"--engine {engine}: must be one of {', '.join(ENGINES)}{did_you_mean(engine, ENGINES)}")
    if engine not in design.tiers:
        dataflow = f" (pe.dataflow = {design.pe.dataflow})" if design.pe.dataflow != "gustavson" else ""
        raise UserError(f"--engine {engine}: the design {design.name}{dataflow} is for {' and '.join(design.tiers)}")


def refuse_without_hardware(engine: str, scheme: "Scheme") -> None:
    """Refuses on hardware what only the model and the golden product run: tiles of different shapes."""
    if scheme.uneven and engine == "rtl":
        why = f"the tiles of {scheme.policy} differ in shape"
        raise UserError(f"--engine rtl: {why}, which the hardware cannot run: use --engine model or golden")


def interruptible(function: Callable[..., T], *arguments: Any) -> T:
    """Calls a long computation so that an interrupt ends it at once.

    It runs in a thread of its own: an interrupt that reaches compiled code between its end and the making of its Python
    results would bring the process down instead of raising KeyboardInterrupt.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []
    finished = threading.Event()

    def call() -> None:
        try:
            outcome.append(function(*arguments))
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            failure.append(error)
        finally:
            finished.set()

    threading.Thread(target=call, daemon=True).start()
    finished.wait()
    if failure:
        raise failure[0]
    return outcome[0]


def run_engine(engine: str, design: "Design", planned: "Plan[Csr]", progress: Progress) -> EngineResult:
    """One multiplication in the hardware (``rtl``) or in its model (``model``). ``golden`` needs no call of its own."""
    try:
        if engine == "rtl":
            from sw.runtime.simulation.engine import run_rtl

            return run_rtl(design, planned, progress)
        from sw.model.tier import simulate

        return interruptible(simulate, design, planned)
    except ModuleNotFoundError as error:
        name = error.name or "a package"
        package = name.split(".")[0]
        cure = (
            "this installation is incomplete" if package in ("sw", "verif", "gen", "rtl") else f"pip install {package}"
        )
        raise MissingToolError(f"--engine {engine} needs {name}: {cure}") from None


def engine_seconds(whole: float, parts: dict[str, float]) -> dict[str, float]:
    """Seconds of an engine that reports its generation and build: the rest of ``whole`` is simulation.

    An engine that reports more than ``whole`` has another clock; its own numbers are used.
    """
    if sum(parts.values()) > whole:
        return parts
    return parts | {"simulate": whole - sum(spent for name, spent in parts.items() if name != "simulate")}


def golden_product(design: "Design", scheme: "Scheme", a: "Csr", b: "Csr") -> "tuple[Product, list[dict[str, int]]]":
    """The golden result, and with tuning the changes of the tile shape."""
    from sw.golden.product import product_of
    from sw.golden.tuned_walk import TunedTile, TunedWalk, tuned_walk
    from sw.plan.row_order import in_order, inverse, row_order
    from sw.scheme.explicit_tiles import steps

    walk = None
    if scheme.uneven:
        walk = TunedWalk(
            tiles=[
                TunedTile(begin=(0, j, k), size=(a.rows, end_j - j, end_k - k), skipped=False)
                for j, end_j, k, end_k in steps(scheme.tiles)
            ]
        )
    order = None
    if scheme.tuning:
        # Which tiles are empty, and with that the cuts, follows from the order of A's rows; nothing else of a product does.
        order = row_order(scheme.row_order, a, b, design)
        a = in_order(a, order)
        walk = tuned_walk((scheme.T_i, scheme.T_j, scheme.T_k), scheme.order, a, b, scheme.partition("B", design))
    product = product_of(design.pe, a, b, scheme, walk)
    if order is not None:
        structural, canonical = (in_order(c, inverse(order)) for c in (product.structural, product.canonical))
        product = replace(product, structural=structural, canonical=canonical)
    changes = walk.adjustments if walk is not None else []
    return product, [
        {"tile": tile, "T_i": scheme.T_i, "T_j": side_j, "T_k": side_k} for tile, side_j, side_k in changes
    ]


def verify(
    a: "Csr",
    b: "Csr",
    product: "Product",
    result: EngineResult | None,
    unfolded: "Unfolded | None" = None,
    *,
    bare: bool = False,
) -> "list[Check]":
    """Golden against SciPy, form of the result, and the engine's values against the golden ones.

    ``unfolded``: images that B was made of; the golden product is compared with a direct convolution of them, too.
    ``bare``: the result has no stored zeros.
    """
    from sw.golden.compare import check_against_scipy, check_canonical, compare_bits
    from sw.golden.convolution import direct_convolution
    from sw.operands.operand import to_csr

    checks = []
    if result is not None and result.c is not None:
        checks.append(compare_bits(product.canonical if bare else product.structural, result.c))
    checks.append(check_against_scipy(a, b, product.structural, value=product.value))
    checks.append(check_canonical(product.canonical))
    if unfolded is not None:
        window = unfolded.window
        images = to_csr(Operand(name="images", source="images", matrix=unfolded.images), a.value)
        multiply = direct_convolution(window.image, window.kernel, window.stride, window.padding, window.dilation)
        name = "golden against direct convolution"
        checks.append(check_against_scipy(a, images, product.structural, name, product.value, multiply))
    return checks


def repeat_command(arguments: list[str] | None = None) -> str:
    """The command line as typed, for the report."""
    return shell_line(["fiberloom", *(sys.argv[1:] if arguments is None else arguments)])


def plain(record: Any) -> Any:
    """The record after a round trip through JSON."""
    return json.loads(json.dumps(record, default=lambda value: value.item()))
