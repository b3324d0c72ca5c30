"""Methods side by side, and a search over them for the Pareto front of several scores."""

from graphcouple.searches.halving import search
from graphcouple.searches.result import SearchResult
from graphcouple.searches.runs import Fit
from graphcouple.searches.space import Candidate, RandomMap

__all__ = ["Candidate", "Fit", "RandomMap", "SearchResult", "search"]
