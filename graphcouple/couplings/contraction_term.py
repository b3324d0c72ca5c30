"""The term that draws the clusters of an embedding together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphcouple._validation import check_integer, check_weight
from graphcouple.couplings.base import WeightedSum
from graphcouple.couplings.contraction import LaplacianEigenvalues
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Kernel, Student
from graphcouple.spectral import eigengaps, laplacian_eigenvalues

MOST_CLUSTERS = 30
"""The most clusters that "auto" considers."""


@dataclass(frozen=True)
class SpectralContraction(Term):
    """The term weight · n · R(Z), R the sum of the smallest eigenvalues of the embedding's normalised Laplacian.

    R is 0 if the embedding consists of `n_clusters` parts with no similarity to each other, so the term draws clusters
    together and apart from each other. It is multiplied by the number of points n, as a cross-entropy is a sum over
    them: the same weight has the same effect whatever n. See `LaplacianEigenvalues`.

    Parameters
    ----------
    kernel : Kernel, default=Student()
        The similarity of two places; it may differ from the latent law's.
    n_clusters : int or "auto", default="auto"
        Number of eigenvalues. "auto" is the largest of those after which the eigenvalues of the *input* graph's
        Laplacian have a large gap, at most 30: rather too many than too few.
    weight : float, default=0.3
        λ of the paper; at least 0.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are fewer points than clusters.

    References
    ----------
    Sun, Han and Fan (2022), Laplacian-based cluster-contractive t-SNE, equation 10 and section 3.7.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> umap = gc.UMAP(terms=[gc.SpectralContraction(n_clusters=3)], random_state=0).fit(X)
    >>> umap.embedding_.shape
    (150, 2)
    """

    kernel: Kernel = field(default_factory=Student)
    n_clusters: int | str = "auto"
    weight: float = 0.3

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a graphcouple kernel such as Student(), got {self.kernel!r}.")
        if isinstance(self.n_clusters, str):
            if self.n_clusters != "auto":
                raise ValueError(f"n_clusters must be 'auto' or an integer of at least 1, got {self.n_clusters!r}.")
        else:
            check_integer("n_clusters", self.n_clusters, 1)
        check_weight(self.weight)

    def bind(self, problem: Problem) -> WeightedSum:
        """Return n · R for the problem's number of points; see `Term`."""
        posterior = problem.posterior
        n = posterior.n_nodes
        if posterior.node_weights is not None:
            raise ValueError(
                "SpectralContraction takes no sample weights: the Laplacian counts each row once. Repeat rows instead."
            )
        k = self.n_clusters
        if isinstance(k, str):
            k = int(eigengaps(input_eigenvalues(posterior))[-1])
        if k >= n:
            raise ValueError(f"n_clusters={k} must be below the number of points, {n}.")
        return WeightedSum(((n, LaplacianEigenvalues(n, self.kernel, k, problem.summation, problem.n_jobs)),))

    def __str__(self) -> str:
        clusters = "" if self.n_clusters == "auto" else f"{self.n_clusters} "
        return f"{self.weight:g} × contraction of {clusters}clusters, {self.kernel!r}"


def input_eigenvalues(posterior: Any) -> FloatArray:
    """Return the 31 smallest eigenvalues of the normalised Laplacian of the posterior's symmetrised mean graph."""
    means = posterior.support.to_csr(posterior.edge_means)
    return laplacian_eigenvalues(means + means.T, min(MOST_CLUSTERS + 1, posterior.n_nodes))
