"""Distances between points, and nearest neighbours."""

from graphcouple.neighbors.blocks import Block, Blocks
from graphcouple.neighbors.by_metric import coordinates_of, distances_of
from graphcouple.neighbors.distances import SEARCHES, Distances
from graphcouple.neighbors.groups import mean_sq_distances_to_groups, sq_distances_to_points
from graphcouple.neighbors.inverted_file import InvertedFile
from graphcouple.neighbors.merging import merge, partial
from graphcouple.neighbors.own_graph import OwnNeighbors, remembered_distances
from graphcouple.neighbors.points import as_points, near_origin
from graphcouple.neighbors.precomputed import is_precomputed
from graphcouple.neighbors.projection import product_of_rows
from graphcouple.neighbors.search import all_pairs, nearest_neighbors, neighbors_among
from graphcouple.neighbors.transformer import NeighborsTransformer

__all__ = [
    "SEARCHES", "Block", "Blocks", "Distances", "InvertedFile", "NeighborsTransformer", "OwnNeighbors", "all_pairs",
    "as_points", "coordinates_of", "distances_of", "is_precomputed", "mean_sq_distances_to_groups", "merge",
    "near_origin", "nearest_neighbors", "neighbors_among", "partial", "product_of_rows", "remembered_distances",
    "sq_distances_to_points",
]  # fmt: skip
