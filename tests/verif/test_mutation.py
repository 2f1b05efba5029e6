"""The mutation tests' own tests: what is changed, in which order, and what is told about it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from rtl.accessor.part_aligner import PartAligner
from rtl.accessor.unroller import Unroller
from verif.mutation import emitted, trial
from verif.mutation.choose import candidates
from verif.mutation.operators import mutations
from verif.mutation.report import BEGIN, END, Review, review_of, reviewed, summary, write_page
from verif.mutation.tests_of import distances, in_turn
from verif.mutation.trial import Outcome, try_mutation
from verif.tables import read_table

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A block: 1 + 1."""


class Counter(Block):
    """Counts to depth - 1."""

    def __init__(self, depth: int) -> None:
        if depth < 2:
            raise ValueError(f"depth must be above {1 + 0}, not {depth!r}")

    def build(self, platform: Any) -> Module:
        m = Module()
        index = Signal(range(4), init=3)
        connect(m, self.a, self.b)
        connect(m, self.c, self.d)
        with m.If(self.go & (index != 7)):
            m.d.sync += index.eq(index + 1)
        m.d.comb += [
            self.o.eq(Mux(self.up, index, ~index)),  # "ü"
            self.p.eq(self.q),
        ]
        return m


def sizes(depth: int) -> int:
    return depth - 1
