"""``--mcf-a``, ``--mcf-b``, ``--mcf-c``: formats that A, B and C are kept in, and the conversions of a run."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gen.design import Design
    from sw.engine_result import EngineResult, Progress
    from sw.formats.csr import Csr
    from sw.formats.storage_format import StorageFormat
    from sw.golden.compare import Check
    from sw.operands import Operand
    from sw.plan.plan import Plan
    from sw.runtime.conversion import Sides, StoredTensor

__all__ = ["Conversions", "MemoryFormats"]

OPTIONS = {"A": "mcf-a", "B": "mcf-b", "C": "mcf-c"}
PACKED = "memory.records=packed"
# Bytes of a tensor that the simulation of the converter takes.
MOST_BYTES = 64 << 20
# Formats of A that the host reads where tiles are made of lists of rows.
REWRITTEN = ("csr", "coo")


@dataclass(frozen=True, kw_only=True)
class MemoryFormats:
    """The formats that were asked for, by tensor. Without any, A, B and C are kept as the accelerator has them."""

    kinds: dict[str, str]
    forms: "dict[str, StorageFormat]"

    @classmethod
    def parse(cls, a: str | None, b: str | None, c: str | None, run_bits: int | None) -> "MemoryFormats":
        """Raises UserError for formats that the converter has not."""
        from sw.formats.storage import parameter_names, storage_format
        from sw.operands import UserError
        from sw.runtime.converter import SOURCES

        kinds = {tensor: kind for tensor, kind in zip("ABC", (a, b, c), strict=True) if kind is not None}
        for tensor, kind in kinds.items():
            if kind not in SOURCES:
                raise UserError(f"--{OPTIONS[tensor]} {kind}: must be one of {', '.join(SOURCES)}")
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
        return cls(kinds=kinds, forms=forms)

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
        from sw.runtime.conversion import ACCELERATED

        from .convert_rtl import require_built

        for tensor, kind in self.kinds.items():
            if kind != ACCELERATED and tier != "golden":
                require_built(design, *((ACCELERATED, kind) if tensor == "C" else (kind, ACCELERATED)))

    def stored(self, operands: "dict[str, Operand]", value: str) -> "tuple[Csr, Csr]":
        """A and B as they lie in memory: without stored zeros where the format keeps none. ``operands`` lose these, too."""
        from sw.operands import to_csr

        a = to_csr(operands["A"], value)
        found = {"A": a, "B": a if operands["B"] is operands["A"] else to_csr(operands["B"], value)}
        for tensor, form in self.forms.items():
            if tensor in found and not form.keeps_zeros:
                kept = found[tensor].without_zeros()
                if kept.nnz < found[tensor].nnz:
                    operands[tensor] = replace(operands[tensor], matrix=kept.to_scipy())
                    found[tensor] = kept
        return found["A"], found["B"]

    @property
    def fixes_a(self) -> bool:
        """A is kept in a format that the host does not rewrite."""
        return self.kinds.get("A", REWRITTEN[0]) not in REWRITTEN

    def require_plan(self, planned: "Plan[Csr]") -> None:
        """Refuses tiles for which the host writes A anew, where it cannot."""
        from sw.operands import UserError

        kind = self.kinds.get("C", REWRITTEN[0])
        if planned.row_order is not None and kind != REWRITTEN[0]:
            raise UserError(
                f"--mcf-c {kind}: the rows of C are in the order {planned.scheme.row_order}: must be {REWRITTEN[0]}"
            )
        if self.fixes_a and planned.rows_of_b is not None:
            raise UserError(
                f"--mcf-a {self.kinds['A']}: {planned.scheme.policy} makes tiles of lists of rows, for which the host writes A "
                f"anew: must be {' or '.join(REWRITTEN)}"
            )


class Conversions:
    """The conversions of a run: of A and B before it, of C after it.

    Parameters
    ----------
    formats: that were asked for. tier: that runs. design, planned: what runs.

    Members
    -------
    sides: where each tensor that has a format of its own lies.
    stored: each tensor that has a format of its own, with what the tier says of its conversion.
    checks: of the bytes that the hardware made.
    """

    def __init__(self, formats: MemoryFormats, tier: str, design: "Design", planned: "Plan[Csr]") -> None:
        self.formats = formats
        self.tier = tier
        self.design = design
        self.planned = planned
        self.stored: list[StoredTensor] = []
        self.checks: list[Check] = []
        self.sides: dict[str, Sides] = {}
        self._building = 0.0
        self._sides_of("A", planned.a)
        self._sides_of("B", planned.b)

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

    def of_operands(self, report: "Progress") -> None:
        """Converts A and B."""
        for tensor in "AB":
            self._convert(tensor, report)

    def of_result(self, c: "Csr", report: "Progress") -> None:
        """Converts what the hardware made."""
        self._sides_of("C", c)
        self._convert("C", report)

    def with_building(self, seconds: dict[str, float]) -> dict[str, float]:
        """Seconds of a run with those that building the converter took."""
        return seconds | {"build": seconds.get("build", 0.0) + self._building} if self._building else seconds

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
        from sw.runtime.conversion import Sides

        if tensor in self.formats.kinds:
            kind, form = self.formats.kinds[tensor], self.formats.forms[tensor]
            self.sides[tensor] = Sides.of(matrix, kind, form, leaves=tensor == "C")

    def _expected(self, tensor: str) -> "StoredTensor":
        """What the model says. The host, not the converter, writes A anew for tiles of lists, whatever its format."""
        from sw.runtime.conversion import ACCELERATED, StoredTensor, expected_conversion

        sides = self.sides[tensor]
        by_host = tensor == "A" and self.planned.rows_of_b is not None
        converts = sides.kept.kind != ACCELERATED and not by_host
        return StoredTensor(
            tensor=tensor,
            format=sides.kept.kind,
            bits=sides.kept.layout.bits,
            conversion=expected_conversion(self.design, sides) if converts else None,
        )

    def _convert(self, tensor: str, report: "Progress") -> None:
        """By the hardware; its bytes are compared with those of the golden conversion."""
        import numpy as np

        from sw.golden.compare import Check
        from sw.runtime.conversion import golden_image
        from sw.runtime.simulation.converter import run_converter

        if self.tier != "rtl" or tensor not in self.sides:
            return
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
