"""How sums over all pairs of points are done: one N-body primitive, several ways to compute it."""

from graphcouple.summation._base import Summation, as_summation
from graphcouple.summation.exact import Exact

__all__ = ["Exact", "Summation", "as_summation"]
