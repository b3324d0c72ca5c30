"""A term: labels as a pull of every class towards its own mean. It reads y."""

from dataclasses import dataclass

import numpy as np

from graphcouple import extend


class Cohesion(extend.Objective):
    """½ Σ_i ‖z_i − mean of its class‖²."""

    def __init__(self, y):
        _, self.codes, self.counts = np.unique(y, return_inverse=True, return_counts=True)

    @property
    def n_points(self):
        return len(self.codes)

    @property
    def lower_bound(self):
        return 0.0

    def _around(self, Z):
        Y = Z.astype(np.float64)
        means = np.stack([np.bincount(self.codes, weights=column) for column in Y.T], axis=1) / self.counts[:, None]
        return Y - means[self.codes]

    def value(self, Z):
        return 0.5 * float((self._around(Z) ** 2).sum())

    def value_and_grad(self, Z):
        return self.value(Z), self._around(Z).astype(Z.dtype)

    def curvature(self, Z):
        return 1.0


@dataclass(frozen=True)
class ClassCohesion(extend.Term):
    weight: float = 1.0

    def bind(self, problem):
        if problem.y is None:
            raise ValueError("ClassCohesion needs labels: call fit(X, y).")
        return Cohesion(problem.y)
