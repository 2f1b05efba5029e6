"""``--mcf-a``, ``--mcf-b``, ``--mcf-c``: formats that A, B and C are kept in, and the conversions of a run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gen.design import Design
    from sw.cost.passes import Passes
    from sw.engine_result import EngineResult, Progress
    from sw.formats.csr import Csr
    from sw.formats.storage_format import StorageFormat
    from sw.golden.compare import Check
    from sw.operands import Operand
    from sw.plan.plan import Plan
    from sw.runtime.conversion import Sides, StoredTensor
    from sw.scheme.scheme import Scheme

__all__ = ["ACCELERATORS_OWN", "OPTION_NAMES", "Conversions", "MemoryFormats"]

OPTIONS = {"A": "mcf-a", "B": "mcf-b", "C": "mcf-c"}
RUN_BITS = "run-bits"
OPTION_NAMES = (*OPTIONS.values(), RUN_BITS)
PACKED = "memory.records=packed"
# Bytes of a tensor that the simulation of the converter takes.
MOST_BYTES = 64 << 20
# Formats of A that the host reads where tiles are made of lists of rows.
REWRITTEN = ("csr", "coo")


@dataclass(frozen=True, kw_only=True)
class MemoryFormats:
    """The formats that were asked for, by tensor. Without any, A, B and C are kept as the accelerator has them.

    ``given``: formats of A, B and C and bits of a run, None where an option was left out: what :meth:`parse` takes.
    """

    given: tuple[Any, ...]
    kinds: dict[str, str]
    forms: "dict[str, StorageFormat]"

    @classmethod
    def parse(cls, a: str | None, b: str | None, c: str | None, run_bits: int | None) -> "MemoryFormats":
        """Raises UserError for formats that the converter has not."""
        from gen.design import did_you_mean
        from sw.formats.storage import parameter_names, storage_format
        from sw.operands import UserError
        from sw.runtime.converter import SOURCES

        kinds = {tensor: kind for tensor, kind in zip("ABC", (a, b, c), strict=True) if kind is not None}
        for tensor, kind in kinds.items():
            if kind not in SOURCES:
                raise UserError(
                    f"--{OPTIONS[tensor]} {kind}: must be one of {', '.join(SOURCES)}{did_you_mean(kind, SOURCES)}"
                )
        given = {} if run_bits is None else {"run_bits": run_bits}
        takers = [tensor for tensor, kind in kinds.items() if given.keys() <= set(parameter_names(kind))]
        if given and not takers:
            raise UserError(f"--run-bits {run_bits}: is of rlc: must be left out where no tensor is kept in it")
        try:
            forms = {
                tensor: storage_format(kind, **(given if tensor in takers else {})) for tensor, kind in kinds.items()
            }
        except ValueError as error:
            raise UserError(f"--run-bits {run_bits}: {' '.join(str(error).split())}") from None
        return cls(given=(a, b, c, run_bits), kinds=kinds, forms=forms)

    @classmethod
    def combinations(
        cls, a: list[str] | None, b: list[str] | None, c: list[str] | None, run_bits: list[str] | None
    ) -> "list[MemoryFormats]":
        """Every combination of formats of A, B and C and bits of a run, each a list of texts with commas, or None.

        Bits of a run vary what is kept in rlc, and that alone. Raises UserError for what no combination could be made of.
        """
        from sw.operands import UserError

        kinds = [[None] if given is None else ",".join(given).split(",") for given in (a, b, c)]
        bits: list[int | None] = [None]
        if run_bits is not None:
            texts = ",".join(run_bits).split(",")
            for text in texts:
                if not (text.isascii() and text.isdecimal()):
                    raise UserError(f"--{RUN_BITS} {text}: must be whole numbers from 1 to 32")
            bits = [int(text) for text in texts]
        nowhere = not any("rlc" in given for given in kinds)
        found = {}
        for of_a, of_b, of_c in product(*kinds):
            varies = nowhere or "rlc" in (of_a, of_b, of_c)
            for each in bits if varies else [None]:
                formats = cls.parse(of_a, of_b, of_c, each)
                found[formats.given] = formats
        return list(found.values())

    @property
    def options(self) -> dict[str, str]:
        """Each option that was given, and its text."""
        return {name: str(text) for name, text in zip(OPTION_NAMES, self.given, strict=True) if text is not None}

    def settings(self, changes: list[str]) -> list[str]:
        """The changes of the design, with the packed records that conversions need. Raises UserError where they contradict."""
        from sw.operands import UserError

        if not self.kinds:
            return changes
        for text in changes:
            field, _, content = text.partition("=")
            if field.strip() == PACKED.partition("=")[0] and content.strip().strip("\"'") != "packed":
                tensor, kind = next(iter(self.kinds.items()))
                raise UserError(f"--{OPTIONS[tensor]} {kind}: --set {text} says otherwise: must be {PACKED}")
        return [*changes, PACKED]

    def require_built(self, tier: str, design: "Design") -> None:
        """Refuses conversions that the design's converter is not built for."""
        from sw.runtime.conversion import own_format

        from .convert_rtl import require_built

        for tensor, kind in self.kinds.items():
            own = own_format(design, tensor)
            if kind != own and tier != "golden":
                require_built(design, *((own, kind) if tensor == "C" else (kind, own)))

    @property
    def without_zeros(self) -> tuple[str, ...]:
        """Operands whose format keeps no stored zeros."""
        return tuple(tensor for tensor, form in self.forms.items() if tensor in "AB" and not form.keeps_zeros)

    def stored(self, operands: "dict[str, Operand]", value: str) -> "tuple[Csr, Csr]":
        """A and B as they lie in memory: without stored zeros where the format keeps none. ``operands`` lose these, too."""
        from sw.operands import to_csr

        a = to_csr(operands["A"], value)
        found = {"A": a, "B": a if operands["B"] is operands["A"] else to_csr(operands["B"], value)}
        for tensor in self.without_zeros:
            kept = found[tensor].without_zeros()
            if kept.nnz < found[tensor].nnz:
                operands[tensor] = replace(operands[tensor], matrix=kept.to_scipy())
                found[tensor] = kept
        return found["A"], found["B"]

    @property
    def fixes_a(self) -> bool:
        """A is kept in a format that the host does not rewrite."""
        return self.kinds.get("A", REWRITTEN[0]) not in REWRITTEN

    def overlaps(self, design: "Design", tensor: str) -> bool:
        """The design converts the tensor on its way, where the scheme has it in its order."""
        from sw.runtime.registers import CONVERTED

        return tensor.lower() in design.converts and self.kinds.get(tensor) in CONVERTED

    def passes(self, design: "Design", a: "Csr", b: "Csr", seed: int) -> "Passes":
        """What conversions add to each scheme, that of C for as many nonzeros as some of its rows promise.

        ``seed``: of the rows of C that are looked at.
        """
        from sw.cost.passes import NO_PASSES, Pass, Passes, TensorPass
        from sw.plan.tiles_of_b import passes_over
        from sw.runtime.conversion import Sides, estimated_departure, expected_conversion, own_format
        from sw.stats.workload import Workload

        if not self.kinds:
            return NO_PASSES
        found = {tensor: TensorPass() for tensor in "ABC"}
        for tensor, kind in self.kinds.items():
            form, own = self.forms[tensor], own_format(design, tensor)
            if kind == own:
                continue
            overlapped: dict[str, Any] = {}
            times = partial(passes_over, tensor, extent=(a.rows, b.columns, a.columns), b=b, design=design)
            if tensor == "C":
                workload = Workload(a.to_scipy(), b.to_scipy(), lanes=design.lanes, statistics="rows", seed=seed)
                run = estimated_departure(design, kind, form, (a.rows, b.columns), round(workload.nnz_c))
                kept_bytes, more_bytes = run.written_bytes, run.written_bytes - run.read_bytes
            else:
                sides = Sides.of(a if tensor == "A" else b, kind, form, own=own, leaves=False)
                run = expected_conversion(design, sides)
                sizes = (side.beats(design.bus_bytes) * design.bus_bytes for side in (sides.kept, sides.accelerated))
                kept_bytes, own_bytes = sizes
                more_bytes = kept_bytes - own_bytes
            if self.overlaps(design, tensor):
                bus_cycles = int(kept_bytes / design.dram_bytes_per_cycle)
                overlapped = {"times": times, "more_bytes": more_bytes, "bus_cycles": bus_cycles}
            alone = Pass(cycles=run.cycles, dram_bytes=run.read_bytes + run.written_bytes)
            found[tensor] = TensorPass(alone=alone, **overlapped)
        rest = Pass()
        for tensor in "BC":
            if not self.overlaps(design, tensor):
                rest += found.pop(tensor).alone
        fixes_rows = self.fixes_a or self.kinds.get("C", REWRITTEN[0]) != REWRITTEN[0]
        return Passes(
            a=found["A"],
            b=found.get("B", TensorPass()),
            c=found.get("C", TensorPass()),
            rest=rest,
            fixes_a=self.fixes_a,
            fixes_rows=fixes_rows,
        )

    def require_scheme(self, scheme: "Scheme") -> None:
        """Refuses tiles for which the host writes A anew, where it cannot."""
        from sw.operands import UserError
        from sw.scheme.terms import NATURAL

        kind = self.kinds.get("C", REWRITTEN[0])
        if scheme.row_order != NATURAL and kind != REWRITTEN[0]:
            raise UserError(
                f"--mcf-c {kind}: the rows of C are in the order {scheme.row_order}: must be {REWRITTEN[0]}"
            )
        if self.fixes_a and scheme.rewrites_a:
            why = f"{scheme.policy} makes tiles of lists of rows"
            if scheme.row_order != NATURAL:
                why = f"its rows are in the order {scheme.row_order}"
            raise UserError(
                f"--mcf-a {self.kinds['A']}: {why}, for which the host writes A anew: must be {' or '.join(REWRITTEN)}"
            )


