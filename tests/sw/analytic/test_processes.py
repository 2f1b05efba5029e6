"""Work in several processes: order, results as they come, errors, what is left when it ends early."""

import multiprocessing
import os
import time

import pytest

from sw.analytic.processes import in_order


def squares(item: int) -> list[int]:
    time.sleep(0.02 * (item % 3))
    return [item * item, -item]


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_results_stand_in_the_order_of_the_items(jobs):
    expected = [value for item in range(12) for value in (item * item, -item)]
    assert list(in_order(jobs, range(12), squares)) == expected
    assert list(in_order(jobs, [], squares)) == []


def test_results_come_before_the_item_ends():
    def slow(item):
        yield item
        time.sleep(60)
        yield item

    began = time.monotonic()
    results = in_order(2, range(4), slow)
    assert next(results) == 0 and time.monotonic() - began < 30
    results.close()
    assert not multiprocessing.active_children()


def test_errors_and_dead_processes_are_raised():
    def fails(item):
        if item == 2:
            raise ValueError("no 2")
        return [item]

    with pytest.raises(ValueError, match="no 2"):
        list(in_order(2, range(4), fails))

    def dies(item):
        os._exit(1)

    with pytest.raises(Exception, match="terminated abruptly"):
        list(in_order(2, range(2), dies))
