"""What suits which law: the start's size, the optimizer and its momentum, where the user leaves them to the library."""

from __future__ import annotations

from dataclasses import dataclass

from graphcouple._validation import check_positive
from graphcouple.couplings import Coupling
from graphcouple.laws import GraphModel
from graphcouple.optimize.momentum import EXAGGERATION_ITERATIONS, Exaggeration, MomentumGains

SETTLED_WITHIN = 0.004
"""An estimator's run ends when what its iterations may still gain is less than this share of what is left."""

# t-SNE's start; and that of umap-learn, which spreads its start over ±10. Repulsion that is not normalised needs room.
_SMALL_START, _WIDE_START = 1e-4, 10.0

# A kernel that is flat at zero exerts no force on a small start.
_LEAST_START_IF_FLAT = 1.0

# Peers have 0.8; runs of 550 iterations are tuned to 0.9. Repulsion that is not normalised is stiffer.
_MOMENTUM, _MOMENTUM_IF_STIFF = 0.9, 0.8


def flat_at_zero(latent: GraphModel) -> bool:
    """Return whether near points feel no force under this law: 1 − k like d^m with m > 2."""
    return latent.kernel.order_at_zero > 2.0


def start_scale(latent: GraphModel) -> float:
    """Return the standard deviation that an embedding under this law does well to start with."""
    scale = _SMALL_START if latent.prior.normalized else _WIDE_START
    return max(scale, _LEAST_START_IF_FLAT) if flat_at_zero(latent) else scale


def suited_iterations(latent: GraphModel, n_points: int) -> int:
    """Return the most iterations that ``max_iter="auto"`` stands for."""
    if latent.prior.normalized:
        return 550
    return 500 if n_points <= 10_000 else 150


@dataclass(frozen=True)
class Descent:
    """Gradient descent with momentum and gains, the settings that are left open chosen for the laws at hand.

    A recipe: `for_problem` gives the `MomentumGains`.

    Parameters
    ----------
    learning_rate : float or "auto", default="auto"
        See `MomentumGains`.
    early_exaggeration : float or "auto", default="auto"
        Weight of the attraction in the first 150 iterations (in the first half of a run of fewer than 300); 1 for
        none. "auto" is 12 for the cross-entropy and 1 for the effective one. Under a latent kernel that is flat at
        zero there is none: exaggerated attraction would collapse the embedding for good.

    Raises
    ------
    TypeError, ValueError
        When a number is out of its range.

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
        """Return the optimizer for a law of the embedding, a coupling and a number of iterations."""
        wanted = coupling.suited_exaggeration if self.early_exaggeration == "auto" else self.early_exaggeration
        factor = 1.0 if flat_at_zero(latent) else float(wanted)
        length = min(EXAGGERATION_ITERATIONS, max_iter // 2) if factor > 1 else 0
        momentum = _MOMENTUM if latent.prior.normalized else _MOMENTUM_IF_STIFF
        return MomentumGains(self.learning_rate, momentum=momentum, exaggeration=Exaggeration(factor, length))
