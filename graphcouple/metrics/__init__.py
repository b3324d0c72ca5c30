"""Scores of embeddings: neighborhoods of every size, distances, classes, stability."""

from graphcouple.metrics._alignment import align
from graphcouple.metrics._classes import ClusterScores, class_mean_disparity, cluster_scores, knn_accuracy
from graphcouple.metrics._density import DensityMatch, density_match
from graphcouple.metrics._distances import distance_correlation, seed_stability, triplet_correlation
from graphcouple.metrics._evaluate import SAMPLED_ROWS, evaluate, register, scorer, unregister
from graphcouple.metrics._neighborhoods import (
    NeighborhoodCurves,
    continuity,
    k_ary_preservation,
    neighborhood_curves,
    trustworthiness,
)
from graphcouple.metrics._tears import Tears, tears

__all__ = [
    "SAMPLED_ROWS", "ClusterScores", "DensityMatch", "NeighborhoodCurves", "Tears", "align", "class_mean_disparity",
    "cluster_scores", "continuity", "density_match", "distance_correlation", "evaluate", "k_ary_preservation",
    "knn_accuracy", "neighborhood_curves", "register", "scorer", "seed_stability", "tears", "triplet_correlation",
    "trustworthiness", "unregister",
]  # fmt: skip
