"""Defaults that depend on the law: the size of the start, the optimizer and its momentum."""

from __future__ import annotations

from dataclasses import dataclass

from graphcouple._validation import check_positive
from graphcouple.couplings import Coupling
from graphcouple.laws import GraphModel
from graphcouple.optimize.momentum import EXAGGERATION_ITERATIONS, Exaggeration, MomentumGains

SETTLED_WITHIN = 0.004
"""An estimator stops when the extrapolated decrease of its loss is below this share of the remaining gap."""

# The first is t-SNE's. The second follows umap-learn, whose start spans ±10: unnormalised repulsion needs room.
_SMALL_START, _WIDE_START = 1e-4, 10.0

# A kernel that is flat at zero exerts no force on a small start.
_LEAST_START_IF_FLAT = 1.0

# Other programs use 0.8. Runs of 550 iterations are short, so they use 0.9; unnormalised repulsion is too stiff.
_MOMENTUM, _MOMENTUM_IF_STIFF = 0.9, 0.8


def flat_at_zero(latent: GraphModel) -> bool:
    """Return whether near points feel no force under this law: 1 − k behaves like d^m with m > 2."""
    return latent.kernel.order_at_zero > 2.0


def start_scale(latent: GraphModel) -> float:
    """Return a suitable standard deviation for the start of an embedding under this law."""
    scale = _SMALL_START if latent.prior.normalized else _WIDE_START
    return max(scale, _LEAST_START_IF_FLAT) if flat_at_zero(latent) else scale


def suited_iterations(latent: GraphModel, n_points: int) -> int:
    """Return the maximum number of iterations that ``max_iter="auto"`` stands for."""
    if latent.prior.normalized:
        return 550
    return 500 if n_points <= 10_000 else 150


@dataclass(frozen=True)
class Descent:
    """Gradient descent with momentum and gains, with defaults that suit the laws.

    A recipe: `for_problem` returns the `MomentumGains`.

    Parameters
    ----------
    learning_rate : float or "auto", default="auto"
        See `MomentumGains`.
    early_exaggeration : float or "auto", default="auto"
        Weight of the attraction in the first 150 iterations (or in the first half of a run of fewer than 300); 1 for
        none. "auto" is 12 for the cross-entropy and 1 for the effective one. Ignored if the latent kernel is flat at
        zero, because exaggerated attraction would then collapse the embedding for good.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.TSNE().sentence.optimizer
    Descent(learning_rate='auto', early_exaggeration=12.0)
    """

    learning_rate: float | str = "auto"
    early_exaggeration: float | str = "auto"

    def __post_init__(self) -> None:
        for name in ("learning_rate", "early_exaggeration"):
            value = getattr(self, name)
            if value != "auto":
                check_positive(name, value)

    def for_problem(self, latent: GraphModel, coupling: Coupling, max_iter: int) -> MomentumGains:
        """Return the optimizer for this law of the embedding, coupling and number of iterations."""
        wanted = coupling.suited_exaggeration if self.early_exaggeration == "auto" else self.early_exaggeration
        factor = 1.0 if flat_at_zero(latent) else float(wanted)
        length = min(EXAGGERATION_ITERATIONS, max_iter // 2) if factor > 1 else 0
        momentum = _MOMENTUM if latent.prior.normalized else _MOMENTUM_IF_STIFF
        return MomentumGains(self.learning_rate, momentum=momentum, exaggeration=Exaggeration(factor, length))
