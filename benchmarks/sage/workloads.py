"""What MINT is measured on: the tensors of its table III with the formats it chooses, the layers of its figure 14."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sw.sage.workload import Workload, random_operand, uniform

__all__ = ["ACTIVATIONS", "LAYERS", "MATRICES", "PRUNINGS", "TENSORS", "Choice", "Published", "layer", "published"]

#: MCF of the tensor, MCF of the factor, ACF of the tensor, ACF of the factor.
Choice = tuple[str, str, str, str]


@dataclass(frozen=True)
class Published:
    """A row of table III: sizes and nonzeros as printed, and the choice for each kernel."""

    name: str
    shape: tuple[int, ...]
    nnz: int
    choices: dict[str, Choice]

    def workload(self, kernel: str) -> Workload:
        """Uniform; factors are K x M/2, sparse as the matrix in ``spgemm`` and dense elsewhere."""
        places = 1
        for size in self.shape:
            places *= size
        density = self.nnz / places
        return uniform(kernel, (*self.shape, self.shape[0] // 2), density, density if kernel == "spgemm" else 1.0)


def _matrix(name: str, rows: int, columns: int, nnz: int, spgemm: str, spmm: str) -> Published:
    choices = {"spgemm": tuple(spgemm.split()), "spmm": tuple(spmm.split())}
    return Published(name, (rows, columns), nnz, choices)


def _tensor(name: str, shape: tuple[int, ...], nnz: int, choice: str) -> Published:
    return Published(name, shape, nnz, {kernel: tuple(choice.split()) for kernel in ("spttm", "mttkrp")})


_SPGEMM, _SPMM = "rlc csc dense csc", "rlc dense dense dense"
MATRICES = (
    _matrix("journal", 124, 124, 12_000, "zvc zvc dense dense", "zvc dense dense dense"),
    _matrix("bibd", 171, 92_000, 3_300_000, _SPGEMM, _SPMM),
    _matrix("dendrimer", 730, 730, 63_000, _SPGEMM, _SPMM),
    _matrix("speech1", 11_000, 3_600, 3_900_000, _SPGEMM, _SPMM),
    _matrix("speech2", 7_700, 2_600, 1_000_000, _SPGEMM, _SPMM),
    _matrix("nd3k", 9_000, 9_000, 3_300_000, _SPGEMM, _SPMM),
    _matrix("cavity14", 2_600, 2_600, 76_000, "csr csc dense csc", "csr dense csr dense"),
    _matrix("model3", 1_600, 4_600, 24_000, "csr csc csr csc", "csr dense csr dense"),
    _matrix("cat_ears", 5_200, 13_200, 40_000, "csr csc csr csc", "csr dense csr dense"),
    _matrix("m3plates", 11_000, 11_000, 6_600, "coo coo csr csc", "coo dense csr dense"),
)
TENSORS = (
    _tensor("BrainQ", (60, 70_000, 9), 11_000_000, "zvc dense dense dense"),
    _tensor("Crime", (6_200, 24, 2_500), 5_200_000, "csf dense csf dense"),
    _tensor("Uber", (4_400, 1_100, 1_700), 3_300_000, "coo dense csf dense"),
)


def published() -> Iterator[tuple[Published, str]]:
    """Each row and kernel of table III."""
    for row in (*MATRICES, *TENSORS):
        for kernel in row.choices:
            yield row, kernel


#: Figure 14a: input channels, output channels, side of the activations, side of the filter.
LAYERS = (
    (3, 64, 32, 3),
    (64, 256, 32, 1),
    (128, 512, 16, 1),
    (128, 128, 16, 3),
    (1024, 256, 8, 1),
    (256, 256, 8, 3),
    (512, 2048, 4, 1),
    (512, 512, 4, 3),
)
#: Figure 14a: sparsity of activations and of weights in percent, layer by layer.
PRUNINGS = {
    "normal": tuple((each, 0.0) for each in (0, 56.6, 63.1, 52.6, 60.2, 59.4, 64.0, 49.2)),
    "50 % a layer": tuple((each, 50.0) for each in (0, 55.5, 59.2, 52.0, 57.0, 56.5, 61.0, 47.8)),
    "70 % global": tuple(
        zip(
            (0, 55.0, 60.4, 52.3, 59.8, 57.0, 41.0, 43.6),
            (45.4, 74.8, 63.4, 35.3, 49.9, 38.3, 88.2, 98.4),
            strict=True,
        )
    ),
}
#: Density of the activations of layers 2 to 8, mean, without pruning.
ACTIVATIONS = 0.42
BATCH = 64


def layer(number: int, pruning: str, outputs: float = 1.0) -> Workload:
    """A convolution as a product (im2col, stride 1): a row of A is what a filter sees, B has the filters.

    ``outputs``: the share of them that is left of ReLU.

    Memory keeps the activations themselves: the paper calls those of layer 8 fewer than its weights, which im2col would not
    leave so.
    """
    inputs, filters, side, window = LAYERS[number]
    activations, weights = (1 - each / 100 for each in PRUNINGS[pruning][number])
    pixels = side * side * BATCH
    work = uniform("spgemm", (pixels, inputs * window * window, filters), activations, weights)
    a, o = random_operand((pixels, inputs), activations, work.a.run_bits), work.o
    return replace(work, a=a, o=o if outputs == 1 else random_operand(o.shape, outputs, o.run_bits))