ACCELERATORS_OWN = MemoryFormats(given=(None,) * len(OPTION_NAMES), kinds={}, forms={})


class Conversions:
    """The conversions of a run: of A and B before it, of C after it.

    Parameters
    ----------
    formats: that were asked for. tier: that runs. design, scheme, planned: what runs. a, b: as they lie in memory.

    Members
    -------
    sides: where each tensor that has a format of its own lies.
    stored: each tensor that has a format of its own, with what the tier says of its conversion.
    passes: over each tensor that is converted on its way, without a pass of its own.
    checks: of the bytes that the hardware made.
    """

    def __init__(
        self,
        formats: MemoryFormats,
        tier: str,
        design: "Design",
        scheme: "Scheme",
        planned: "Plan[Csr]",
        a: "Csr",
        b: "Csr",
    ) -> None:
        from sw.plan.tiles_of_b import passes_made_over_b, passes_over

        self.formats = formats
        self.tier = tier
        self.design = design
        self.planned = planned
        self.stored: list[StoredTensor] = []
        self.checks: list[Check] = []
        self.sides: dict[str, Sides] = {}
        self._building = 0.0
        extent = a.rows, b.columns, a.columns
        self.passes: dict[str, int] = {}
        for tensor in "ABC":
            if formats.overlaps(design, tensor) and (most := passes_over(tensor, scheme, extent, b, design)):
                self.passes[tensor] = passes_made_over_b(planned) if tensor == "B" else most
        self._sides_of("A", a)
        self._sides_of("B", b)

    def require_sizes(self, c: "Csr") -> None:
        """Refuses tensors that the simulation does not take, before anything is run. ``c``: the golden result."""
        from sw.operands import UserError

        self._sides_of("C", c)
        for tensor, sides in self.sides.items():
            size = sides.kept.layout.bytes
            if self.tier == "rtl" and size > MOST_BYTES:
                raise UserError(
                    f"--{OPTIONS[tensor]} {sides.kept.kind}: {tensor} takes {size:,} bytes: "
                    f"must take at most {MOST_BYTES:,} with --engine rtl, or --engine model"
                )

    @property
    def leaves_bare(self) -> bool:
        """C comes out of the hardware without stored zeros."""
        return "C" in self.passes and not self.formats.forms["C"].keeps_zeros

    def overlapped(self) -> "Plan[Csr]":
        """The plan with A, B and C as they lie in memory, after :meth:`require_sizes`."""
        from sw.plan.kept_matrix import KeptMatrix

        found = {
            tensor: KeptMatrix(form=self.formats.forms[tensor], kept=self.sides[tensor].kept) for tensor in self.passes
        }
        return replace(self.planned, stored_a=found.get("A"), stored_b=found.get("B"), stored_c=found.get("C"))

    def around(self, run: "Callable[[], EngineResult]", report: "Progress") -> "EngineResult":
        """Converts A and B, runs, converts what the hardware made. The run's seconds have those of building the converter."""
        for tensor in "AB":
            self._convert(tensor, report)
        result = run()
        if result.c is not None and result.error is None:
            self._sides_of("C", result.c)
            self._convert("C", report)
        if not self._building:
            return result
        seconds = result.seconds
        return replace(result, seconds=seconds | {"build": seconds.get("build", 0.0) + self._building})

    def added(self, result: "EngineResult", model: "EngineResult | None") -> "tuple[EngineResult, EngineResult | None]":
        """What a tier and the model say, with the conversions."""
        from sw.runtime.result import with_conversions

        expected = [self._expected(tensor) for tensor in self.sides]
        if self.tier == "model":
            self.stored = expected
        elif self.tier == "golden":
            self.stored = [replace(kept, conversion=None) for kept in expected]
        return with_conversions(result, self.stored), None if model is None else with_conversions(model, expected)

    def _sides_of(self, tensor: str, matrix: "Csr") -> None:
        from sw.runtime.conversion import Sides, own_format

        if tensor in self.formats.kinds:
            kind, form = self.formats.kinds[tensor], self.formats.forms[tensor]
            own = own_format(self.design, tensor)
            self.sides[tensor] = Sides.of(matrix, kind, form, own=own, leaves=tensor == "C")

    def _expected(self, tensor: str) -> "StoredTensor":
        """What the model says. The host, not the converter, writes A anew for tiles of lists, whatever its format."""
        from sw.runtime.conversion import StoredTensor, expected_conversion

        sides = self.sides[tensor]
        by_host = tensor == "A" and self.planned.scheme.rewrites_a
        overlapped = tensor in self.passes
        converts = sides.converts and not by_host and not overlapped
        return StoredTensor(
            tensor=tensor,
            format=sides.kept.kind,
            bits=sides.kept.layout.bits,
            conversion=expected_conversion(self.design, sides) if converts else None,
            overlapped=overlapped,
            energy_pJ=sides.energy_pJ * (self.passes[tensor] if overlapped else converts),
        )

    def _convert(self, tensor: str, report: "Progress") -> None:
        """By the hardware; its bytes are compared with those of the golden conversion."""
        if self.tier != "rtl" or tensor not in self.sides:
            return
        import numpy as np

        from sw.golden.compare import Check
        from sw.runtime.conversion import golden_image
        from sw.runtime.simulation.converter import run_converter

        expected, sides = self._expected(tensor), self.sides[tensor]
        if expected.conversion is None:
            self.stored.append(expected)
            return
        image, wanted = golden_image(self.design, sides)
        seconds: dict[str, float] = {}
        run = run_converter(self.design, image, report=lambda text: report(None, text), seconds=seconds)
        self._building += seconds["build"]
        self.stored.append(replace(expected, conversion=run))
        wrong = [name for name, data in image.written().items() if not np.array_equal(data, wanted[name])]
        nonzeros = sides.matrix.nnz
        found = f"bytes of {', '.join(wrong)} differ" if wrong else f"{nonzeros:,} nonzeros, bit for bit"
        self.checks.append(
            Check(
                name=f"{tensor} from {sides.source.kind} to {sides.target.kind}",
                correct=run.error is None and not wrong,
                detail=run.error or found,
                compared=nonzeros,
            )
        )
