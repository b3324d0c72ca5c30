"""Statements of the graph-coupling paper as objects: fields, normalizers, limits, degeneracy, Wishart laws."""

from graphcouple.theory.degeneracy import DegeneracyReport, degeneracy_report
from graphcouple.theory.field import PairwiseMRF, component_indicators, laplacian, split
from graphcouple.theory.finite_epsilon import EnumeratedPosterior, enumerate_graphs, finite_epsilon_posterior
from graphcouple.theory.normalizers import LogNormalizer
from graphcouple.theory.wishart import PrecisionPosterior

__all__ = [
    "DegeneracyReport", "EnumeratedPosterior", "LogNormalizer", "PairwiseMRF", "PrecisionPosterior",
    "component_indicators", "degeneracy_report", "enumerate_graphs", "finite_epsilon_posterior", "laplacian",
    "split",
]  # fmt: skip
