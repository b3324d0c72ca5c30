"""The shape of another embedding, such as principal components, as a term.

Two sets of places have the same shape if a shift, a rotation or reflection and a change of size take one to the other.
For centred Z and a reference Y, the difference that remains after the best of these is the Procrustes statistic

    F(Z) = 1 − ‖ZᵀY‖_*² / (‖Z‖² ‖Y‖²),

with the nuclear norm ‖·‖_*, the sum of singular values; 0 ≤ F ≤ 1. With ZᵀY = U Σ Vᵀ, the norm's gradient is Y V Uᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import norm

from graphcouple._support.validation import centred, check_embedding, seeded_clone
from graphcouple.couplings.base import Objective
from graphcouple.couplings.global_term import UNIT_LENGTH, GlobalTerm, warn_if_few_points
from graphcouple.couplings.recipes import Problem
from graphcouple.graphs import FloatArray
from graphcouple.spectral import principal_components


class ProcrustesStatistic(Objective):
    """F(Z), the difference between the shapes of an embedding and of a reference; see the module's text.

    Parameters
    ----------
    Y : array of shape (n_points, any)
        The reference. If all its rows are equal, it has no shape, and F is 0.
    length : float, default=0.0
        ℓ: ‖Z‖² is replaced by ‖Z‖² + n ℓ², so that F first enlarges an embedding smaller than ℓ, and then shapes it.

    Raises
    ------
    TypeError, ValueError
        When `Y` is not a finite 2-D array.

    References
    ----------
    Gower and Dijksterhuis (2004), Procrustes problems, section 4.6; it is the disparity of `scipy.spatial.procrustes`.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> Y = np.random.default_rng(0).normal(size=(30, 2))
    >>> similar = 5.0 * Y @ np.array([[0.0, -1.0], [1.0, 0.0]]) + 3.0
    >>> round(gc.couplings.ProcrustesStatistic(Y).value(similar), 12)
    0.0
    """

    lower_bound = 0.0

    def __init__(self, Y: Any, length: float = 0.0) -> None:
        self._sq_length = length * length
        self._Y, _ = _unit_shape(check_embedding(Y, "Y"))
        self.n_points = self._Y.shape[0]

    @property
    def shares(self) -> FloatArray:
        """Each point's share of the reference's squared distances from the mean, of shape (n_points,)."""
        return np.square(self._Y).sum(axis=1)

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        points = check_embedding(Z, n_points=self.n_points)
        if not self._Y.any():
            return 0.0, np.zeros_like(points)
        z, size = _unit_shape(points)
        left, values, right = np.linalg.svd(z.T @ self._Y, full_matrices=False)
        if not size > 0:
            return 1.0, np.zeros_like(points)
        share = 1.0 / (1.0 + len(z) * self._sq_length / size**2)
        alike = float(values.sum())
        gradient = (2.0 * alike * share / size) * (share * alike * z - self._Y @ (right.T @ left.T))
        return max(0.0, 1.0 - share * alike * alike), gradient.astype(points.dtype, copy=False)


def _unit_shape(Z: FloatArray) -> tuple[FloatArray, float]:
    """Return centred places scaled to norm 1, or zeros if all are in one place, and their norm before scaling."""
    z = centred(Z)
    size = float(norm(z.ravel(), check_finite=False))
    return z / (size or 1.0), size


@dataclass(frozen=True, eq=False)
class ReferenceShape(GlobalTerm):
    """The term weight · n · [F(Z) + ρ T(Z)], which draws an embedding towards the shape of another.

    F is the Procrustes statistic, between 0 and 1: the difference after the best shift, rotation and change of size.
    See `ProcrustesStatistic`, and `GlobalTerm` for more than 10,000 points.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of global against local structure; 0 is the plain method.
    reference : "pca", estimator or array of shape (n_samples, any), default="pca"
        "pca" is the principal components, in the embedding's dimension, whatever the metric. An estimator, such as
        `Isomap`, is cloned and fitted to the points. An array is a reference for the rows in their order.
    resistance : float, default=0.0
        ρ, how much the input's edges resist being torn; keyword-only. See `GlobalTerm`.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if a reference has another number of rows, needs points and there
        are none, or points have weights.

    References
    ----------
    A reference for t-SNE was proposed by Kury, Kobak and Damrich (2025), DREAMS: preserving both local and global
    structure in dimensionality reduction. Their term keeps the axes of the reference; this one may rotate.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_hierarchical_mixture(500, random_state=0)
    >>> plain = gc.TSNE(random_state=0).fit_transform(X)
    >>> placed = gc.TSNE(terms=[gc.ReferenceShape()], random_state=0).fit_transform(X)
    >>> before, after = (gc.metrics.k_ary_preservation(X, Z, K=250) for Z in (plain, placed))
    >>> bool(after > before + 0.1)
    True
    """

    weight: float = 1.0
    reference: Any = "pca"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or (other.weight, other.resistance) != (self.weight, self.resistance):
            return False
        if self.names_rows and other.names_rows:
            return np.array_equal(self.reference, other.reference)
        return self.names_rows == other.names_rows and bool(self.reference == other.reference)

    def __hash__(self) -> int:
        return hash((type(self), self.weight))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.reference, type):
            raise TypeError(f"reference must be an instance of an estimator, got the class {self.reference.__name__}.")
        if isinstance(self.reference, str):
            if self.reference != "pca":
                raise ValueError(f"reference must be 'pca', an estimator or an array, got {self.reference!r}.")
        elif not hasattr(self.reference, "fit_transform"):
            if self.reference is None or sp.issparse(self.reference):
                raise TypeError(
                    f"reference must be 'pca', an estimator or a dense array, got {type(self.reference).__name__}."
                )
            check_embedding(self.reference, "reference")

    @property
    def names_rows(self) -> bool:  # type: ignore[override]
        """Whether the reference is an array, with a row for each row of X."""
        return not isinstance(self.reference, str) and not hasattr(self.reference, "fit_transform")

    def objective(self, problem: Problem) -> ProcrustesStatistic:
        n = problem.posterior.n_nodes
        if self.names_rows:
            Y = check_embedding(self.reference, "reference")
            if len(Y) != n:
                raise ValueError(
                    f"reference has {len(Y)} rows, but there are {n} points: an array has a row for each, and none for "
                    "points added by update. Use 'pca' or an estimator there."
                )
        elif isinstance(self.reference, str):
            Y = principal_components(problem.coordinates, problem.n_components, problem.rng)
        else:
            embedding = seeded_clone(self.reference, problem.rng).fit_transform(problem.coordinates)
            Y = check_embedding(embedding, f"reference={type(self.reference).__name__}()", n)
        statistic = ProcrustesStatistic(Y, UNIT_LENGTH)
        warn_if_few_points(statistic.shares, "ReferenceShape")
        return statistic

    def __str__(self) -> str:
        kind = self.reference if isinstance(self.reference, str) else type(self.reference).__name__
        return f"{self.weight:g} × shape of {'a reference' if self.names_rows else kind}"
