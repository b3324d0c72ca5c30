"""The smallest eigenvalues of the embedding's Laplacian, as an objective that draws clusters together.

With A_ij = k(‖z_i − z_j‖²) off the diagonal, d its row sums and L = I − D^{-½} A D^{-½}, the sum of the k smallest
eigenvalues is

    R(Z) = min over V with VᵀV = I of Tr(Vᵀ L(Z) V),

which is 0 where the embedding falls into k parts, of two points at least, that have no similarity to each other. Any V
gives an upper bound that touches R where V holds the eigenvectors. With s_i = v_i/√d_i, r_i = Σ_j (s_i·s_j) A_ij and
ρ = r/d, it is

    Tr(Vᵀ L V) = ‖V‖² − Σ_i r_i,   gradient  Σ_j (ρ_i + ρ_j − 2 s_i·s_j) k'(d²_ij) 2 (z_i − z_j),

three sums over all pairs, one of them with charges of low rank, so any summation computes them without an n × n array.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, lobpcg
from scipy.spatial.distance import cdist

from graphcouple._support.validation import check_embedding, check_integer, check_positive, check_weight, is_word
from graphcouple.couplings.base import Objective, WeightedSum, balanced
from graphcouple.couplings.kinds import Delayed, InParts
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Kernel, Student
from graphcouple.kernels.base import require_kernel
from graphcouple.laws.priors.log_domain import UNDERFLOW
from graphcouple.spectral import eigengaps, laplacian_eigenvalues
from graphcouple.spectral.eigen import lanczos
from graphcouple.summation import KernelValue, Summation, as_summation

# Up to 400 points, or for more than a fifth of the eigenvalues, the matrix is decomposed in full.
_DENSE, _DENSE_SHARE = 400, 0.2

# Absolute accuracy of eigenvalues where the matrix is not decomposed whole; for forces, a thousandth of their size
# would suffice.
_TOLERANCE, _TOLERANCE_OF_FAST = 1e-8, 1e-4

# Up to 3,000 points, products use a stored matrix: 72 MB.
_STORED_UP_TO = 3000

# From the last step's eigenvectors, three iterations come within 1e-4 of R; from noise, twenty are needed.
_WARM_ITERATIONS, _COLD_ITERATIONS = 3, 20

# Restarts of Lanczos iteration. More are needed only where eigenvalues nearly coincide, and there any basis suffices.
_RESTARTS = 15

# Added to eigenvalues before a power below 1 is taken, whose slope at 0 is infinite.
_SMOOTH = 1e-3


class KernelLaplacian:
    """The normalised Laplacian of a kernel matrix, as an operator.

    Parameters
    ----------
    Z : ndarray of shape (n, q)
    kernel : Kernel
    summation : Summation
        How products are computed: in O(n) time for a plane embedding, without an n × n array.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> laplacian = gc.couplings.KernelLaplacian(np.array([[0.0], [1.0]]), gc.Student(), gc.summation.Exact())
    >>> laplacian.matrix().round(9).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(self, Z: FloatArray, kernel: Kernel, summation: Summation) -> None:
        self.Z, self.radial = Z, KernelValue(kernel)
        self.summation = summation.for_points(Z, self.radial)
        # A point whose degree is below the error of the sum is a component of its own.
        self.resolution = self.summation.resolution
        degrees, self.degree_forces = self.summation.potential(Z, self.radial)
        self.connected = degrees > max(self.resolution, UNDERFLOW)
        self.degrees = np.where(self.connected, degrees, 1.0)
        self.shrink = self.connected / np.sqrt(self.degrees)

    def similarity(self, V: FloatArray) -> FloatArray:
        """Return D^{-½} A D^{-½} V, which is V − L V, for V of shape (n,) or (n, k)."""
        charges = np.ascontiguousarray((self.shrink[:, None] * V.reshape(len(self.Z), -1)).T)
        sums = self.summation.potentials(self.Z, self.radial, charges, with_gradient=False)[0]
        return np.asarray(self.shrink[:, None] * sums.T).reshape(V.shape)

    def matrix(self) -> FloatArray:
        """Return D^{-½} A D^{-½}, of shape (n, n)."""
        points = np.asarray(self.Z, dtype=np.float64)
        with np.errstate(divide="ignore", over="ignore"):
            A = self.radial.potential(cdist(points, points, "sqeuclidean"))
        np.fill_diagonal(A, 0.0)
        return np.asarray(self.shrink[:, None] * A * self.shrink)

    def eigenvectors(self, k: int, near: FloatArray | None = None) -> FloatArray:
        """Return orthonormal eigenvectors of the k smallest eigenvalues, of shape (n, k).

        `near` is a start of this shape, such as eigenvectors of a similar embedding. The result is then only as
        accurate as descent needs.
        """
        n = len(self.Z)
        if n <= _DENSE or k > _DENSE_SHARE * n:
            # LAPACK's solver for some eigenvectors alone fails where many eigenvalues coincide.
            return np.linalg.eigh(self.matrix())[1][:, ::-1][:, :k]
        if near is None:
            return self._lanczos(k)
        return self._refine(near, _WARM_ITERATIONS, max(self.resolution, _TOLERANCE_OF_FAST))

    @cached_property
    def _products(self) -> Any:
        """D^{-½} A D^{-½} for products: the matrix if it is small, else an operator by sums."""
        n = len(self.Z)
        if n <= _STORED_UP_TO:
            return self.matrix()
        return LinearOperator((n, n), matvec=self.similarity, matmat=self.similarity, dtype=np.float64)

    def _lanczos(self, k: int) -> FloatArray:
        n = len(self.Z)
        # Eigenvectors cannot be more accurate than the sums.
        tolerance = max(_TOLERANCE, self.resolution)
        start = np.sqrt(self.degrees) + np.random.default_rng(0).normal(size=n)
        try:
            basis = min(n - 1, max(3 * k, 50))
            vectors = lanczos(self._products, k, start, tol=tolerance, maxiter=_RESTARTS, ncv=basis)[1]
            return np.asarray(vectors[:, ::-1])
        except ArpackNoConvergence as partial:
            block = np.random.default_rng(0).normal(size=(n, k))
            block[:, : partial.eigenvectors.shape[1]] = partial.eigenvectors
            return self._refine(block, _COLD_ITERATIONS, tolerance)

    def _refine(self, near: FloatArray, n_iter: int, tolerance: float) -> FloatArray:
        with warnings.catch_warnings():
            # Approximate eigenvectors still bound the eigenvalues, and so R, from above.
            warnings.filterwarnings("ignore", message="\\s*(Exited|Failed)", category=UserWarning)
            vectors = lobpcg(self._products, near, largest=True, maxiter=n_iter, tol=tolerance * len(near) ** 0.5)[1]
        return np.linalg.qr(vectors)[0]


