"""The input's edges at the scale of the map, where a neighbour embedding barely feels their length.

The attraction of a heavy-tailed kernel fades with distance: a neighbour half a map away pulls less than a near one. So
whatever arranges a map at large also tears it. At the scale of the whole, an edge has the odds D²/d² (see
`large_scale`). D is √2 times the mean distance of the points from their mean. With a root mean square in place of the
mean, one distant point would make all other edges count as short. The cross-entropy of the input's edges is

    T(Z) = n⁻¹ Σ_ij m_ij log(1 + d²_ij/D²),

with m the mean edges of the input's graph, multiplied so that they add to n. It does not depend on the units of Z.
An edge pulls the more, the longer it is, up to the length of the map; short edges count next to nothing.
"""

from __future__ import annotations

import numpy as np

from graphcouple._validation import centred, check_embedding
from graphcouple.couplings.base import Objective
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Student
from graphcouple.laws.priors import RandomGraph
from graphcouple.summation.edges import EdgeSum
from graphcouple.summation.radials import LogKernel


class LongEdges(Objective):
    """T(Z), the cross-entropy of the input's edges under a law at the scale of the map; see the module's text.

    Edges whose mean is below the average of their row are left out: the other edges hold most of the mass, and take
    a fraction of the time.

    Parameters
    ----------
    posterior : RandomGraph
    n_jobs : int or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> posterior = gc.TSNE().models(150)[0].posterior(X)
    >>> apart = X[:, 2:] + [[10.0, 0.0]] * (np.arange(150) % 2)[:, None]
    >>> edges = gc.couplings.LongEdges(posterior)
    >>> bool(edges.value(X[:, 2:]) < 0.2 * edges.value(apart))
    True
    """

    lower_bound = 0.0

    def __init__(self, posterior: RandomGraph, n_jobs: int | None = None) -> None:
        means, support = posterior.edge_means, posterior.support
        counts = np.diff(support.indptr)
        sums = np.bincount(support.rows, means, posterior.n_nodes)
        keep = means >= (sums / np.maximum(counts, 1))[support.rows] * (1.0 - 1e-9)
        means = means[keep]
        means = means * (posterior.n_nodes / (float(means.sum()) or 1.0))
        self._edges = EdgeSum(support.select(keep), means, LogKernel(Student()), n_jobs)
        self.n_points = posterior.n_nodes

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return T and its gradient."""
        points = check_embedding(Z, n_points=self.n_points)
        z = centred(points)
        away = np.sqrt(np.square(z, dtype=np.float64).sum(axis=1))
        size = float(np.sqrt(2.0) * away.mean())
        if not size > 0:
            return 0.0, np.zeros_like(points)
        outwards = z / np.maximum(away, 1e-300)[:, None]
        z /= size
        value, slopes = self._edges.evaluate(z)
        # The unit is the size of the map, so scaling the map changes nothing.
        size_gradient = np.sqrt(2.0) / len(z) * (outwards - outwards.mean(axis=0))
        slopes = slopes - float((slopes * z).sum()) * size_gradient
        return -value / len(z), (slopes / (-len(z) * size)).astype(points.dtype, copy=False)
