"""The smoke bench's multiplication as plain data: made by the runtime, passed to the generator."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gen.design import Design
    from gen.smoke import SmokeRun

__all__ = ["smoke_run"]

# Cycles for each multiplication and leaf that even a slow memory does not need, and for the rest.
BUDGET_PER_MAC = 200
BUDGET_AT_LEAST = 50_000


def smoke_run(design: "Design") -> "SmokeRun":
    """The run of the smoke bench on ``design``. Raises SchemeError when its buffer holds no tile."""
    from gen.smoke import SmokeRegion, SmokeRun
    from sw.runtime.memory_image import POISON
    from sw.runtime.smoke import smoke_case

    case = smoke_case(design)
    c, scheme = case.product.structural, case.scheme
    nonzeros = [int(word) for pair in zip(c.coordinates, c.bits, strict=True) for word in pair]
    tiles = scheme.tiles_per_rank(case.a.rows, case.b.columns, case.a.columns)
    product = f"{case.a.rows} x {case.a.columns} by {case.b.rows} x {case.b.columns} ({c.value})"
    return SmokeRun(
        description=(
            f"C = A B, {product}, {case.product.macs} multiplications, {c.nnz} elements of C; "
            f"order {scheme.order}, {tiles[0]} x {tiles[1]} x {tiles[2]} tiles along i, j, k."
        ),
        product=product,
        registers=case.image.registers,
        regions=[
            SmokeRegion(base=region.base, content=region.data.tobytes(), writable=region.writable)
            for region in case.image.regions.values()
        ],
        poison=POISON,
        results={"ERROR_CODE": 0, "C_NNZ": c.nnz, "MACS": case.product.macs},
        rows=c.rows,
        expected=[*(int(pointer) for pointer in c.pointers), *nonzeros],
        budget=BUDGET_AT_LEAST + BUDGET_PER_MAC * case.product.macs,
    )
