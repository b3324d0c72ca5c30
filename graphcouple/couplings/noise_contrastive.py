"""Noise-contrastive estimation: the effective cross-entropy at its best edge prior.

Sampled repulsion distinguishes the input's edges from random pairs by the odds πk_ij. Where Neg-t-SNE fixes π, the
loss here is the least over π,

    E(Z) = min_π [ −Σ_{i<j} μ_ij log v_ij − γ Σ_{i<j} c_ij log(1 − v_ij) ],   v = πk/(1 + πk),

so π estimates the normaliser of the embedding's law. The bracket is convex in log π, with its minimum where
Σ (1 − v_ij) μ_ij = γ Σ c_ij v_ij. With many negative samples E is t-SNE's loss, up to a factor and a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from scipy.optimize import brentq

from graphcouple._support.validation import changed
from graphcouple.couplings.effective import EffectiveCoupling, EffectiveCrossEntropy
from graphcouple.couplings.pair import EdgeEnergy
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Kernel, ScaledKernel
from graphcouple.laws.priors.base import at_zero
from graphcouple.summation import EdgeProbability, LogEdgeProbability, LogKernel, LogOnePlusKernel

# Accuracy of log π: E is level in π, so that its value is exact, and its gradient as accurate as log π.
_TOLERANCE = 1e-9

# A few steps of a descent are taken at one π, which needs no more digits. With ten, 10,000 digits end .5 % higher;
# with one, the fit takes twice as long.
_ROUGHLY, _STEPS = 1e-3, 3

# The search begins with steps of this size; log π is below the limit for any embedding of float64 numbers.
_STRIDE, _FARTHEST = 2.0, 600.0


class NoiseContrastiveCrossEntropy(EffectiveCrossEntropy):
    """The loss of noise-contrastive estimation (NCE); the module has the formula.

    Early exaggeration multiplies log k of the input's edges, as t-SNE's does. `basis` is log π, and `with_basis` the
    effective cross-entropy at this π, an upper bound.

    Parameters
    ----------
    posterior, latent_model, negative_sample_rate, repulsion_strength, noise_exponent, summation, n_jobs
        As for `EffectiveCrossEntropy`; a scalar edge prior has no effect.

    References
    ----------
    Damrich, Böhm, Hamprecht and Kobak (2023), From t-SNE to UMAP with contrastive learning, section 3.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> posterior = gc.GraphModel("gaussian", "D", gc.Perplexity(20)).posterior(X)
    >>> loss = gc.couplings.NoiseContrastiveCrossEntropy(posterior, gc.GraphModel("student", "B"))
    >>> best = loss.basis(X)
    >>> loss.value(X) <= loss.with_basis(best + 0.5).value(X)
    True
    """

    drawable = False
    basis_span = _STEPS
    log_prior: float | None = None

    def __init__(self, *laws: Any, **options: Any) -> None:
        super().__init__(*laws, **options)
        self.strength = EdgeEnergy(self.energy.edges.of(LogKernel(self.latent.kernel)), self.n_points)

    @property
    def kernel(self) -> Kernel:
        """The embedding's kernel times π, where π is fixed."""
        kernel = self.latent.kernel
        return kernel if self.log_prior is None else ScaledKernel(kernel, self.log_prior)

    def basis(self, Z: FloatArray, previous: float | None = None) -> float:
        """Return log π of the least loss at `Z` without exaggeration, to three digits."""
        return self._best(self._points(Z), 0.0 if previous is None else previous, _ROUGHLY)

    def with_basis(self, basis: float | None) -> NoiseContrastiveCrossEntropy:
        """Return the loss at a fixed log π; with None, the least loss."""
        fixed = changed(self, log_prior=basis)
        radial = LogEdgeProbability(fixed.kernel)
        fixed.energy = EdgeEnergy(self.energy.edges.of(radial), self.n_points, self.among_copies * at_zero(radial))
        fixed.partition = self.partition.of(LogOnePlusKernel(fixed.kernel))
        return fixed

    @property
    def lower_bound(self) -> float:
        """The sum of each edge's minimal loss, which is the same for every π; edges among copies cost at least 0."""
        return self._least

    def _best(self, points: FloatArray, start: float, tolerance: float) -> float:
        """Return log π where the derivative of the loss changes its sign."""

        @cache
        def slope(log_prior: float) -> float:
            """Return −dE/d log π = Σ (1 − v) μ − γ Σ c v."""
            v = EdgeProbability(ScaledKernel(self.latent.kernel, log_prior))
            pull = self.energy.edges.of(v).evaluate(points, with_gradient=False)[0] + self.among_copies * at_zero(v)
            push = self.partition.of(v).value(points)
            return 0.5 * float(self.degrees.sum()) - pull - push

        low = high = start
        while slope(low) < 0.0 and low > -_FARTHEST:
            low, high = low - _STRIDE * (1.0 + high - low), low
        while slope(high) > 0.0 and high < _FARTHEST:
            low, high = high, high + _STRIDE * (1.0 + high - low)
        return float(brentq(slope, low, high, xtol=tolerance, rtol=8.9e-16)) if abs(high) < _FARTHEST else high

    def _bound(self, Z: FloatArray) -> NoiseContrastiveCrossEntropy:
        if self.log_prior is not None:
            return self
        return self.with_basis(self._best(self._points(Z), 0.0, _TOLERANCE))


@dataclass(frozen=True)
class NoiseContrastiveCoupling(EffectiveCoupling):
    """Noise-contrastive estimation: edges against random pairs, at the best edge prior.

    `NoiseContrastiveCrossEntropy` has the formula.

    Parameters
    ----------
    negative_sample_rate, repulsion_strength, noise_exponent
        As for `EffectiveCoupling`.

    Examples
    --------
    >>> import graphcouple as gc
    >>> print(gc.NCTSNE().sentence.coupling)
    noise-contrastive estimation with 100 negative samples
    """

    loss: ClassVar[Any] = NoiseContrastiveCrossEntropy

    negative_sample_rate: float = 100.0

    def latex(self, latent: Any) -> str:
        return r"\min_\pi \; " + super().latex(latent).replace("k_{ij}", r"\pi k_{ij}")

    def __str__(self) -> str:
        return super().__str__().replace("effective cross-entropy of", "noise-contrastive estimation with")
