"""Binary latent graphs: LargeVis, Neg-t-SNE and NC-t-SNE (prior D given the input), UMAP (prior B)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphcouple._support.validation import warn
from graphcouple.couplings import Coupling, CrossEntropyCoupling, EffectiveCoupling, NoiseContrastiveCoupling
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import ABOVE_0, SHARE
from graphcouple.estimators.graph_coupling import GraphCoupling
from graphcouple.estimators.preset import PerplexityPreset, Preset, fuzzy_law
from graphcouple.kernels import Odds, RationalPower, Student
from graphcouple.laws import GraphLaw, GraphMixture, GraphModel
from graphcouple.laws.priors import Binary
from graphcouple.optimize import NegativeSampling


@estimator
class SampledRepulsion(Preset):
    """Base class of methods with latent prior B: their repulsion and its optimizer."""

    repulsion: str = parameter(default="effective")
    negative_sample_rate: float = parameter(default=5.0)
    repulsion_strength: float = parameter(default=1.0)

    noise_exponent: ClassVar[float] = 0.0
    clip: ClassVar[float] = 4.0
    n_pulls: ClassVar[int] = 1

    def _coupling(self) -> Coupling:
        if self.repulsion == "full":
            return CrossEntropyCoupling()
        # umap-learn pulls twice for the pushes of one pull, so it descends on the loss with half the repulsion.
        pulls = self.n_pulls if self.repulsion == "sampled" else 1
        return EffectiveCoupling(self.negative_sample_rate, self.repulsion_strength / pulls, self.noise_exponent)

    def _optimizer(self) -> Any:
        if self.repulsion != "sampled":
            return super()._optimizer()
        rate = 1.0 if self.learning_rate == "auto" else float(self.learning_rate)
        return NegativeSampling(rate, clip=self.clip, n_pulls=self.n_pulls, random_state=None)


@estimator
class LargeVis(SampledRepulsion, PerplexityPreset):
    """LargeVis: prior D given the input; B given the embedding, with edge probabilities 1/(1 + d²).

    The latent kernel is ``Odds(Student())`` = 1/d², and repelling points are drawn ∝ degree^¾, as in the original. By
    default the expected loss is minimised, without sampling; see `EffectiveCrossEntropy`.

    {parameters}

    {attributes}

    References
    ----------
    Tang et al. (2016), Visualizing large-scale and high-dimensional data; graph-coupling
    paper, section 3.1 (the pair D–B), which uses Student() instead of Odds(Student()).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.LargeVis(perplexity=20, max_iter=100, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    perplexity: Any = parameter(default=50.0)
    repulsion_strength: float = parameter(default=7.0)

    # LargeVis moves both points of a repelling pair, so each is repelled twice as often as it draws another: one pull.
    noise_exponent: ClassVar[float] = 0.75
    clip: ClassVar[float] = 5.0

    def _latent_law(self) -> GraphModel:
        return GraphModel(Odds(Student()), Binary())


@estimator
class NegTSNE(SampledRepulsion, PerplexityPreset):
    """Neg-t-SNE: t-SNE's kernel and input, with the edges of prior B distinguished from sampled pairs.

    An edge of the embedding has the probability πk/(1 + πk), with k = 1/(1 + d²) and π the parameter `edge_prior`. π
    leads from strong attraction (small π) over UMAP's (π = 1) to t-SNE's, which is reached near π = n²/(2mZ), where m
    is `negative_sample_rate` and Z the sum of t-SNE's kernel over all pairs i < j. In the paper's terms the fixed
    normaliser is Z̄ = n²/(2mπ).

    {parameters}

    {attributes}

    References
    ----------
    Damrich, Böhm, Hamprecht and Kobak (2023), From t-SNE to UMAP with contrastive learning, section 5. There the
    input's graph has equal weights.

    Examples
    --------
    The larger π, the larger the map:

    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> maps = [gc.NegTSNE(edge_prior=prior, random_state=0).fit_transform(X) for prior in (0.5, 1.0, 10.0)]
    >>> sizes = [Z.std() for Z in maps]
    >>> sizes == sorted(sizes)
    True
    """

    edge_prior: float = parameter(default=1.0, doc="π, which scales the odds of each edge.", checks=[ABOVE_0])

    def _latent_law(self) -> GraphModel:
        return GraphModel(Student(), Binary(self.edge_prior))


@estimator
class NCTSNE(PerplexityPreset):
    """NC-t-SNE: Neg-t-SNE at the edge prior that minimises its loss, as in noise-contrastive estimation.

    The edge prior estimates the normaliser of t-SNE's kernel. The more negative samples, the closer the map is to
    t-SNE's; with few, small separate clusters become dots.

    {parameters}

    {attributes}

    References
    ----------
    Damrich, Böhm, Hamprecht and Kobak (2023), From t-SNE to UMAP with contrastive learning, section 3. There the loss
    is sampled; here it is its expectation.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> few, many = gc.NCTSNE(negative_sample_rate=1.0), gc.NCTSNE()
    >>> maps = [method.set_params(random_state=0).fit_transform(X) for method in (few, many)]
    >>> near = [gc.metrics.k_ary_preservation(X, Z, 10) for Z in maps]
    >>> bool(near[0] < near[1])
    True
    """

    # More samples of an expectation take no time. With 5, 48 clusters of 50 points end as dots, 2,800 radii apart.
    negative_sample_rate: float = parameter(default=100.0)

    def _latent_law(self) -> GraphModel:
        return GraphModel(Student(), Binary())

    def _coupling(self) -> Coupling:
        return NoiseContrastiveCoupling(self.negative_sample_rate)


@estimator
class UMAP(SampledRepulsion):
    """UMAP: prior B on both sides, with the input's graph thresholded to an undirected one.

    The input's edge probabilities are umap-learn's fuzzy graph; the embedding's are
    1/(1 + a d^{2b}), with a and b fitted to `min_dist` and `spread`. umap-learn draws the repelling points at
    random, which gives repulsion far less weight than its stated cross-entropy does. By default this class minimises
    the expected loss of umap-learn without sampling; see `EffectiveCrossEntropy`.

    {parameters}

    {attributes}

    References
    ----------
    McInnes, Healy and Melville (2018), UMAP; graph-coupling paper, section 3.1 (the pair B–B on the symmetric
    thresholded graph). Damrich and Hamprecht (2021), On UMAP's true loss function.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.UMAP(max_iter=100, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    init: Any = parameter(default="auto")
    n_neighbors: int = parameter(default=15, like="neighbors of umap")
    min_dist: float = parameter(default=0.1)
    spread: float = parameter(default=1.0)
    a: float | None = parameter(
        default=None,
        doc="With `b`: the edge probability is 1/(1 + a d^(2b)), whatever `min_dist` and `spread` are.",
        checks=[None, ABOVE_0],
    )
    b: float | None = parameter(default=None, doc="See `a`.", checks=[None, ABOVE_0])
    local_connectivity: float = parameter(default=1.0)
    set_op_mix_ratio: float = parameter(
        default=1.0,
        doc="Share of the law of pairs linked in either direction (the union of umap-learn), in [0, 1]; the rest is "
        "the share of pairs linked in both.",
        checks=[SHARE],
    )

    n_pulls: ClassVar[int] = 2

    def _heed(self, y: Any) -> None:
        if y is not None and not self.target_weight and not _is_step():
            warn("y is ignored at target_weight=0; target_weight=0.5, the default of umap-learn, uses its classes.")

    def _input_law(self) -> GraphLaw:
        mix = float(self.set_op_mix_ratio)
        shares = {how: share for how, share in (("threshold", mix), ("mutual", 1.0 - mix)) if share > 0.0}
        parts = [fuzzy_law(self, how, self.local_connectivity) for how in shares]
        return parts[0] if len(parts) == 1 else GraphMixture(parts, tuple(shares.values()))

    def _latent_law(self) -> GraphModel:
        if (self.a is None) != (self.b is None):
            raise ValueError(f"give both a and b or neither, got a={self.a!r} and b={self.b!r}.")
        if self.a is None or self.b is None:
            return GraphModel(Odds(RationalPower.from_min_dist(self.min_dist, self.spread)), Binary())
        return GraphModel(Odds(RationalPower(self.a, self.b)), Binary())

    def __mul__(self, other: Any) -> GraphCoupling:
        """Return the map of the edges that two fitted maps of the same rows both have, with products of their means.

        umap-learn also keeps the edges of one map, with small weights.
        """
        return self._composed(other, lambda mine, others: mine * others)

    def __add__(self, other: Any) -> GraphCoupling:
        """Return the map of the edges that either of two fitted maps of the same rows has: means p + q − pq."""
        return self._composed(other, lambda mine, others: mine + others - mine * others)

    def _refuse(self, other: Any) -> Any:
        raise TypeError(
            f"only two fitted UMAPs can be joined, by * or +, got {type(self).__name__} and {type(other).__name__}. "
            "Compose their means, posterior_.mean(), and fit GraphCoupling(**umap.sentence.replace(input=mean))."
        )

    # A joined map is a GraphCoupling, which leaves the operator to the UMAP on its right.
    __sub__ = __rsub__ = __rmul__ = __radd__ = _refuse

    def _composed(self, other: Any, joined: Callable[[Any, Any], Any]) -> Any:
        if not isinstance(other, UMAP):
            self._refuse(other)
        for each in (self, other):
            if any(part is not None for part in (each.landmarks_, each._rows, each.posterior_.node_weights)):
                raise ValueError(
                    "maps of some rows, or of weighted rows, cannot be joined; fit all rows without weights."
                )
        means = [sp.csr_array(each.posterior_.mean()) for each in (self, other)]
        if means[0].shape != means[1].shape:
            raise ValueError(f"the maps have {means[0].shape[0]} and {means[1].shape[0]} points; fit the same rows.")
        graph = sp.csr_array(joined(*means))
        if alone := int((np.asarray(graph.sum(axis=1)).ravel() == 0.0).sum()):
            warn(
                f"{alone} of {graph.shape[0]} points have no edge that both maps have, so they have arbitrary places; "
                "a + b keeps the edges of either map."
            )
        return GraphCoupling(**self.sentence.replace(input=graph)).fit()


def _is_step() -> bool:
    """Return whether a pipeline fits this step with the classes of its last one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_fit_transform_one":
        frame = frame.f_back
    return frame is not None
