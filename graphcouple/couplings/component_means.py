"""Component means coupled by precisions, as an objective and as a term, to place components in hierarchical coupling.

Given a graph with normalised component indicators U, the component means X̃ = UᵀX and Z̃ = UᵀZ have Gaussian laws
with Wishart precisions, whose cross-entropy is

    J_ε(Z̃) = ε(ν_X + p)/2 · tr(Z̃ᵀ (I + εX̃X̃ᵀ)⁻¹ Z̃) − (ν_Z + q)/2 · log det(I + εZ̃Z̃ᵀ)

(graph-coupling paper, section 4.2 and corollary 1): the precision coupling of √ε X̃, at √ε Z̃.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._support.validation import check_embedding, check_integer, check_positive, check_weight, is_word
from graphcouple.components import AveragedProjection, component_law, sample_components
from graphcouple.couplings.base import Objective
from graphcouple.couplings.global_term import factor_at
from graphcouple.couplings.precision import PrecisionCrossEntropy
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.priors import RandomGraph
from graphcouple.neighbors import as_points
from graphcouple.spectral import principal_components

# Graphs drawn in one call, enough to keep several workers busy.
_GRAPHS_AT_ONCE = 32

# Above this ratio of variances, solving with the Gram matrix loses too many digits.
_WORST_CONDITION = 1e10

# Squares below this share of the largest are taken as rounding: a tolerance of 1e-12 for lengths.
_ROUNDING = 1e-24

# Descent on a fresh graph per iteration needs a smaller rate than descent on their average: a larger one follows noise.
# No comparison is recorded.
_CAUTION = 8.0


class _Means:
    """Component means of one graph: U as a sparse matrix, and X̃ with the column means of X subtracted."""

    def __init__(self, labels: IntArray, X: Any, mean: FloatArray) -> None:
        _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        n = labels.size
        self.indicators = sp.csr_array((sizes[codes] ** -0.5, codes, np.arange(n + 1)), shape=(n, sizes.size))
        sums = self.indicators.T @ X
        self.X = np.asarray(sums.toarray() if sp.issparse(sums) else sums, dtype=np.float64)
        self.X -= np.sqrt(sizes)[:, None] * mean


class ComponentCrossEntropy(Objective):
    """J_ε of the component means, averaged over graphs, as a function of the embedding, in nats.

    If γ = 1, the component means of the minimiser for one graph are PCA of UUᵀX, for every ε.
    The objective averages over a fixed set of graphs. Given a law, ``at(iteration, Z)`` is J_ε of one graph that is
    drawn for that iteration, so descent sees many graphs, the same in every run.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Its column means are subtracted.
    graphs : RandomGraph, AveragedProjection or array of shape (n_graphs, n)
        A law to draw graphs from, or graphs given by the components of their nodes. A law of prior B is thinned to
        one edge per node; see `graphcouple.components.component_law`.
    n_components : int, default=2
        q.
    scale : "free" or float, default="free"
        Length in the embedding of one unit of length in X. "free" compares shapes only: Z̃ is rescaled to the size of
        the best q-dimensional X̃, as Z̃ · S/(‖Z̃‖² + n)^½, where S² is the sum of the q largest eigenvalues of X̃X̃ᵀ.
        The other terms of an objective then decide how large the embedding is.
    epsilon : "auto" or float, default="auto"
        ε, per squared unit of X. "auto" is q/S²: a well-conditioned choice.
    nu_x : float, optional
        ν_X, at least n; n by default. ν_Z is ν_X + p − q, which makes γ = 1.
    n_graphs : int, default=10
        Number of graphs of a law that the value is averaged over.
    seed : int, default=0
        Seed for drawing graphs.
    n_jobs : int or None, default=None
        Workers that draw graphs; results do not depend on it.

    Raises
    ------
    TypeError, ValueError
        When `X` is not finite, `graphs` do not fit it, or a number is out of range. ε is too large if ε times the
        largest variances of the means exceeds 1e10.

    References
    ----------
    Graph-coupling paper, equations 9 and 21 (which lacks the factors ε of the trace), corollary 1.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> posterior = gc.TSNE(perplexity=10).models(150)[0].posterior(X)
    >>> local = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    >>> both = local + 2.0 * gc.ComponentCrossEntropy(X, posterior)
    >>> Z0 = np.random.default_rng(0).normal(size=(150, 2))
    >>> gc.solve(both, Z0, rescale=True, max_iter=90).loss < both.value(Z0)
    True
    """

    def __init__(
        self,
        X: Any,
        graphs: Any,
        *,
        n_components: int = 2,
        scale: float | str = "free",
        epsilon: float | str = "auto",
        nu_x: float | None = None,
        n_graphs: int = 10,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self._X = as_points(X)
        n, self._p = self._X.shape
        self.n_components = check_integer("n_components", n_components, 1)
        self.scale = scale if scale == "free" else check_positive("scale", scale)
        self.nu_x = float(n if nu_x is None else nu_x)
        if not n <= self.nu_x < np.inf:
            raise ValueError(f"nu_x={nu_x} must be finite and at least n = {n}, for the Wishart law to exist.")
        self._law: RandomGraph | None = None
        self.n_points, self._seed, self._n_jobs = n, seed, n_jobs
        if isinstance(graphs, RandomGraph):
            refuse_weights(graphs.node_weights, type(self).__name__)
            self._law = component_law(graphs)
            labels = sample_components(self._law, n_graphs, seed, n_jobs=n_jobs)
        else:
            labels = (graphs if isinstance(graphs, AveragedProjection) else AveragedProjection(graphs)).labels
        if labels.shape[1] != n:
            raise ValueError(f"graphs have {labels.shape[1]} nodes, but X has {n} rows.")
        self._first_fresh = labels.shape[0]
        self._cache: tuple[int, IntArray] = (-1, labels)
        self._caution = 1.0
        self._mean = np.asarray(self._X.mean(axis=0, dtype=np.float64)).ravel()
        means = [_Means(row, self._X, self._mean) for row in labels]
        self._target, size = self._sizes(means)
        self.epsilon = self.n_components / size if epsilon == "auto" else check_positive("epsilon", epsilon)
        self._unit = 1.0 if self.scale == "free" else float(self.scale)
        if self.epsilon * self._unit**2 * self._target > _WORST_CONDITION:
            raise ValueError(
                f"epsilon={epsilon} and scale={scale} make the component means' largest variances "
                f"{self.epsilon * self._unit**2 * self._target:.3g} times the noise's, more than double precision can "
                f"tell apart, {_WORST_CONDITION:.0e}; lower {'scale' if epsilon == 'auto' else 'epsilon'}, or use "
                "scale='free' and epsilon='auto'."
            )
        self._set_graphs(means)

    def _sizes(self, means: list[_Means]) -> tuple[float, float]:
        """Return S², which is 0 if the means differ only by rounding, and a positive size that sets ε."""
        variance = float(np.mean([_leading_variance(m.X, self.n_components) for m in means]))
        n = self.n_points
        if sp.issparse(self._X):
            squares = float(np.square(self._X.data, dtype=np.float64).sum())
        else:
            squares = float(np.einsum("ij,ij->", self._X, self._X, dtype=np.float64))
        if variance > _ROUNDING * squares:
            return variance, variance
        # All means are in one place, and J pulls them together, so ε follows the scale of the data.
        scatter = squares - n * float(self._mean @ self._mean)
        return 0.0, scatter if scatter > _ROUNDING * squares else float(n)

    def _set_graphs(self, graphs: list[_Means]) -> None:
        """Average over these graphs. One product gives all their centres, because each product has a fixed cost."""
        self._means = graphs
        scale = self.epsilon**0.5 * self._unit
        self._precisions = [PrecisionCrossEntropy(scale * means.X, nu_x=self.nu_x) for means in graphs]
        self._indicators = sp.hstack([means.indicators for means in graphs], format="csr")
        self._transposed = self._indicators.T.tocsr()
        self._ends = np.cumsum([len(means.X) for means in graphs])

    @property
    def explained(self) -> float:
        """Share of the squares of X̃ that its q principal components hold, both summed over the fixed graphs.

        An embedding in q dimensions can show this share of the component means. It is between 0 and 1, and 1 if all
        means are in one place.
        """
        if not self._target > 0:
            return 1.0
        squares = sum(float(np.square(means.X).sum()) for means in self._means)
        return len(self._means) * self._target / squares

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return J_ε and its gradient at `Z`, of shape (n, q), averaged over the fixed graphs."""
        points = check_embedding(Z, n_points=self.n_points)
        if points.shape[1] != self.n_components:
            raise ValueError(f"Z has {points.shape[1]} columns, but n_components={self.n_components}.")
        centres = self._transposed @ points.astype(np.float64, copy=False)
        parts = zip(self._precisions, np.split(centres, self._ends[:-1]), strict=True)
        values, slopes = zip(*(self._one_graph(precision, part) for precision, part in parts), strict=True)
        gradient = self._indicators @ np.concatenate(slopes)
        gradient /= len(values)
        return sum(values) / len(values), gradient.astype(points.dtype, copy=False)

    def at(self, iteration: int, Z: FloatArray) -> ComponentCrossEntropy:
        """Return J_ε of the graph drawn for this iteration; self if graphs were given instead of a law."""
        if self._law is None:
            return self
        means = _Means(self._fresh(iteration), self._X, self._mean)
        single = copy(self)
        single._law, single._caution = None, _CAUTION
        single._set_graphs([means])
        return single

    def _fresh(self, iteration: int) -> IntArray:
        """Return the components of the iteration's graph; graphs are drawn several at a time and cached."""
        assert self._law is not None
        block, at = divmod(iteration, _GRAPHS_AT_ONCE)
        if self._cache[0] != block:
            first = self._first_fresh + block * _GRAPHS_AT_ONCE
            labels = sample_components(self._law, _GRAPHS_AT_ONCE, self._seed, first=first, n_jobs=self._n_jobs)
            self._cache = block, labels
        return self._cache[1][at]

    def _one_graph(self, precision: PrecisionCrossEntropy, centres: FloatArray) -> tuple[float, FloatArray]:
        """Return J_ε of one graph, and its gradient in the centres."""
        free, sq_norm = self.scale == "free", self._sq_norm(centres)
        unit = (self.epsilon * self._target / sq_norm if free else self.epsilon) ** 0.5
        value, gradient = precision.value_and_grad(unit * centres)
        if free:
            # The scaling factor depends on the centres too, which removes nearly all of the gradient along them.
            gradient = gradient - float((gradient * centres).sum()) / sq_norm * centres
        return value, unit * gradient

    def _sq_norm(self, centres: FloatArray) -> float:
        return float(np.square(centres).sum()) + self.n_points

    def curvature(self, Z: FloatArray) -> float:
        """Return the largest curvature of the trace term at the size of `Z`; for a single graph, eight times that."""
        curvature = self.epsilon * (self.nu_x + self._p)
        if self.scale == "free":
            centres = self._means[0].indicators.T @ Z.astype(np.float64, copy=False)
            curvature *= max(self._target, 1.0 / self.epsilon) / self._sq_norm(centres)
        return curvature * self._caution