class LaplacianEigenvalues(Delayed):
    """R(Z), the sum of the k smallest eigenvalues of the normalised Laplacian of the embedding's kernel matrix.

    R has a gradient where the k-th and the next eigenvalue differ. `with_basis` and `at` return an upper bound with
    fixed eigenvectors, on which descent costs much less.

    Parameters
    ----------
    n_points : int
    kernel : Kernel
    n_eigenvalues : int
        k, below `n_points`.
    summation : str or Summation, default="auto"
        How sums over all pairs are computed.
    n_jobs : int or None, default=None
    power : float, default=1.0
        p, above 0 and at most 1: R is then the sum of (λ + 10⁻³)^p − 10^(−3p), which counts small eigenvalues more.

    Raises
    ------
    TypeError, ValueError
        When `kernel` is not a kernel, or k or p is out of range.

    References
    ----------
    Sun, Han and Fan (2022), Laplacian-based cluster-contractive t-SNE, equations 7 to 26.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> Z = np.array([[0.0, 0.0], [1.0, 0.0], [100.0, 0.0], [100.0, 1.0]])
    >>> contraction = gc.couplings.LaplacianEigenvalues(4, gc.Student(), 2)
    >>> round(contraction.value(Z), 4)
    0.0008
    """

    lower_bound = 0.0

    def __init__(
        self,
        n_points: int,
        kernel: Kernel,
        n_eigenvalues: int,
        summation: str | Summation = "auto",
        n_jobs: int | None = None,
        power: float = 1.0,
    ) -> None:
        require_kernel(kernel)
        self.n_points = n_points
        self.n_eigenvalues = check_integer("n_eigenvalues", n_eigenvalues, 1)
        if n_eigenvalues >= n_points:
            raise ValueError(f"n_eigenvalues={n_eigenvalues} must be below the number of points, {n_points}.")
        self.kernel, self.summation, self.power = kernel, as_summation(summation, n_jobs), check_power(power)

    def _laplacian(self, Z: Any) -> KernelLaplacian:
        return KernelLaplacian(check_embedding(Z, n_points=self.n_points), self.kernel, self.summation)

    def eigenvalues(self, Z: FloatArray, n_more: int = 0) -> FloatArray:
        """Return the k + `n_more` smallest eigenvalues at `Z`, in ascending order."""
        laplacian = self._laplacian(Z)
        V = laplacian.eigenvectors(min(self.n_eigenvalues + n_more, self.n_points))
        return 1.0 - np.sort(np.einsum("ik,ik->k", V, laplacian.similarity(V)))[::-1]

    def value(self, Z: FloatArray) -> float:
        eigenvalues = self.eigenvalues(Z)
        if self.power == 1.0:
            return float(eigenvalues.sum())
        return float(((eigenvalues + _SMOOTH) ** self.power - _SMOOTH**self.power).sum())

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return R and its gradient, which is the gradient of the bound that touches it at `Z`."""
        return self.at(0, Z).value_and_grad(Z)

    def basis(self, Z: FloatArray, previous: Any = None) -> FloatArray:
        """Return the eigenvectors V of the k smallest eigenvalues at `Z`, of shape (n_points, k).

        With a power p < 1, each is scaled by the root of the power's slope at its eigenvalue.
        """
        laplacian = self._laplacian(Z)
        if self.power == 1.0:
            return laplacian.eigenvectors(self.n_eigenvalues, previous)
        if previous is not None:
            previous = previous / np.linalg.norm(previous, axis=0)
        V = laplacian.eigenvectors(self.n_eigenvalues, previous)
        smooth = np.maximum(1.0 - np.einsum("ik,ik->k", V, laplacian.similarity(V)), 0.0) + _SMOOTH
        return V * np.sqrt(self.power * smooth ** (self.power - 1.0))

    def with_basis(self, basis: FloatArray | None) -> Objective:
        """Return Tr(Vᵀ L V), which is at least R, and equals R where V are the eigenvectors.

        With a power p < 1, whose tangents lie above it, columns are scaled by the roots of the slopes.
        """
        if basis is None:
            return self
        if np.ndim(basis) != 2 or len(basis) != self.n_points:
            raise ValueError(f"a basis has a row for each of {self.n_points} points, got shape {np.shape(basis)}.")
        return FixedBasis(self, basis)

    def at(self, iteration: int, Z: FloatArray) -> Objective:
        """Return the bound that touches R at `Z`."""
        return self.with_basis(self.basis(Z))


class FixedBasis(InParts, Delayed):
    """Tr(Vᵀ L(Z) V) as a function of the embedding, for fixed orthonormal V: an upper bound of R."""

    lower_bound = 0.0

    def __init__(self, objective: LaplacianEigenvalues, V: FloatArray) -> None:
        self.objective, self.V = objective, V
        self.n_points, self._sq_norm, self._offset = objective.n_points, float(np.square(V).sum()), 0.0
        if (p := objective.power) != 1.0:
            # The slopes w = p (λ + s)^(p − 1) tell the eigenvalues λ at which the tangents touch.
            slopes = np.square(V).sum(axis=0)
            smooth = (slopes / p) ** (1.0 / (p - 1.0))
            self._offset = float((smooth**p - _SMOOTH**p - slopes * (smooth - _SMOOTH)).sum())

    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        laplacian = self.objective._laplacian(Z)
        points, radial, low_rank = laplacian.Z, laplacian.radial, laplacian.summation.low_rank
        s = np.ascontiguousarray((laplacian.shrink[:, None] * self.V).T)
        # r, and its gradient with s held fixed on both sides of the sum.
        r, pull = low_rank(points, radial, s, s, with_gradient=with_gradient)
        value = self._sq_norm - float(r.sum()) + self._offset
        if not with_gradient:
            return value, None
        rho = r / laplacian.degrees
        rho_forces = laplacian.summation.potential(points, radial, rho, with_potential=False)[1]
        gradient = rho[:, None] * laplacian.degree_forces + rho_forces - 2.0 * pull
        return value, balanced(gradient).astype(points.dtype, copy=False)


MOST_CLUSTERS = 30
"""The most clusters that "auto" considers; each more costs an eigenvalue of the graph."""


@dataclass(frozen=True)
class SpectralContraction(Term):
    """The term weight · n · R(Z), R the sum of the smallest eigenvalues of the embedding's normalised Laplacian.

    R is 0 if the embedding consists of `n_clusters` parts, of two points at least, with no similarity to each other, so
    the term draws clusters together and apart from each other. It is multiplied by the number of points n, because a
    cross-entropy is a sum over points: the same weight has the same effect for any n. See `LaplacianEigenvalues`.

    Parameters
    ----------
    kernel : Kernel, default=Student()
        The similarity of two places; it may differ from the latent law's.
    n_clusters : int or "auto", default="auto"
        Number of eigenvalues. "auto" is the largest number, up to 30, after which the eigenvalues of the *input*
        graph's Laplacian have a large gap: too many clusters rather than too few.
    weight : float, default=0.3
        λ of the paper; at least 0.
    power : float, default=1.0
        p of the sum of powers of the eigenvalues; see `LaplacianEigenvalues`.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are fewer points than clusters.

    References
    ----------
    Sun, Han and Fan (2022), Laplacian-based cluster-contractive t-SNE, equation 10 and section 3.7. von Luxburg (2007),
    A tutorial on spectral clustering, for the eigengap.

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
    power: float = 1.0

    def __post_init__(self) -> None:
        require_kernel(self.kernel)
        if not is_word("n_clusters", self.n_clusters, "auto", "an integer of at least 1"):
            check_integer("n_clusters", self.n_clusters, 1)
        check_weight(self.weight)
        check_power(self.power)

    def bind(self, problem: Problem) -> WeightedSum:
        problem.refuse_weights(self)
        posterior, k = problem.posterior, self.n_clusters
        n = posterior.n_nodes
        if isinstance(k, str):
            k = int(eigengaps(input_eigenvalues(posterior))[-1])
        if k >= n:
            raise ValueError(f"n_clusters={k} must be below the number of points, {n}.")
        sums = (problem.summation, problem.n_jobs, self.power)
        return WeightedSum(((n, LaplacianEigenvalues(n, self.kernel, k, *sums)),))

    def __str__(self) -> str:
        clusters = "" if self.n_clusters == "auto" else f"{self.n_clusters} "
        return f"{self.weight:g} × contraction of {clusters}clusters, {self.kernel!r}"


def check_power(power: float) -> float:
    """Return p as a float, above 0 and at most 1, where the sum of powers is concave."""
    if check_positive("power", power) > 1.0:
        raise ValueError(f"power must be at most 1, got {power}: descent needs tangents that lie above the power.")
    return float(power)


def input_eigenvalues(posterior: Any) -> FloatArray:
    """Return the 31 smallest eigenvalues of the normalised Laplacian of the posterior's symmetrised mean graph."""
    means = posterior.support.to_csr(posterior.edge_means)
    return laplacian_eigenvalues(means + means.T, min(MOST_CLUSTERS + 1, posterior.n_nodes))
