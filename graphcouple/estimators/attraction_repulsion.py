"""PCA from a random start, by attraction and repulsion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from graphcouple._numba.threads import one_blas_thread
from graphcouple._support.validation import warn
from graphcouple.couplings import GramMatching
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_1
from graphcouple.estimators.gram_methods import ByKernel
from graphcouple.graphs import FloatArray
from graphcouple.initializations import given_start
from graphcouple.neighbors.points import dense_if_far, near_origin
from graphcouple.optimize import Callback, ExactSteps
from graphcouple.spectral import GramMatrix, nystroem, pivoted_cholesky

# Up to 5,000 points, the true gradient is computed beside the approximate one to see the angle between them.
_MONITORED = 5000


@estimator
class AttractionRepulsionPCA(ByKernel):
    """PCA, or kernel PCA, by descent on ‖C (S − Y Yᵀ) C‖²_F from a random start: points attract and repel each other.

    S are the similarities, and the result is PCA's up to an orthogonal map. The loss never rises, because each step
    goes to the minimum along its line. It is slower than a decomposition; its use is to see PCA among the methods of
    attraction and repulsion.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    loss_ : float
        The objective, of the approximation if there is one.
    loss_history_ : ndarray of shape (n_checks,)
    loss_iterations_ : ndarray of shape (n_checks,)
    cosines_ : ndarray of shape (n_checks,)
        With an approximation of at most 5,000 points: the cosine of the angle between its gradient and the true one, at
        the checks. While it is above 0, each step descends on the true loss too (lemma 3). Else empty.
    n_iter_ : int
    stop_reason_ : str

    References
    ----------
    Draganov and Dohn (2023), Unexplainable explanations, section 4 and figure 2. Chen, Epperly, Tropp and Webber
    (2022), Randomly pivoted Cholesky.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> moved = gc.AttractionRepulsionPCA(random_state=0).fit_transform(X)
    >>> wanted = gc.PrecisionCoupling().fit_transform(X)
    >>> bool(abs(moved @ moved.T - wanted @ wanted.T).max() < 1e-6)
    True
    """

    approximation: str | None = parameter(
        default=None,
        kind='{"nystroem", "cholesky"}, optional',
        doc="A low-rank approximation of S, which must then have no negative eigenvalues: from random points "
        "(Nyström), or from points drawn where it is still worst (randomly pivoted Cholesky).",
        checks=[StrOptions({"nystroem", "cholesky"}), None],
    )
    rank: int = parameter(default=100, doc="Rank of the approximation.", checks=[AT_LEAST_1])
    conjugate: bool = parameter(
        default=True,
        doc="Take conjugate directions; False takes gradients, as in the paper, and needs many more iterations.",
        checks=["boolean"],
    )
    init: Any = parameter(
        default="random",
        kind='"random" or array of shape (n_samples, n_components)',
        doc="The start.",
        checks=[StrOptions({"random"}), "array-like"],
    )
    max_iter: int = parameter(default=2000, kind="int", doc="Maximum number of iterations.", checks=[AT_LEAST_1])
    tol: float = parameter(
        default=1e-10,
        like="residual",
        doc="The run ends when the gradient's norm is at most this share of its first one.",
    )
    check_every: int = parameter(default=10, doc="Iterations between entries of the history.", checks=[AT_LEAST_1])
    random_state: Any = parameter(default=None, doc="Seed of the start and of the approximation.")
    verbose: int = parameter(default=0)
    callback: Callback | None = parameter(
        default=None,
        doc="Called as ``callback(iteration, loss, Z)`` every `check_every` iterations and at the end; a true return "
        "value stops the run.",
    )

    def _fit(self, X: Any) -> None:
        n = X.shape[0]
        if self._linear and (largest := float(abs(X).max())) and not 1e-12 < largest < 1e12:
            raise ValueError(
                f"the largest entry of X, {largest:.3g}, is too large or small: its fourth power is lost; rescale X."
            )
        if self.n_components >= n:
            raise ValueError(f"n_components={self.n_components} must be below n_samples = {n}.")
        rng = check_random_state(self.random_state)
        exact, used, chosen = self._matrices(X, rng)
        objective = GramMatching(used)
        if isinstance(self.init, str):
            start = rng.normal(size=(n, self.n_components))
            # The exact size: the default of `solve` knows no units below 1e-9.
            _, _, square, _, fourth = objective.along(np.zeros_like(start), start)
            start *= np.sqrt(abs(square) / (2.0 * fourth))
        else:
            start = given_start(self.init, n, self.n_components)
        true, cosines = None if exact is None else GramMatching(exact), []
        first = float(np.linalg.norm(objective.gradient(start))) / n

        def compare(Z: FloatArray) -> None:
            if true is not None:
                left, right = true.gradient(Z), objective.gradient(Z)
                norm = float(np.linalg.norm(left) * np.linalg.norm(right))
                cosines.append(float(np.vdot(left, right)) / norm if norm > 0 else 1.0)

        tests: dict[str, Any] = {"tol": self.tol * first, "patience": self.max_iter, "settled_within": 0.0}
        tests["check_every"] = self.check_every
        with one_blas_thread(n * max(X.shape)):
            solution = self._descend(objective, start, ExactSteps(self.conjugate), watch=compare, **tests)
        self.cosines_ = np.array(cosines)
        if not (solution.converged or solution.stopped):
            warn(
                f"the gradient has not fallen to {self.tol:g} of its first norm in max_iter={self.max_iter} "
                "iterations. Raise max_iter, or tol.",
                ConvergenceWarning,
            )
        self.embedding_ = (solution.Z - solution.Z.mean(axis=0)).astype(X.dtype)
        self.loss_ = solution.loss
        self._keep_map(X, chosen)

    def _matrices(
        self, X: Any, rng: np.random.RandomState
    ) -> tuple[GramMatrix | None, GramMatrix, NDArray[np.intp] | None]:
        """Return the similarities to monitor, if any, those to use, and the columns of these, None if all."""
        n, read = X.shape[0], []
        if self.approximation is None:
            whole = GramMatrix(X) if self._linear else GramMatrix(matrix=self._similarities(X))
            return None, whole, None
        if self.takes_distances:
            X = self._similarities(X)
            GramMatrix(matrix=X)  # raises unless X is symmetric
        elif self._linear:
            # The loss ignores shifts of the points, which would hide their differences from the approximation.
            X = dense_if_far(X)
            X = X if issparse(X) else near_origin(X)

        def columns(at: Any) -> FloatArray:
            read.append(at)
            return np.asarray(X[:, at] if self.takes_distances else self._similarities(X, X[at]), dtype=np.float64)

        if self.approximation == "nystroem":
            factor = nystroem(columns, n, self.rank, rng)
        else:
            factor = pivoted_cholesky(columns, self._diagonal(X), self.rank, rng)
        exact = GramMatrix(matrix=self._similarities(X)) if n <= _MONITORED else None
        return exact, GramMatrix(factor), np.unique(np.concatenate(read))

    def _diagonal(self, X: Any) -> FloatArray:
        if self.takes_distances:
            return np.diag(np.asarray(X))
        return np.array([self._similarities(X[i : i + 1])[0, 0] for i in range(X.shape[0])])

    def _keep_map(self, X: Any, chosen: NDArray[np.intp] | None) -> None:
        """Keep the least-squares map from similarities to places, for `transform`.

        Places lie in the span of the similarities. If these are approximated, they lie in the span of the chosen
        columns, or of the features of a linear kernel.
        """
        Y = self.embedding_.astype(np.float64)
        back = np.linalg.pinv(Y.T @ Y)
        points = None if self.takes_distances else X
        if chosen is not None:
            known = {} if self._linear else {"chosen": chosen, "measure": self._measure}
            known |= {} if self._linear or points is None else {"points": points[chosen]}
            features: Any = X if self._linear else self._of_chosen(known, X)
            features = np.asarray(features.toarray() if issparse(features) else features, dtype=np.float64)
            mean = features.mean(axis=0)
            # Columns that nearly depend on each other would magnify the rounding of places.
            onto = np.linalg.lstsq(features - mean, Y, rcond=1e-8 if X.dtype == np.float64 else 1e-6)[0]
            self._fixed = {**known, "mean": mean, "onto": onto}
        elif self._linear:
            mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
            self._fixed = {"mean": mean, "onto": np.asarray(X.T @ (Y @ back))}
        else:
            rows = self._similarities(X).mean(axis=0)
            self._fixed = {"points": points, "rows": rows, "onto": Y @ back, "measure": self._measure}
