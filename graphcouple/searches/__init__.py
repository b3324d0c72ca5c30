"""Search over methods: which of them no other surpasses, and how sure that is."""

from graphcouple.searches.halving import search
from graphcouple.searches.result import SearchResult
from graphcouple.searches.runs import Fit
from graphcouple.searches.space import Candidate, RandomMap

__all__ = ["Candidate", "Fit", "RandomMap", "SearchResult", "search"]
