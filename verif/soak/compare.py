"""What golden product and model say of one multiplication, and all in which a run of the hardware differs from it."""

from collections.abc import Callable
from functools import cached_property

from gen.design import Design
from sw.engine_result import EngineResult
from sw.formats.csr import Csr
from sw.formats.storage import storage_format
from sw.golden.compare import check_against_scipy, compare_bits
from sw.golden.spgemm import Product as Golden
from sw.golden.tuned_walk import TunedWalk
from verif.counters import check_counters

from .cases import Product
from .golden import golden_of, walk_of

__all__ = ["Expected", "differences"]


class Expected:
    """The answers of the other engines, each worked out once.

    ``model``: the model tier on the same design.
    """

    def __init__(self, design: Design, product: Product, model: Callable[..., EngineResult]) -> None:
        self.design = design
        self.product = product
        self.model = model(design, product.planned(design))

    @cached_property
    def walk(self) -> TunedWalk | None:
        """The tiles by their definition, where the machine tunes their shape."""
        return walk_of(self.design, self.product.a, self.product.b, self.product.scheme)

    @cached_property
    def golden(self) -> Golden:
        """The product bit for bit."""
        product = self.product
        return golden_of(self.design, product.a, product.b, product.scheme, self.walk)

    @cached_property
    def c(self) -> Csr:
        """What comes out: without stored zeros where its format keeps none."""
        kind = dict(self.product.formats).get("c")
        bare = kind is not None and not storage_format(kind).keeps_zeros
        return self.golden.canonical if bare else self.golden.structural


def differences(expected: Expected, found: EngineResult) -> list[str]:
    """A line for each thing that differs, empty if all is well.

    Values and structure bit for bit, SciPy within the bound of the sum, traffic to the byte, each counter with its truth
    (:mod:`verif.counters`), the tuner's decisions.
    """
    problems = [] if found.error is None else [f"hardware: {found.error}"]
    if found.c is None:
        return problems or ["hardware: no result"]
    product, model = expected.product, expected.model
    arithmetic = expected.design.pe.arithmetic
    for name, verdict in (
        ("golden", compare_bits(expected.c, found.c)),
        ("SciPy", check_against_scipy(product.a, product.b, expected.golden.structural, value=arithmetic)),
    ):
        if not verdict.correct:
            problems.append(f"{name}: {verdict}")
    if found.dram_bytes != model.dram_bytes:
        problems.append(f"traffic: hardware {found.dram_bytes}, model {model.dram_bytes}")
    for key in ("peak_bytes", "hits", "bumped"):
        if found.buffer["A"][key] != model.buffer["A"][key]:
            problems.append(f"A {key}: hardware {found.buffer['A'][key]}, model {model.buffer['A'][key]}")
    if found.observed:  # by the simulation; what stands for it in a test has none
        macs = expected.golden.macs
        problems += check_counters(found.counters, found.observed, design=expected.design, macs=macs, model=model)
    if expected.walk is not None:
        changes = [(change["tile"], change["T_j"], change["T_k"]) for change in model.adjustments]
        if changes != expected.walk.adjustments:
            problems.append(f"tuning: model {changes}, golden {expected.walk.adjustments}")
    return problems
