"""What the functions give back: the command's record, and its main figures by name."""

import copy
import functools
import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import MissingToolError

__all__ = ["Comparison", "Ranking", "Result"]


class Result:
    """The outcome of one call.

    ``record``: the document that the command prints with ``--json``. ``correct``: all that was checked holds.
    ``arrays``: of :func:`fiberloom.convert`, the arrays of the format by name; empty elsewhere.
    """

    def __init__(
        self, record: dict[str, Any], *, correct: bool = True, c: Any = None, arrays: Mapping[str, Any] | None = None
    ) -> None:
        self.record = record
        self.correct = correct
        self.arrays = dict(arrays or {})
        self._c = c

    @property
    def cycles(self) -> int | None:
        """Clock cycles; None where the engine has none."""
        return self.record.get("cycles")

    @property
    def dram_bytes(self) -> int | None:
        """Bytes of DRAM traffic, read and written; None where the engine has none."""
        found = self.record.get("dram_bytes")
        if isinstance(found, dict):
            return int(found["total"] if "total" in found else found["read"] + found["write"])
        return found

    @property
    def energy_pJ(self) -> dict[str, float] | None:
        """Picojoules by component, and their ``total``; None where nothing is counted."""
        found = self.record.get("energy_pJ")
        return None if found is None else dict(found)

    @functools.cached_property
    def C(self) -> Any:
        """The product as SciPy's ``csr_array`` in the design's value type, without zeros; None where nothing is multiplied."""
        return None if self._c is None else self._c.to_scipy()

    def to_dict(self) -> dict[str, Any]:
        """A copy of the record."""
        return copy.deepcopy(self.record)

    def to_frame(self) -> Any:
        """The record as a pandas frame of one row; a field of a field has both names, as in ``dram_bytes.total``.

        Raises MissingToolError without pandas.
        """
        return _pandas().json_normalize(self.to_dict())

    def __repr__(self) -> str:
        said = [f"{name}={value:,}" for name, value in self._figures().items() if value is not None]
        return f"<fiberloom.Result {' '.join([*said, f'correct={self.correct}'])}>"

    def _figures(self) -> dict[str, int | None]:
        return {"cycles": self.cycles, "dram_bytes": self.dram_bytes}

    def _repr_html_(self) -> str:
        plain = {name: value for name, value in self.record.items() if not isinstance(value, dict | list)}
        return _table(["field", "value"], list((plain | self._figures()).items()))


class Comparison(Mapping[str, Result]):
    """Results of :func:`fiberloom.compare` by tiling, in the order in which they ran.

    ``record``: the list of records that the command prints with ``--json``. ``correct``: of all. ``failures``: the reason of each
    tiling that did not run.
    """

    def __init__(self, record: list[dict[str, Any]], *, correct: bool, failures: Mapping[str, str]) -> None:
        self.record = record
        self.correct = correct
        self.failures = dict(failures)
        self._results = {each["tiling"]: Result(each, correct=each["correct"]) for each in record}

    def __getitem__(self, tiling: str) -> Result:
        return self._results[tiling]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def cycles(self) -> dict[str, int | None]:
        """Clock cycles by tiling."""
        return {name: result.cycles for name, result in self.items()}

    @property
    def dram_bytes(self) -> dict[str, int | None]:
        """Bytes of DRAM traffic by tiling."""
        return {name: result.dram_bytes for name, result in self.items()}

    @property
    def energy_pJ(self) -> dict[str, dict[str, float] | None]:
        """Picojoules by tiling, by component."""
        return {name: result.energy_pJ for name, result in self.items()}

    @property
    def C(self) -> None:
        """None: a comparison keeps no products."""
        return None

    def to_dict(self) -> list[dict[str, Any]]:
        """A copy of the records."""
        return copy.deepcopy(self.record)

    def to_frame(self) -> Any:
        """A pandas frame of the columns of the command's ``table.csv``, a row for each tiling.

        Raises MissingToolError without pandas.
        """
        return _pandas().DataFrame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        from sw.cli.from_python import table

        return table(self.record)

    def __repr__(self) -> str:
        said = ", ".join(f"{name}: {cycles}" for name, cycles in self.cycles.items())
        return f"<fiberloom.Comparison, cycles {said}; correct={self.correct}>"

    def _repr_html_(self) -> str:
        rows = self._rows()
        return _table(list(rows[0]), [tuple(row.values()) for row in rows])


class Ranking(Sequence[dict[str, Any]]):
    """Candidates of :func:`fiberloom.formats`, best first: ``ranking[0]["mcf"]["A"]``.

    ``record``: the list that the command prints with ``--json``. ``correct``: True, nothing is computed.
    """

    correct = True

    def __init__(self, record: list[dict[str, Any]]) -> None:
        self.record = record

    def __getitem__(self, place: Any) -> Any:
        return self.record[place]

    def __len__(self) -> int:
        return len(self.record)

    def to_dict(self) -> list[dict[str, Any]]:
        """A copy of the record."""
        return copy.deepcopy(self.record)

    def to_frame(self) -> Any:
        """A pandas frame with a row for each candidate and columns as ``mcf.A``. Raises MissingToolError without pandas."""
        return _pandas().json_normalize(self.to_dict())

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {f"MCF {name}": kind for name, kind in each["mcf"].items()}
            | {f"ACF {name}": kind for name, kind in each["acf"].items()}
            | {"cycles": each["cycles"]["total"], "energy_pJ": each["energy_pJ"]["total"], "edp": each["edp"]}
            for each in self.record
        ]

    def __repr__(self) -> str:
        first = self.record[0]
        return f"<fiberloom.Ranking of {len(self)}, best mcf={first['mcf']} acf={first['acf']}>"

    def _repr_html_(self) -> str:
        rows = self._rows()
        return _table(list(rows[0]), [tuple(row.values()) for row in rows])


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError:
        raise MissingToolError("to_frame() needs pandas: pip install pandas") from None
    return pandas


def _table(head: list[str], rows: list[tuple[Any, ...]]) -> str:
    """An HTML table; numbers stand right, None is a dash."""

    def cell(value: Any) -> str:
        if value is None:
            return "<td>-</td>"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"<td>{html.escape(str(value))}</td>"
        return f'<td style="text-align: right">{value:,}</td>' if isinstance(value, int) else _real(value)

    def _real(value: float) -> str:
        return f'<td style="text-align: right">{value:,.4g}</td>'

    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"