'''


def found() -> dict[tuple[str, str], str]:
    return {(m.operator, m.after): m.apply(SOURCE) for m in mutations("counter.py", SOURCE)}


@pytest.mark.parametrize(
    "operator, after, line",
    [
        ("operator", "self.go | (index != 7)", "with m.If(self.go | (index != 7)):"),
        ("compare", "index == 7", "with m.If(self.go & (index == 7)):"),
        ("negate", "~(self.go & (index != 7)).bool()", "with m.If(~(self.go & (index != 7)).bool()):"),
        ("constant", "8", "with m.If(self.go & (index != 8)):"),
        ("constant", "0", "m.d.sync += index.eq(index + 0)"),
        ("operator", "index - 1", "m.d.sync += index.eq(index - 1)"),
        ("pointer", "(index + 1) + 1", "m.d.sync += index.eq((index + 1) + 1)"),
        ("to_comb", "m.d.comb += index.eq(index + 1)", "m.d.comb += index.eq(index + 1)"),
        ("to_sync", "m.d.sync += self.p.eq(self.q)", "        m.d.sync += self.p.eq(self.q)"),
        ("mux", "~index <> index", 'self.o.eq(Mux(self.up, ~index, index)),  # "ü"'),
        ("not", "(index)", 'self.o.eq(Mux(self.up, index, (index))),  # "ü"'),
        ("swap_sources", "self.q <> Mux(self.up, index, ~index)", 'self.o.eq(self.q),  # "ü"'),
        ("swap_ports", "self.d <> self.b", "connect(m, self.a, self.d)"),
        ("drop", "pass", "        pass"),
        ("drop", "nothing", "            m.d.sync += []"),
    ],
)
def test_each_kind_of_change(operator: str, after: str, line: str) -> None:
    texts = [m.apply(SOURCE) for m in mutations("counter.py", SOURCE) if (m.operator, m.after) == (operator, after)]
    assert any(line in text for text in texts)


def test_every_mutant_is_python_and_differs() -> None:
    for (operator, _), text in found().items():
        ast.parse(text)
        assert text != SOURCE, operator


def test_only_hardware_is_changed() -> None:
    untouched = SOURCE.split("        m = Module()")[0], SOURCE.split("        return m")[1]
    for text in found().values():
        assert text.startswith(untouched[0]) and text.endswith(untouched[1])
        assert "index = Signal(range(4), init=" in text


def test_the_order_depends_on_the_seed_and_each_kind_comes_before_any_second() -> None:
    one, again, other = (candidates({"counter.py": SOURCE}, seed)["counter.py"] for seed in (1, 1, 2))
    assert [m.name for m in one] == [m.name for m in again] != [m.name for m in other]
    kinds = len({m.operator for m in one})
    assert len({m.operator for m in one[:kinds]}) == kinds
    assert sorted(m.name for m in one) == sorted(m.name for m in other)


def test_names_are_unique_in_every_source_file() -> None:
    for path in (ROOT / "rtl").rglob("*.py"):
        names = [m.name for m in mutations(str(path), path.read_text())]
        assert len(names) == len(set(names))


def test_the_digest_of_a_file_is_of_its_own_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no build has it, every mutant would look like the original."""
    file = "rtl/accessor/part_aligner.py"
    monkeypatch.setattr(emitted, "blocks", lambda file: [lambda: PartAligner(lanes=2)])
    assert emitted.digest(file)
    monkeypatch.setattr(emitted, "blocks", lambda file: [lambda: Unroller(lanes=2)])
    with pytest.raises(LookupError, match="no build has PartAligner"):
        emitted.digest(file)


@pytest.mark.parametrize("path", emitted.BUILDS)
def test_every_build_for_digests_can_be_made(path: str) -> None:
    for make in emitted.blocks(path.rsplit(".", 1)[0].replace(".", "/") + ".py"):
        make()


def test_the_nearest_tests_of_a_block() -> None:
    far = distances(ROOT, "tests/rtl/pe/test_combiner.py")
    assert far["rtl/pe/combiner.py"] == 1 and far["rtl/arith/int_add.py"] > 1
    assert "rtl/buffer/tailors.py" not in far


def test_every_test_function_has_its_turn() -> None:
    assert in_turn({"a[1]": 0.1, "a[2]": 0.2, "b": 5.0, "c[x]": 0.3, "c[y]": 0.2}) == [
        "a[1]",
        "c[y]",
        "b",
        "a[2]",
        "c[x]",
    ]


OUTCOMES = [
    Outcome("a", "rtl/x.py", 1, "drop", "p", "nothing", verdict="caught", test="tests/rtl/test_x.py::test_p"),
    Outcome("b", "rtl/x.py", 2, "mux", "p <> q", "q <> p", verdict="survived"),
    Outcome("c", "rtl/x.py", 3, "not", "~p", "(p)", verdict="survived"),
    Outcome("d", "rtl/x.py", 4, "not", "~q", "(q)", verdict="invalid"),
]
KNOWN = {("rtl/x.py", "mux", "p <> q", "q <> p"): Review(True, "p is q")}


def test_the_share_leaves_out_what_is_no_other_hardware(tmp_path: Path) -> None:
    assert "3 mutants: 1 caught by a test, 0 by a time limit, 1 survived, 1 are shown" in summary(OUTCOMES, KNOWN)
    assert "50.0 % of the others caught" in summary(OUTCOMES, KNOWN)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_page(page, OUTCOMES, KNOWN, 1)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert "| `rtl/x.py` | 3 | 1 | 0 | 1 | 1 | `test_x` 1 |" in text
    assert "| yes | p is q |" in text and "| not looked at |" in text
    assert f"{BEGIN}\nSeed 1, 1 files. 3 mutants" in text
    write_page(page, OUTCOMES, KNOWN, None)
    assert f"{BEGIN}\nSeveral seeds, 1 files. 3 mutants" in page.read_text()


def test_a_review_of_one_line_is_not_taken_for_another(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("a = 1\nb = 1\n")
    known = {("x.py", "constant", "1", "2"): Review(True, "only b", "b = ")}
    first, second, gone = (Outcome("m", "x.py", line, "constant", "1", "2", verdict="survived") for line in (1, 2, 3))
    assert review_of(first, known, tmp_path) is None and review_of(gone, known, tmp_path) is None
    assert review_of(second, known, tmp_path) == known["x.py", "constant", "1", "2"]


PLANTED = """from rtl.word import double


def test_double() -> None:
    assert double(1) == 2
"""
WORD = """def double(value: int) -> "Value":
    return value + value
"""


def tree_of(folder: Path, tests: str) -> None:
    """A tree with one function that counts as hardware, and tests."""
    (folder / "rtl").mkdir()
    (folder / "rtl" / "__init__.py").touch()
    (folder / "rtl" / "word.py").write_text(WORD)
    (folder / "test_word.py").write_text(tests)
    (folder / "verif").symlink_to(ROOT / "verif")
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\nmarkers = ["slow: long"]\n')


def test_a_mutant_is_caught_in_a_copy(tmp_path: Path) -> None:
    tree_of(tmp_path, PLANTED)
    (mutation,) = mutations("rtl/word.py", WORD)
    outcome = try_mutation(tmp_path, mutation, {"test_word.py::test_double": 0.1}, {}, [], lambda part: part)
    assert (outcome.verdict, outcome.test) == ("caught", "test_word.py::test_double")
    assert (tmp_path / "rtl" / "word.py").read_text() == WORD


def test_what_the_first_tests_let_pass_is_given_further_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_hardware", lambda *_: "")  # this tree has none
    tree_of(tmp_path, "def test_nothing() -> None: ...\n\n\n" + PLANTED)
    (mutation,) = mutations("rtl/word.py", WORD)
    first, further = {"test_word.py::test_nothing": 0.1}, {"test_word.py::test_double": 0.1}
    assert try_mutation(tmp_path, mutation, first, {}, [], lambda part: part).verdict == "survived"
    assert try_mutation(tmp_path, mutation, first, further, [], lambda part: part).verdict == "caught"


def test_every_review_is_of_a_change_of_the_present_source():
    """A review is found by file and text: where either is gone, it would never be matched again."""
    for file, operator, before, after in reviewed():
        assert (ROOT / file).is_file(), f"{file} of survivors.toml is not there"
        changes = {(m.operator, m.before, m.after) for m in mutations(file, (ROOT / file).read_text())}
        assert (operator, before, after) in changes, f"{file} has no {operator} of {before!r}"


def test_the_tests_that_tables_name_exist():
    tables = read_table(ROOT / "verif" / "mutation" / "benches.toml")
    named = sorted({test for table in tables.values() for tests in table.values() for test in tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_planting_tests_are_marked():
    """A mutant would fail them because its text is another."""
    texts = {path.name: path.read_text() for path in (ROOT / "tests" / "rtl").rglob("test_*.py")}
    planting = {name: text for name, text in texts.items() if "from tests.rtl.planted import" in text}
    assert len(planting) > 5
    for name, text in planting.items():
        whole = "pytestmark = pytest.mark.plants" in text
        assert whole or text.count("@pytest.mark.plants") == text.count("= planted(") > 0, name
