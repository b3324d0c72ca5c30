"""Normalising constants of pairwise fields on the centred points: closed forms, quadrature, Monte Carlo."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.integrate import cubature, quad
from scipy.linalg import null_space
from scipy.sparse import csgraph
from scipy.special import gammaln
from scipy.stats.sampling import NumericalInversePolynomial

from graphcouple._support.validation import check_integer, warn
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Kernel
from graphcouple.kernels.measured import reach
from graphcouple.laws.priors.random_graph import Rng

# Logarithms: below e⁻⁶⁰ ≈ 1e-26 of its peak, an integrand adds nothing in double precision. Distances from e⁻⁴⁰ to e²⁵⁰
# are scanned, so that kernels may fall slowly.
_NEGLIGIBLE = -60.0
_SCAN = np.arange(-40.0, 250.0, 0.05)
# Draws beyond these distances are left out if they are rarer. They are drawn up to e³⁰⁰, whose square is a number.
_RARE, _FARTHEST = 1e-12, 300.0
# Formulas of a kernel may overflow beyond this squared distance, or where log k is below the second value. Below the
# third, k falls faster than any power.
_FAR, _TINY, _NO_POWER = 1e20, -300.0, -1e6
# Draws that must carry a mean, in effect, for its standard error to be trusted.
_FEW_DRAWS = 100
QUADRATURE_DIMS = 3
"""The most coordinates that are integrated by quadrature."""


class LogNormalizer(NamedTuple):
    """log ∫ f(X, W) dX over the centred points.

    Attributes
    ----------
    value : float
        In nats; inf if the integral diverges.
    standard_error : float
        Error of `value`; 0 for a closed form. For quadrature its own estimate, which is too small for heavy tails.
    method : str
        "gaussian", "forest", "quadrature" or "monte carlo".

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> W = np.array([[0, 1], [0, 0]])
    >>> gc.PairwiseMRF(gc.Gaussian()).log_normalizer(W, dim=1).method
    'gaussian'
    """

    value: float
    standard_error: float
    method: str


class _RadialLaw:
    """The density proportional to k(‖x‖)^w on R^p, or on the ball ‖x‖ < `reach`, in t = log ‖x‖."""

    def __init__(self, kernel: Kernel, weight: float, dim: int, reach: float = math.inf) -> None:
        self.kernel, self.weight, self.dim = kernel, weight, dim
        # As a function of t the integrand must vanish like a power of ‖x‖ at both ends, or the integral diverges.
        s = np.geomspace(1e-32, 1e60, 93)
        with np.errstate(all="ignore"):
            logs, slope = kernel.log(s), float(kernel.grad_log(s[:1])[0])
        # Where a kernel is 0, it may state any gradient, and far out the gradient's formula may overflow.
        near = math.inf if logs[0] == -math.inf else weight * 2.0 * s[0] * slope + dim
        last = int(np.flatnonzero(np.isfinite(logs))[-1])
        # The formula of k overflows far out or where k is tiny, else the kernel has an edge.
        has_edge = last < s.size - 1 and s[last] < _FAR and logs[last] > _TINY
        # A formula that is bounded where k is 0 has no slope far out.
        ends = has_edge or logs[last] < _NO_POWER
        far = -math.inf if ends else weight * 2.0 * (logs[last] - logs[last - 1]) / math.log(10.0) + dim
        self.powers = near, far
        self.integrable_near = near > 1e-9
        self.integrable = self.integrable_near and (far < -1e-9 or reach < math.inf)
        if self.integrable:
            scan = _SCAN if reach == math.inf else np.append(_SCAN[math.log(reach) > _SCAN], math.log(reach))
            levels = self._log(scan)
            self.peak = float(levels.max())
            inside = np.flatnonzero(levels > self.peak + _NEGLIGIBLE)
            self.domain = self._end(scan[: inside[0] + 1][::-1]), self._end(scan[inside[-1] :])
            self.mode = float(scan[int(levels.argmax())])
            low, high = self.domain
            self.tails = self.pdf(low) / near, self.pdf(high) / -far if reach == math.inf else 0.0

    def _log(self, t: Any) -> Any:
        t = np.asarray(t, dtype=np.float64)
        with np.errstate(over="ignore"):
            return self.weight * self.kernel.log(np.exp(2.0 * t)) + self.dim * t

    def _end(self, scan: FloatArray) -> float:
        """Return the first of some places, moved to the kernel's edge if that lies between it and the second."""
        inside, outside = float(scan[0]), float(scan[min(1, scan.size - 1)])
        if self._log(outside) == -math.inf:
            while (middle := 0.5 * (inside + outside)) not in (inside, outside):
                inside, outside = (inside, middle) if self._log(middle) == -math.inf else (middle, outside)
        return inside

    def pdf(self, t: float) -> float:
        return math.exp(float(self._log(t)) - self.peak)

    def log_integral(self) -> float:
        """Return log ∫ k^w over R^p."""
        if not self.integrable:
            return math.inf
        sphere = math.log(2.0) + 0.5 * self.dim * math.log(math.pi) - float(gammaln(0.5 * self.dim))
        return float(sphere + self.peak + math.log(self._inner + sum(self.tails)))

    @cached_property
    def _inner(self) -> float:
        """The integral over the domain in t, without the tails, which are powers."""
        cuts = np.linspace(*self.domain, 40)
        return float(sum(quad(self.pdf, a, b, epsabs=0.0, epsrel=1e-11)[0] for a, b in pairwise(cuts)))

    def sample(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw points of R^p."""
        draw = NumericalInversePolynomial(self, center=self.mode, domain=self.domain, random_state=rng)
        direction = rng.normal(size=(size, self.dim))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        t, (low, high), (near, far) = draw.rvs(size), self.domain, self.powers
        shares = np.array(self.tails) / (self._inner + sum(self.tails))
        if shares.sum() > _RARE:
            side, beyond = rng.random(size), rng.exponential(size=size)
            t = np.where(side < shares[0], low - beyond / near, t)
            t = np.where(side > 1.0 - shares[1], np.minimum(high - beyond / far, _FARTHEST), t)
        return np.exp(t)[:, None] * direction


def gaussian(graph: sp.csr_array, labels: IntArray, dim: int) -> float:
    """Return the closed form of the Gaussian kernel."""
    free = graph.shape[0] - int(labels.max()) - 1
    # By the matrix-tree theorem; eigenvalues of weights of many magnitudes are lost to rounding.
    log_forests = np.log(sp.triu(graph).data).sum() if graph.nnz == 2 * free else _log_forests(graph.toarray())
    log_det = float(log_forests + np.log(np.bincount(labels)).sum())
    return 0.5 * dim * (free * math.log(2.0 * math.pi) - log_det)


def _log_forests(weights: FloatArray) -> float:
    """Return log Σ_F Π_{e ∈ F} w_e over the spanning forests F; nodes are eliminated without any subtraction."""
    total = 0.0
    for node in range(len(weights) - 1, 0, -1):
        edges = weights[node, :node]
        # The last node of a component has no edges left.
        if (degree := float(edges.sum())) > 0.0:
            total += math.log(degree)
            weights[:node, :node] += np.outer(edges, edges / degree)
    return total


def _sizes_term(labels: IntArray, dim: int) -> float:
    return -0.5 * dim * float(np.log(np.bincount(labels)).sum())


def forest(kernel: Kernel, graph: sp.csr_array, labels: IntArray, dim: int) -> float:
    """Return the closed form on a forest."""
    weights, counts = np.unique(sp.triu(graph).data, return_counts=True)
    laws = [_RadialLaw(kernel, float(weight), dim).log_integral() for weight in weights]
    return _sizes_term(labels, dim) + sum(c * value for c, value in zip(counts, laws, strict=True))


def quadrature(kernel: Kernel, graph: sp.csr_array, labels: IntArray, dim: int) -> LogNormalizer:
    """Integrate over all coordinates, with the mean of each component held."""
    members = np.equal.outer(np.unique(labels), labels)
    n_dims = (graph.shape[0] - len(members)) * dim
    if n_dims > QUADRATURE_DIMS:
        raise ValueError(f"quadrature takes at most {QUADRATURE_DIMS} coordinates, not {n_dims}; use 'monte carlo'.")
    if n_dims == 0:
        return LogNormalizer(0.0, 0.0, "quadrature")
    # Coordinates of the centred points in which a Gaussian field has much the same width in all directions.
    centred = null_space(members.astype(float))
    values, vectors = np.linalg.eigh(centred.T @ csgraph.laplacian(graph).toarray() @ centred)
    values = np.maximum(values, np.finfo(float).eps * values[-1])
    basis = kernel.length * centred @ vectors / np.sqrt(values)
    log_scale = n_dims * math.log(kernel.length) - 0.5 * dim * float(np.log(values).sum())
    edges = sp.triu(graph).tocoo()
    if not all(_RadialLaw(kernel, float(weight), dim).integrable_near for weight in np.unique(edges.data)):
        return LogNormalizer(math.inf, 0.0, "quadrature")

    def density(coordinates: FloatArray) -> FloatArray:
        points = np.einsum("ia,sap->sip", basis, coordinates.reshape(len(coordinates), -1, dim))
        sq_dist = ((points[:, edges.row] - points[:, edges.col]) ** 2).sum(axis=2)
        return np.exp((edges.data * kernel.log(sq_dist)).sum(axis=1))

    # A kink in the kernel is one along lines, which boxes meet slowly.
    smooth = kernel.order_at_zero in (2.0, 4.0, math.inf) and reach(kernel) == math.inf
    limits = [-np.inf] * n_dims, [np.inf] * n_dims
    with np.errstate(all="ignore"):
        integral = cubature(density, *limits, rtol=1e-8 if smooth else 1e-6, max_subdivisions=20_000)
    value = float(integral.estimate)
    if value == math.inf:
        return LogNormalizer(math.inf, 0.0, "quadrature")
    return LogNormalizer(log_scale + math.log(value), float(integral.error) / value, "quadrature")


def _is_bridge(graph: sp.csr_array, i: int, j: int) -> bool:
    """Return whether no cycle contains an edge."""
    without = graph.tolil()
    without[i, j] = without[j, i] = 0.0
    _, labels = csgraph.connected_components(without.tocsr(), directed=False)
    return bool(labels[i] != labels[j])


def monte_carlo(
    kernel: Kernel, graph: sp.csr_array, dim: int, n_samples: int, rng: Rng, box: float | None = None
) -> LogNormalizer:
    """Estimate the integral over the centred points, or over the box [0, box]^(n p).

    The differences along a spanning forest are drawn from their own normalised laws. The estimate is the mean of the
    product of the kernels on the remaining edges, times, for a box, the indicator that all points lie in it.
    """
    check_integer("n_samples", n_samples, 2)
    generator = np.random.default_rng(rng)
    n_components, labels = csgraph.connected_components(graph, directed=False)
    tree = _heaviest_forest(graph)
    bounded, undecided = kernel.assumptions(dim).bounded, False
    log_constant = n_components * dim * math.log(box) if box is not None else _sizes_term(labels, dim)
    points = np.zeros((n_samples, graph.shape[0], dim))
    for root in (int(np.argmax(labels == c)) for c in range(n_components)):
        if box is not None:
            points[:, root] = generator.uniform(0.0, box, size=(n_samples, dim))
        order, parents = csgraph.breadth_first_order(tree, root, directed=False)
        for node in order[1:]:
            parent = int(parents[node])
            law = _RadialLaw(kernel, float(graph[node, parent]), dim)
            if box is not None and bounded and not law.integrable:
                # The integral is infinite over the whole space, but not over the box: draw in the box, and weight the
                # edge like edges outside the tree.
                points[:, node] = generator.uniform(0.0, box, size=(n_samples, dim))
                log_constant += dim * math.log(box)
                tree[node, parent] = tree[parent, node] = 0.0
                continue
            if box is not None and not law.integrable:
                # A kernel that is infinite at 0: weights of points drawn in the box may have infinite variance, so draw
                # around the parent, within the diagonal of the box.
                law = _RadialLaw(kernel, float(graph[node, parent]), dim, reach=box * math.sqrt(dim))
            if not law.integrable:
                if law.integrable_near and not _is_bridge(graph, int(node), parent):
                    undecided = True
                    continue
                return LogNormalizer(math.inf, 0.0, "monte carlo")
            log_constant += law.log_integral()
            points[:, node] = points[:, parent] + law.sample(n_samples, generator)
    if undecided:
        raise ValueError(
            f"{kernel!r} is not integrable along an edge of a cycle, whose other edges may make the integral finite; "
            "Monte Carlo cannot decide whether they do. Integrate over a box: log_box_integral."
        )
    log_mean, error = _mean_product(kernel, sp.csr_array(graph - graph.multiply(tree)), points, box)
    if error == math.inf:
        warn(f"none of {n_samples} draws lies in the box; draw more, or take a larger box.")
    elif n_samples / (1.0 + n_samples * error**2) < min(_FEW_DRAWS, 0.1 * n_samples):
        remedy = ", or take a graph with fewer cycles" if box is None else ""
        warn(
            f"the estimate rests on few of {n_samples} draws, so its standard error, {error:.2g} nats, is too small. "
            f"Draw more{remedy}."
        )
    return LogNormalizer(log_constant + log_mean, error, "monte carlo")


def _heaviest_forest(graph: sp.csr_array) -> sp.csr_array:
    """Return a spanning forest of the heaviest edges, with a 1 in both directions of each edge."""
    heaviest = graph.copy()
    heaviest.data = 1.0 / graph.data
    tree = csgraph.minimum_spanning_tree(heaviest).sign()
    return sp.csr_array(tree + tree.T)


def _mean_product(kernel: Kernel, graph: sp.csr_array, points: FloatArray, box: float | None) -> tuple[float, float]:
    """Return the log of the mean over draws of the product of kernels on edges, 0 outside the box, and its error."""
    graph.eliminate_zeros()
    edges = sp.triu(graph).tocoo()
    sq_dist = ((points[:, edges.row] - points[:, edges.col]) ** 2).sum(axis=2)
    logs = (edges.data * kernel.log(sq_dist)).sum(axis=1)
    if box is not None:
        logs = np.where(((points >= 0) & (points <= box)).all(axis=(1, 2)), logs, -math.inf)
    if (most := float(logs.max())) == -math.inf:
        return -math.inf, math.inf
    weights = np.exp(logs - most)
    mean = float(weights.mean())
    return most + math.log(mean), float(weights.std(ddof=1)) / (mean * math.sqrt(len(points)))
