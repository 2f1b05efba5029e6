"""All statistics of one pair of operands, computed once and kept."""

import numpy as np
from numpy.typing import NDArray

from sw.formats.canonical import Matrix
from sw.formats.memory_csr import ELEMENT_BYTES

from .effmac import exact_effmac, row_macs, sampled_effmac
from .nnzc import OutputCounts, exact_counts, sketch_counts
from .occupancy import TileList
from .output_rows import OutputRows, nnz_by_macs, nnz_of_groups, rows_by_macs, rows_of_counts, sample_output_rows
from .pattern import Index, Pattern, default_fraction, sample_coordinates
from .segments import ScanProfile, rows_by_length, scan_profile

__all__ = ["STATISTICS", "Workload", "effective_width"]

STATISTICS = ("sketch", "sampled", "exact", "rows")
# Symbolic products of up to this many MACs are cheap enough to need no estimate.
EXACT_MACS = 1 << 16
# MACs spent on whole rows of C.
SAMPLED_ROW_MACS = 1 << 16
# The same where only nonzeros of its rows are counted, or of the results of their groups: a tenth of a second.
COUNTED_ROW_MACS = 1 << 25


def effective_width(macs: Index, nonzeros: float, most: int, times: Index | None = None) -> float:
    """The one number W for which W (1 - exp(-m / W)), summed over rows with m ``macs``, is ``nonzeros``; from 1 to ``most``.

    ``times``: how often each row counts, once if not given.
    """
    picked = macs > 0 if times is None else (macs > 0) & (times > 0)
    if not picked.any():
        return 1.0
    order = np.argsort(macs[picked], kind="stable")
    macs, rows = macs[picked][order], len(order)
    places = np.linspace(0, rows - 1, min(rows, 4096)).astype(np.int64)
    if times is not None:
        before = np.cumsum(times[picked][order])
        rows = int(before[-1])
        places = np.searchsorted(before, np.linspace(0, rows - 1, min(rows, 4096)), side="right")
    few, wanted = macs[places], nonzeros / rows
    low, high = 1.0, float(most)
    for _ in range(24):
        middle = (low * high) ** 0.5
        if np.mean(-middle * np.expm1(-few / middle)) < wanted:
            low = middle
        else:
            high = middle
    return max(1.0, (low * high) ** 0.5)


