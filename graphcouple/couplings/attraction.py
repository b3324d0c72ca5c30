"""The attraction in an objective: the part that early exaggeration strengthens, and by which starts are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcouple.graphs import FloatArray

if TYPE_CHECKING:
    from graphcouple.couplings.base import Objective


def _nothing() -> Any:
    return None


def _no_limit(Z: FloatArray) -> float:
    return np.inf


@dataclass(frozen=True, kw_only=True)
class Attraction:
    """How an objective draws points together.

    Parameters
    ----------
    source : Objective
        What attracts: the objective, without terms that have no attraction.
    times : callable
        ``times(factor)`` returns the objective with its attraction `factor` times as strong, as it is while the
        attraction is exaggerated. Terms that wait until exaggeration ends are not in it.
    edges : callable, optional
        Returns the edges that attract, as a symmetric array or csr matrix of weights; None, the default, if there are
        none. `Descent` smooths a rough start by them, and `LBFGS` begins with their stiffness.
    limit : callable, optional
        ``limit(Z)`` returns the factor from which the exaggerated loss has no lower bound near `Z`; inf by default.
    confinement : callable, optional
        Returns the objective that `Descent` adds to bound the size of the map, where the attraction leaves components
        free to move apart; None, the default, if a minimum has a size without it.
    shrinks_noise : bool, default=False
        Whether noise shrinks under the objective itself, so that noise cannot measure how much attraction it bears.
    fades : bool, default=False
        Whether the loss has an upper bound, so that points far apart feel no pull.
    """

    source: Objective
    times: Callable[[float], Objective]
    edges: Callable[[], Any] = _nothing
    limit: Callable[[FloatArray], float] = _no_limit
    confinement: Callable[[], Objective | None] = _nothing
    shrinks_noise: bool = False
    fades: bool = False
