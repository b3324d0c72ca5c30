"""Methods that match two graphs' means edge by edge: any method between PCA with two kernels and UMAP."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import StrOptions

from graphcouple.couplings import Coupling, MatchingCoupling, MatchingLoss, ReconstructionCoupling
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.preset import Preset, fuzzy_law, of_points
from graphcouple.kernels import Exponential, Gaussian, Kernel, Odds, RationalPower, Student
from graphcouple.laws import Bandwidth, GraphModel, LocalConnectivity, Perplexity
from graphcouple.laws.priors import Binary, UnitOutDegree

_READINGS = StrOptions({"bernoulli", "neighborhood"})


def _law(kernel: Kernel, reading: str, **options: Any) -> GraphModel:
    """Return the law whose means are a kernel's values, or these divided by each row's sum."""
    if reading == "bernoulli":
        return GraphModel(Odds(kernel), Binary(), **options)
    return GraphModel(kernel, UnitOutDegree(), **options)


@estimator
class PairwiseMatching(Preset):
    """Two kernels' values matched pair by pair: F(X, Y) = Σ_{i≠j} F̂(S(v_ij, v_ji), w_ij).

    v is the input's kernel at distances rescaled by the bandwidth, w the embedding's. In the neighbourhood reading both
    are divided by each row's sum, and S is applied to w too. Every choice is a law of the library, and the method a
    `GraphCoupling`; see ``sentence``.

    {parameters}

    {attributes}

    References
    ----------
    Draganov (2021), Towards a common dimensionality reduction approach, chapter 3.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.PairwiseMatching(loss="kl", symmetrize="or", random_state=0, max_iter=50).fit_transform(X).shape
    (150, 2)
    """

    init: Any = parameter(default="auto")
    perplexity: float = parameter(
        default=30.0,
        like="perplexity of each point",
        doc="Effective number of neighbours of each point, unless a bandwidth is given.",
    )
    kernel: Kernel | None = parameter(
        default=None, doc="v, with values up to 1; Gaussian by default.", checks=[Kernel, None]
    )
    latent_kernel: Kernel | None = parameter(
        default=None, doc="w, with values up to 1; Student by default.", checks=[Kernel, None]
    )
    loss: Any = parameter(
        default="square",
        kind='{"square", "kl"} or MatchingLoss',
        doc="F̂: the square, the binary KL divergence, or your own.",
        checks=[str, MatchingLoss],
    )
    symmetrize: str = parameter(
        default="mean",
        kind='{"mean", "or", "first"}',
        doc="S(a, b): (a + b)/2, a + b − ab, or a.",
        checks=[StrOptions({"mean", "or", "first"})],
    )
    reading: str = parameter(
        default="bernoulli",
        kind='{"bernoulli", "neighborhood"}',
        doc="How v is read: pair by pair, or divided by its row's sum.",
        checks=[_READINGS],
    )
    latent_reading: str | None = parameter(
        default=None, doc="How w is read; as v by default.", checks=[_READINGS, None]
    )
    bandwidth: Bandwidth | None = parameter(
        default=None,
        doc="How each point rescales its distances before v is evaluated, in place of the perplexity.",
        checks=[Bandwidth, None],
    )
    n_neighbors: Any = parameter(default="auto")

    def _input_law(self) -> GraphModel:
        bandwidth = self.bandwidth or Perplexity(self.perplexity)
        kernel = self.kernel or Gaussian()
        return _law(kernel, self.reading, bandwidth=bandwidth, n_neighbors=self.n_neighbors, **of_points(self))

    def _latent_law(self) -> GraphModel:
        return _law(self.latent_kernel or Student(), self.latent_reading or self.reading)

    def _coupling(self) -> Coupling:
        return MatchingCoupling(self.loss, self.symmetrize)


@estimator
class TwoKernelPCA(Preset):
    """PCA with two kernels: ‖K_X − K_Y‖²_F, by default with UMAP's kernels.

    K_X holds UMAP's edge probabilities, K_Y the values 1/(1 + a d^2b). All pairs count alike, unlike in UMAP, so
    clusters are not as far apart.

    {parameters}

    {attributes}

    References
    ----------
    Draganov and Dohn (2023), Unexplainable explanations, section 5.1 and figure 3.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.TwoKernelPCA(random_state=0, max_iter=50).fit_transform(X).shape
    (150, 2)
    """

    init: Any = parameter(default="auto")
    n_neighbors: int = parameter(default=15, like="neighbors of umap")
    min_dist: float = parameter(default=0.1)
    spread: float = parameter(default=1.0)
    latent_kernel: Kernel | None = parameter(
        default=None, doc="k_y, in place of the one that `min_dist` and `spread` give.", checks=[Kernel, None]
    )

    def _input_law(self) -> GraphModel:
        return fuzzy_law(self)

    def _latent_law(self) -> GraphModel:
        return GraphModel(Odds(self._kernel), Binary())

    @property
    def _kernel(self) -> Kernel:
        return self.latent_kernel or RationalPower.from_min_dist(self.min_dist, self.spread)

    def _coupling(self) -> Coupling:
        return MatchingCoupling("square")


@estimator
class TwoKernelLLE(TwoKernelPCA):
    """Locally linear embedding with a kernel on the embedding: Tr(M K_Y) + (1/n) Σ_ij k_y(d²_ij), M = (I − W)ᵀ(I − W).

    W reconstructs each point from its neighbours, as in LLE. A pair attracts by w_ij + w_ji and repels by [WᵀW]_ij +
    1/n: nearly UMAP's forces.

    {parameters}

    {attributes}

    References
    ----------
    Draganov and Dohn (2023), Unexplainable explanations, section 5.2, lemma 4 and figure 3.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.TwoKernelLLE(random_state=0, max_iter=50).fit_transform(X).shape
    (150, 2)
    """

    reg: float = parameter(default=1e-3)
    input_kernel: Kernel | None = parameter(
        default=None,
        doc="k_x, in whose space points are reconstructed from their neighbours; None for their own.",
        checks=[Kernel, None],
    )

    def _input_law(self) -> GraphModel:
        k = self.n_neighbors
        return GraphModel(Exponential(), UnitOutDegree(), LocalConnectivity(k), k - 1, **of_points(self))

    def _latent_law(self) -> GraphModel:
        return GraphModel(self._kernel, UnitOutDegree())

    def _coupling(self) -> Coupling:
        return ReconstructionCoupling(self.reg, self.input_kernel)
