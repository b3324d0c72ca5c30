"""PCA as attraction and repulsion: the embedding's Gram matrix against the input's similarities.

    L(Y) = ‖C (S − Y Yᵀ) C‖²_F,   ∇L = −4 C (S − Y Yᵀ) C Y

C subtracts means, or is the identity. For S = X Xᵀ the minimum is PCA's embedding, up to an orthogonal map, and for a
kernel matrix kernel PCA's; without C it is uncentred multidimensional scaling. S may be any symmetric matrix. Each step
takes a product S Y, which is X̃(X̃ᵀY) for points: no n × n matrix.

References
----------
Draganov and Dohn (2023), Unexplainable explanations, section 4: lemmas 1 to 3 and theorem 1. Draganov's thesis,
theorem 1 and corollary 1, without C.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from graphcouple._support.validation import check_embedding
from graphcouple.couplings.base import Objective
from graphcouple.couplings.kinds import InParts
from graphcouple.graphs import FloatArray
from graphcouple.spectral import GramMatrix


class Polynomial(Objective):
    """An objective that is a polynomial along every line, with an exact minimum there; see `ExactSteps`."""

    @abstractmethod
    def along(self, Z: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the coefficients of the objective at Z + t·direction in t, the constant first."""


class GramMatching(InParts, Polynomial):
    """‖C (S − Y Yᵀ) C‖²_F, as a function of the embedding Y.

    Parameters
    ----------
    similarities : GramMatrix, or array of shape (n, p)
        S, or points X for S = X Xᵀ.
    centred : bool, default=True
        Whether C subtracts means; ignored for a `GramMatrix`, which states it itself.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> objective = gc.GramMatching(X)
    >>> Y = np.random.default_rng(1).normal(size=(30, 2))
    >>> Z = gc.solve(objective, Y, gc.ExactSteps(), settled_within=0.0, max_iter=500).Z
    >>> singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:2]
    >>> bool(np.allclose(np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False), singular))
    True
    """

    lower_bound = 0.0
    """Attained if S has no more positive eigenvalues than the embedding has dimensions, and no negative ones."""

    def __init__(self, similarities: Any, centred: bool = True) -> None:
        known = isinstance(similarities, GramMatrix)
        self.similarities = similarities if known else GramMatrix(similarities, centred=centred)
        self.n_points = self.similarities.n_points

    def _centred(self, Z: FloatArray) -> FloatArray:
        return self.similarities.less_mean(check_embedding(Z, n_points=self.n_points).astype(np.float64))

    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        """Return L and its gradient −4 (C S C Y − Y YᵀY), for Y minus its mean."""
        Y = self._centred(Z)
        product, square = self.similarities.times(Y), Y.T @ Y
        value = self.similarities.sq_norm - 2.0 * float((Y * product).sum()) + float(np.square(square).sum())
        if not with_gradient:
            return value, None
        return value, (-4.0 * (product - Y @ square)).astype(np.asarray(Z).dtype, copy=False)

    def along(self, Z: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the coefficients of L(Z + t·direction) − L(Z), a quartic in t, the constant 0 first."""
        Y, D = self._centred(Z), self.similarities.less_mean(direction)
        product = self.similarities.times(D)
        A, E = Y.T @ Y, D.T @ D
        B = Y.T @ D
        B = B + B.T
        linear = 2.0 * float((A * B).sum()) - 4.0 * float((Y * product).sum())
        square = float(np.square(B).sum()) + 2.0 * float((A * E).sum()) - 2.0 * float((D * product).sum())
        return np.array([0.0, linear, square, 2.0 * float((B * E).sum()), float(np.square(E).sum())])

    def forces(self, Z: FloatArray) -> FloatArray:
        """Return the gradient as attractions and repulsions, Σ_j l_ij (z_i − z_j), in O(n²): lemma 2, for comparison.

        The coefficients are l_ij = 4 [C (S − Y Yᵀ) C]_ij, whose rows sum to 0 only if C subtracts means.
        """
        if not self.similarities.centred:
            raise ValueError("centred=False pulls points to the origin too, so its gradient is not a sum over pairs.")
        Y = self._centred(Z)
        pull = 4.0 * (self.similarities.times(np.eye(self.n_points) - 1.0 / self.n_points) - Y @ Y.T)
        return pull.sum(axis=1)[:, None] * Y - pull @ Y
