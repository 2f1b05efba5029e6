"""The table of the converter's builds: parts of modules add up, and it goes between its markers alone."""

import pytest

from benchmarks.builds import Areas, written


def test_areas_of_a_build():
    areas = Areas(None)
    areas._own = {
        "top": (1.0, {"core_a": 2, "queue": 1}),
        "core_a": (10.0, {"divmod_4": 1}),
        "divmod_4": (5.0, {}),
        "queue": (3.0, {}),
    }
    assert areas.whole("top") == 1 + 2 * 15 + 3
    assert areas.part("top", "divmod") == 10
    assert areas.part("top", "core") == 30


def test_a_table_goes_between_its_markers():
    begin, end = (
        f"<!-- converter builds, cells: written by `python -m benchmarks.builds`{rest} -->" for rest in ("", ", end")
    )
    assert written(f"a\n{begin}\nold\n{end}\nb", "cells", "new") == f"a\n{begin}\n\nnew\n\n{end}\nb"
    with pytest.raises(ValueError, match=r"^there is no <!-- converter builds, ecp5"):
        written(begin + end, "ecp5", "new")