def _leading_variance(X: FloatArray, q: int) -> float:
    """Return the sum of the q largest eigenvalues of XXᵀ."""
    # NumPy finds them all as fast as SciPy finds q; threads of two linear algebra libraries wait for each other.
    gram = X @ X.T if X.shape[0] <= X.shape[1] else X.T @ X
    return float(np.linalg.eigvalsh(gram)[-q:].clip(min=0.0).sum())


# The automatic weight times the term's range, in units of n, as for the other global terms.
_SHARE = 1.5

# Below this range per point, permuting the rows of an embedding makes no difference.
_LEAST = 1e-6

# Data with large-scale structure have weights of 1.5 to 3.5. A larger weight means that the term has almost no range.
_MOST = 3.75

# The least share of the means' squares in their principal components, for data with large-scale structure.
# No comparison is recorded.
_EXPLAINED = 0.3

# The range is measured at places of this root mean square distance from the origin, far above the noise that J adds.
_LARGE = 100.0


@dataclass(frozen=True)
class ComponentMeans(Term):
    """Couple the component means by precisions, which places the components; see `ComponentCrossEntropy`.

    Parameters
    ----------
    weight : float or "auto", default="auto"
        At least 0. "auto" depends on the range of the objective on the data: 1.5 n divided by how much J_ε rises when
        the rows of the principal components are exchanged at random (beyond 10,000 points, (10,000 n)^½ replaces n), at
        most 3.75; 1 if the exchange makes no difference, as for connected graphs. If the embedding can show little of
        the means, as for many clusters in many dimensions, a large weight would harm neighbourhoods. So if
        `ComponentCrossEntropy.explained` is below 0.3, the weight falls with its cube.
    scale : "free" or float, default="free"
        Length in the embedding of one unit of length in X; "free" compares shapes only.
    epsilon : "auto" or float, default="auto"
        ε; "auto" adapts it to the size of the means.
    n_graphs : int, default=10
        Number of graphs that the objective is averaged over.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are no points, or points have weights.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> tsne = gc.TSNE(perplexity=10, terms=[gc.ComponentMeans(weight=1.0)], random_state=0).fit(X)
    >>> len(tsne.term_losses_)
    1
    """

    weight: float | str = "auto"
    scale: float | str = "free"
    epsilon: float | str = "auto"
    n_graphs: int = 10

    def __post_init__(self) -> None:
        check_weight(self.weight, "auto")
        for name, word in (("scale", "free"), ("epsilon", "auto")):
            value = getattr(self, name)
            if not is_word(name, value, word, "a number above 0"):
                check_positive(name, value)
        check_integer("n_graphs", self.n_graphs, 1)

    def bind(self, problem: Problem) -> ComponentCrossEntropy:
        problem.refuse_weights(self)
        options: dict[str, Any] = {name: getattr(self, name) for name in ("scale", "epsilon", "n_graphs")}
        options |= {"n_components": problem.n_components, "seed": problem.seed(), "n_jobs": problem.n_jobs}
        return ComponentCrossEntropy(problem.coordinates, problem.posterior, **options)

    def weight_of(self, objective: Objective, problem: Problem) -> float:
        if not isinstance(self.weight, str):
            return float(self.weight)
        n = problem.posterior.n_nodes
        Y = principal_components(problem.coordinates, problem.n_components, np.random.RandomState(0))
        size = float(np.square(Y).sum() / n) ** 0.5
        # At a free scale, places far larger than the noise that J adds; at a fixed scale, places of this scale.
        Y *= _LARGE / (size or 1.0) if isinstance(self.scale, str) else self.scale
        span = objective.value(Y[np.random.RandomState(0).permutation(len(Y))]) - objective.value(Y)
        if not span > _LEAST * n:
            return 1.0
        assert isinstance(objective, ComponentCrossEntropy)
        return min(_SHARE * factor_at(n) / span, _MOST) * min(1.0, (objective.explained / _EXPLAINED) ** 3)

    def __str__(self) -> str:
        weight = self.weight if isinstance(self.weight, str) else f"{self.weight:g}"
        return f"{weight} × component means coupled by precisions"
