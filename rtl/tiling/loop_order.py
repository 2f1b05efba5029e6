"""Inter-tile orders: which rank each loop level walks, and how one step moves the three ranks."""

from dataclasses import dataclass

from amaranth.hdl import Array, Const, Value

from ..regs.map import ORDERS

__all__ = ["LoopStep", "rank_at", "step"]


def rank_at(level: int, order: Value) -> Value:
    """Index in ``ijk`` of the rank that loop ``level`` (0 outermost) walks under ``order``."""
    return Array(Const("ijk".index(name[level]), 2) for name in ORDERS)[order]


@dataclass(frozen=True)
class LoopStep:
    """``moves[r]``: rank r moves in this step (``ijk`` order); ``last``: no tile follows."""

    moves: list[Value]
    last: Value


def step(order: Value, at_end: list[Value]) -> LoopStep:
    """One step of the loop nest: the innermost rank moves, and each next one when all inside it are at their end."""
    ends = Array(at_end)
    inner, middle, outer = rank_at(2, order), rank_at(1, order), rank_at(0, order)
    inner_end, middle_end = ends[inner], ends[middle]
    moves = [(inner == r) | ((middle == r) & inner_end) | ((outer == r) & inner_end & middle_end) for r in range(3)]
    return LoopStep(moves=moves, last=at_end[0] & at_end[1] & at_end[2])
