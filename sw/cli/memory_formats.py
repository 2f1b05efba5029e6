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
    from sw.runtime.conversion import StoredTensor

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
        self._building = 0.0

    def of_operands(self, report: "Progress") -> None:
        """Converts A and B. Raises UserError for tensors that the simulation does not take."""
        self._convert("A", self.planned.a, report)
        self._convert("B", self.planned.b, report)

    def of_result(self, c: "Csr", report: "Progress") -> None:
        """Converts C."""
        self._convert("C", c, report)

    def with_building(self, seconds: dict[str, float]) -> dict[str, float]:
        """Seconds of a run with those that building the converter took."""
        return seconds | {"build": seconds.get("build", 0.0) + self._building} if self._building else seconds

    def added(
        self, result: "EngineResult", model: "EngineResult | None", c: "Csr"
    ) -> "tuple[EngineResult, EngineResult | None]":
        """What a tier and the model say, with the conversions. ``c``: the golden result."""
        from sw.runtime.result import with_conversions

        tensors = {"A": self.planned.a, "B": self.planned.b, "C": c}
        expected = [self._expected(tensor, tensors[tensor]) for tensor in self.formats.kinds]
        if self.tier == "model":
            self.stored = expected
        elif self.tier == "golden":
            self.stored = [replace(kept, conversion=None) for kept in expected]
        return with_conversions(result, self.stored), None if model is None else with_conversions(model, expected)

    def _by_host(self, tensor: str) -> bool:
        """The host writes the tensor anew for the scheme, whatever its format."""
        return tensor == "A" and self.planned.rows_of_b is not None

    def _expected(self, tensor: str, matrix: "Csr") -> "StoredTensor":
        from sw.runtime.conversion import ACCELERATED, StoredTensor, expected_conversion, kept_layout

        kind, form = self.formats.kinds[tensor], self.formats.forms[tensor]
        bits = kept_layout(matrix, form).bits
        if kind == ACCELERATED or self._by_host(tensor):
            return StoredTensor(tensor=tensor, format=kind, bits=bits, conversion=None)
        found = expected_conversion(self.design, matrix, kind, form, leaves=tensor == "C")
        return StoredTensor(tensor=tensor, format=kind, bits=bits, conversion=found)

    def _convert(self, tensor: str, matrix: "Csr", report: "Progress") -> None:
        """By the hardware; its bytes are compared with those of the golden conversion."""
        import numpy as np

        from sw.golden.compare import Check
        from sw.runtime.conversion import ACCELERATED, golden_image
        from sw.runtime.simulation.converter import run_converter

        if self.tier != "rtl" or tensor not in self.formats.kinds:
            return
        expected = self._expected(tensor, matrix)
        if expected.conversion is None:
            self.stored.append(expected)
            return
        self._require_bytes(tensor, expected.bytes)
        leaves, form = tensor == "C", self.formats.forms[tensor]
        image, wanted = golden_image(self.design, matrix, expected.format, form, leaves=leaves)
        seconds: dict[str, float] = {}
        run = run_converter(self.design, image, report=lambda text: report(None, text), seconds=seconds)
        self._building += seconds["build"]
        self.stored.append(replace(expected, conversion=run))
        wrong = [name for name, data in image.written().items() if not np.array_equal(data, wanted[name])]
        found = f"bytes of {', '.join(wrong)} differ" if wrong else f"{matrix.nnz:,} nonzeros, bit for bit"
        names = (ACCELERATED, expected.format) if leaves else (expected.format, ACCELERATED)
        self.checks.append(
            Check(
                name=f"{tensor} from {names[0]} to {names[1]}",
                correct=run.error is None and not wrong,
                detail=run.error or found,
                compared=matrix.nnz,
            )
        )

    def _require_bytes(self, tensor: str, size: int) -> None:
        from sw.operands import UserError

        if size > MOST_BYTES:
            raise UserError(
                f"--{OPTIONS[tensor]} {self.formats.kinds[tensor]}: {tensor} takes {size:,} bytes: "
                f"must take at most {MOST_BYTES:,} with --engine rtl, or --engine model"
            )
