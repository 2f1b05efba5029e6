"""Functional coverage: the bins of the testplans, the hits of the benches, and the page that joins them."""

from .bins import COVERAGE_FILE, Coverage, merge
from .plans import Plan, plan, plans

__all__ = ["COVERAGE_FILE", "Coverage", "Plan", "merge", "plan", "plans"]