class Workload:
    """A (I x K) times B (K x J): sizes, uses, tile lists, segment profiles and output counts, computed on first use.

    Parameters
    ----------
    A, B: matrices of any SciPy format, or patterns.
    lanes: nonzeros in a bus line.
    statistics: where output counts come from. ``sketch``: effMAC exact, nnzC by HYTE's sketch over as many rows and
        columns as are cheap to look at. ``sampled``: the paper's defaults, 1/sqrt(N) of rows and columns for effMAC and
        nnzC, sqrt(N) hashes. ``exact``: symbolic product. ``rows``: effMAC exact, nnzC from some whole rows of C, drawn
        by their MACs: the quickest.
    fraction, sketch_size: override the sampled fraction of rows and columns, and the number of hashes.
    """

    def __init__(
        self,
        A: Matrix | Pattern,
        B: Matrix | Pattern,
        *,
        lanes: int,
        statistics: str = "sketch",
        fraction: float | None = None,
        sketch_size: int | None = None,
        seed: int = 0,
    ) -> None:
        self.a = Pattern.of(A)
        self.b = self.a if B is A else Pattern.of(B)
        if self.a.columns != self.b.rows:
            raise ValueError(f"A has {self.a.columns} columns but B has {self.b.rows} rows")
        if statistics not in STATISTICS:
            raise ValueError(f"Statistics must be one of {', '.join(STATISTICS)}, not {statistics!r}")
        self.lanes = lanes
        self.statistics = statistics
        self.fraction = fraction
        self.sketch_size = sketch_size
        self.seed = seed
        self.I, self.K, self.J = self.a.rows, self.a.columns, self.b.columns
        self.uses: Index = self.a.column_counts()
        self._tiles: dict[str, dict[tuple[int, int], TileList]] = {"A": {}, "B": {}}
        self._scans: dict[tuple[str, int], dict[int, ScanProfile]] = {}
        self._output: OutputCounts | None = None
        self._effmac: float | None = None
        self._row_macs: Index | None = None
        self._ordered: dict[str, Index] = {}
        self._width: float | None = None
        self._output_rows: OutputRows | None = None
        self._nnz_c: float | None = None
        self._row_nonzeros: NDArray[np.float64] | None = None
        self._group_nonzeros: dict[int, tuple[NDArray[np.float64], float]] = {}

    @property
    def effmac(self) -> float:
        """Effectual multiply-accumulates."""
        if self._effmac is None:
            if self.statistics == "sampled":
                fraction = self.fraction or max(self.I, self.J) ** -0.5
                self._effmac = sampled_effmac(self.a, self.b, fraction=fraction, seed=self.seed)
            else:
                self._effmac = float(exact_effmac(self.a, self.b))
        return self._effmac

    @property
    def row_macs(self) -> Index:
        """Effectual multiply-accumulates of each row of C."""
        if self._row_macs is None:
            self._row_macs = row_macs(self.a, self.b)
        return self._row_macs

    @property
    def output(self) -> OutputCounts:
        """nnz(C), nnzC_Tk and what k steps carry."""
        if self._output is None:
            self._output = self._count_output()
        return self._output

    @property
    def nnz_c(self) -> float:
        """nnz(C)."""
        if self._nnz_c is None:
            self._nnz_c = (
                nnz_by_macs(self.a, self.b, self.row_macs, COUNTED_ROW_MACS)
                if self.statistics == "rows"
                else self.output.nnz
            )
        return self._nnz_c

    @property
    def output_rows(self) -> OutputRows:
        """Some rows of C, for what depends on how its nonzeros lie together."""
        if self._output_rows is None and self.statistics == "rows":
            self._output_rows = rows_of_counts(self.output)
        if self._output_rows is None:
            self._output_rows = sample_output_rows(self.a, self.b, self.row_macs, SAMPLED_ROW_MACS)
        return self._output_rows

    def _count_output(self) -> OutputCounts:
        if self.statistics == "rows":
            return rows_by_macs(self.a, self.b, self.row_macs, SAMPLED_ROW_MACS, self.nnz_c)
        if self.statistics == "exact" or (self.statistics == "sketch" and self.effmac <= EXACT_MACS):
            return exact_counts(self.a, self.b)
        rng = np.random.default_rng(self.seed)
        if self.statistics == "sampled":
            fractions = (self.fraction or self.I**-0.5, self.fraction or self.J**-0.5)
            size = self.sketch_size or max(1, round(max(self.I, self.J) ** 0.5))
        else:
            nonzeros = self.a.nnz + self.b.nnz
            whole = default_fraction(self.I, nonzeros), default_fraction(self.J, nonzeros)
            fractions = (self.fraction or whole[0], self.fraction or whole[1])
            size = self.sketch_size or 4096
        rows = sample_coordinates(self.I, fractions[0], rng)
        columns = sample_coordinates(self.J, fractions[1], rng)
        return sketch_counts(self.a, self.b, rows=rows, columns=columns, size=size, seed=self.seed)

    def tiles(self, tensor: str, rows: int, columns: int) -> TileList:
        """Nonempty tiles of A or B; B's are weighted with the uses of their rows, so that ``weight`` counts MACs.

        Built from the coarsest list at hand that divides the shape, so that a walk over powers of two costs little more
        than its finest shapes.
        """
        known = self._tiles[tensor]
        if not known:
            ones = np.ones(self.I, np.int64)
            known[1, 1] = TileList.single(self.a, ones) if tensor == "A" else TileList.single(self.b, self.uses)
        if (rows, columns) not in known:
            high, wide = (self.I, self.K) if tensor == "A" else (self.K, self.J)
            finer = [
                s for s in known if (rows % s[0] == 0 or rows >= high) and (columns % s[1] == 0 or columns >= wide)
            ]
            best = min(finer, key=lambda s: (len(known[s].columns), s))
            known[rows, columns] = known[best].merged(-(-rows // best[0]), -(-columns // best[1]))
        return known[rows, columns]

    def scan(self, tensor: str, T: int, width: int | None = None) -> ScanProfile:
        """Cost of taking segments of ``T`` columns out of the rows of A or B.

        ``width``: bits of a record; None where nobody asks for beats.
        """
        known = self._scans.setdefault((tensor, T), {})
        if width is None:
            width = next(iter(known), 8 * ELEMENT_BYTES)
        if width not in known:
            matrix, uses = (self.a, np.ones(self.I, np.int64)) if tensor == "A" else (self.b, self.uses)
            if tensor not in self._ordered:
                self._ordered[tensor] = rows_by_length(matrix)
            known[width] = scan_profile(matrix, T, self.lanes, uses, width, self._ordered[tensor])
        return known[width]

    @property
    def width(self) -> float:
        """Number of columns in which random products of a row would collide as often as its products do.

        See :func:`effective_width`; together they are nnz(C).
        """
        if self._width is None:
            self._width = effective_width(self.row_macs, self.nnz_c, self.J)
        return self._width

    @property
    def row_nonzeros(self) -> NDArray[np.float64]:
        """Nonzeros of each row of C, by its MACs and :attr:`width`; together about nnz(C)."""
        if self._row_nonzeros is None:
            found = -self.width * np.expm1(-self.row_macs / self.width)
            found *= self.nnz_c / max(1.0, float(found.sum()))
            self._row_nonzeros = np.minimum(found, np.minimum(self.row_macs, self.J))
        return self._row_nonzeros

    def group_nonzeros(self, radix: int) -> NDArray[np.float64]:
        """Nonzeros that the results of each row's groups of ``radix`` nonzeros of A have together; 0 where one is enough.

        Counted where that is cheap; else by MACs and :attr:`width`, as much too many as on the rows that are counted.
        """
        return self._groups(radix)[0]

    def group_share(self, radix: int) -> float:
        """How many of the nonzeros that MACs and :attr:`width` say the results of groups have: as neighbours collide more."""
        return self._groups(radix)[1]

    def _groups(self, radix: int) -> tuple[NDArray[np.float64], float]:
        if radix not in self._group_nonzeros:
            found, share = np.zeros(self.I), 1.0
            long = np.flatnonzero(self.a.row_lengths > radix)
            macs = np.zeros(self.I, np.int64)
            macs[long] = self.row_macs[long]
            groups = -(-self.a.row_lengths[long] // radix)
            found[long] = -self.width * np.expm1(-self.row_macs[long] / groups / self.width) * groups
            picked, counts, stands_for = nnz_of_groups(self.a, self.b, macs, radix, COUNTED_ROW_MACS)
            if len(picked):
                share = float(counts @ stands_for) / float(found[picked] @ stands_for)
            if len(picked) == np.count_nonzero(macs):
                found[picked] = counts
            else:
                found *= share
            self._group_nonzeros[radix] = np.minimum(found, macs), share
        return self._group_nonzeros[radix]
