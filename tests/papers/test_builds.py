"""The table of the converter's builds: parts of modules add up."""

from benchmarks.builds import Areas


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
