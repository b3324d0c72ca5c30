"""Diffusion maps: distances on the map are distances of random walks on the input's graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from graphcouple._support.validation import check_integer, warn
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_0, SHARE
from graphcouple.estimators.laplacian_methods import LawEigenmaps
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws.priors import RandomGraph
from graphcouple.spectral import GraphLaplacian

# Single precision has seven digits.
_FORGOTTEN = 1e-6

# Pseudotime sums over all eigenvectors of up to this many points, else over this many; the others are negligible if
# they weigh less than this share of the first. No comparison is recorded.
_ALL, _LEADING, _LITTLE = 1000, 50, 0.1


@estimator
class DiffusionMaps(LawEigenmaps):
    """Diffusion maps of the mean graph of a law: Laplacian eigenmaps, each coordinate times (1 − λ)^t.

    Let A be the mean graph, both directions added, each weight divided by the degrees of both its ends to the power
    `alpha`. A random walk steps from i to j with probability P_ij = a_ij / d_i, d_i = Σ_j a_ij. With all n − 1
    components, the squared distance of two points on the map is

        Σ_k ((Pᵗ)_ik − (Pᵗ)_jk)² Σ_l d_l / d_k,

    so points are near each other if walks of t steps from them end in the same places. The components with the largest
    1 − λ hold nearly all of this distance, unless walks alternate between two sides of the graph. Edges from a point to
    itself do not count.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    eigenvalues_ : ndarray of shape (n_components,)
        λ, of D⁻¹ L; the walk's eigenvalues are 1 − λ. For the largest component.
    component_labels_ : ndarray of shape (n_samples,)
        The connected component of each point.
    posterior_ : RandomGraph
        The law of the input's graph, unless the input is a graph of your own.

    Warns
    -----
    UserWarning
        When the graph is disconnected: no walk leaves a component, so each is embedded by itself, around the place of
        its mean. When `t` is so large that all walks end in the same places.
    ConvergenceWarning
        When eigenvectors have not converged.

    References
    ----------
    Coifman and Lafon (2006), Diffusion maps. Graph-coupling paper, section 3.2, for the mean graph.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_branches(300, random_state=0)
    >>> near, far = (gc.DiffusionMaps(t=t).fit(X).embedding_ for t in (1, 100))
    >>> bool(far.std(axis=0)[1] / far.std(axis=0)[0] < near.std(axis=0)[1] / near.std(axis=0)[0])
    True
    """

    t: float = parameter(
        default=1.0,
        doc="Number of steps of the walk; more steps show a larger scale. 0 is eigenmaps. "
        "Between whole numbers, negative 1 − λ count as 0.",
        checks=[AT_LEAST_0],
    )
    alpha: float = parameter(
        default=1.0,
        doc="How much of the density of the points is removed, in [0, 1]: at 1 the map shows their shape alone, at 0 "
        "the walk is on the graph as it is.",
        checks=[SHARE],
    )
    tol: float = parameter(default=1e-10, like="residual")

    normalized = True
    _remembered = ("_fixed", "_shares", "_given", "_own_graph")

    def _recall(self, remembered: dict[str, Any]) -> None:
        # Older files lack the graph.
        super()._recall({"own_graph": None, **remembered})

    def _reweighed(self, laplacian: GraphLaplacian) -> GraphLaplacian:
        degrees = np.where(laplacian.degrees > 0, laplacian.degrees, 1.0)
        self._shares: FloatArray = (degrees / degrees.max()) ** -float(self.alpha)
        return self._shared(laplacian)

    def _shared(self, laplacian: GraphLaplacian) -> GraphLaplacian:
        """Return the Laplacian with each weight multiplied by the shares of both ends."""
        share = sp.diags_array(self._shares)
        return GraphLaplacian(share @ laplacian.affinity @ share) if np.ptp(self._shares) else laplacian

    def _reweighed_edges(self, weights: sp.csr_array) -> sp.csr_array:
        return sp.csr_array(weights @ sp.diags_array(self._shares))

    def _keep(self, laplacian: GraphLaplacian, X: Any, dtype: Any) -> None:
        super()._keep(laplacian, X, dtype)
        labels: IntArray = self.component_labels_
        walk = 1.0 - self._fixed["eigenvalues"]
        # Negative eigenvalues have only whole powers.
        powers = (walk if float(self.t).is_integer() else np.maximum(walk, 0.0)) ** float(self.t)
        largest = np.abs(powers[np.bincount(labels).argmax()])[: self.eigenvalues_.size]
        if largest.size and largest.max() < _FORGOTTEN:
            warn(
                f"after t={self.t:g} steps walks from all points end in the same places, up to {largest.max():.1g}. "
                "Lower t; if walks alternate between two sides of the graph, take a whole number and more components."
            )
        origins = self._fixed["origins"][labels]
        self.embedding_ = (origins + powers[labels] * (self.embedding_ - origins)).astype(dtype)

    def pseudotime(self, root: int, n_eigenvectors: int | None = None) -> FloatArray:
        """Return how far each point is from a root along the data: the distance of walks of all lengths from both.

        With S = Σ_t≥1 (Pᵗ − P^∞), the squared distance of i and j is Σ_k (S_ik − S_jk)² Σ_l d_l / d_k, the square of
        (1 − λ)/λ times the difference of places, summed over eigenvectors. The farthest point of the root's component
        is at 1, points of other components at infinity.

        Parameters
        ----------
        root : int
            The row of a point where a progression begins.
        n_eigenvectors : int, optional
            Eigenvectors that are summed over, of the smallest λ. By default all of a component of up to 1,000 points,
            and 50 beyond.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        NotFittedError, TypeError, ValueError
            When the estimator is not fitted, `root` is not a row, or the root has no edges.

        Warns
        -----
        UserWarning
            When the eigenvectors left out weigh more than a tenth of the first.

        References
        ----------
        Haghverdi, Büttner, Wolf, Buettner and Theis (2016), Diffusion pseudotime robustly reconstructs lineage
        branching. scanpy's ``tl.dpt`` leaves out the degrees d_k.

        Examples
        --------
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.make_branches(300, random_state=0)
        >>> time = gc.DiffusionMaps(perplexity=10).fit(X).pseudotime(root=0)
        >>> float(time[0]), float(time.max())
        (0.0, 1.0)
        """
        check_is_fitted(self)
        labels = self.component_labels_
        if check_integer("root", root, 0) >= labels.size:
            raise ValueError(f"root={root} must be a row of the {labels.size} points.")
        members = np.flatnonzero(labels == labels[root])
        if members.size < 2:
            raise ValueError(f"root={root} has no edges; take another point, or more neighbors.")
        few = members.size - 1 if members.size <= _ALL else _LEADING
        k = few if n_eigenvectors is None else check_integer("n_eigenvectors", n_eigenvectors, 1)
        if self._own_graph is not None:
            laplacian = GraphLaplacian(self._own_graph)
        else:
            own = self.input if isinstance(self.input, RandomGraph) else None
            laplacian = self._laplacian(own if self._given is None else self.posterior_)
        part = self._shared(laplacian).among(members)
        eigenvalues, places = part.embedding(min(k, members.size - 1), self.tol)
        weights = (1.0 - eigenvalues) / eigenvalues
        if k < members.size - 1 and max(abs(weights[-1]), 0.5) > _LITTLE * weights[0]:
            warn(
                f"{k} eigenvectors give a rough pseudotime: the others weigh up to "
                f"{max(abs(weights[-1]), 0.5) / weights[0]:.0%} of the first. Raise n_eigenvectors."
            )
        time = np.full(labels.size, np.inf)
        time[members] = np.linalg.norm(weights * (places - places[members == root]), axis=1)
        return time / (time[members].max() or 1.0)
