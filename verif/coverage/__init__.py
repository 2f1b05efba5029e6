"""Functional coverage: the bins of the testplans, what benches hit of them, and the page that joins it."""

from .bins import COVERAGE_FILE, Coverage, merge
from .plans import Plan, plan, plans

__all__ = ["COVERAGE_FILE", "Coverage", "Plan", "merge", "plan", "plans"]
