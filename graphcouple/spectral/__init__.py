"""Spectral problems: Gram matrices and graph Laplacians, and embeddings by their eigenvectors."""

from graphcouple.spectral.eigen import Eigenpairs
from graphcouple.spectral.gram import GramMatrix, Placement, nystroem_places
from graphcouple.spectral.laplacian import (
    GraphLaplacian,
    Parts,
    ReconstructionLaplacian,
    eigengaps,
    graph_laplacian,
    laplacian_eigenvalues,
    normalized_similarity,
)
from graphcouple.spectral.low_rank import nystroem, pivoted_cholesky
from graphcouple.spectral.parts import Eigenmaps, embed_parts, places_of
from graphcouple.spectral.svd import LeadingSVD, far_rows_drawn_in, leading_svd, principal_components

__all__ = [
    "Eigenmaps", "Eigenpairs", "GramMatrix", "GraphLaplacian", "LeadingSVD", "Parts", "Placement",
    "ReconstructionLaplacian", "eigengaps", "embed_parts", "far_rows_drawn_in", "graph_laplacian",
    "laplacian_eigenvalues", "leading_svd", "normalized_similarity", "nystroem", "nystroem_places",
    "pivoted_cholesky", "places_of", "principal_components",
]  # fmt: skip
