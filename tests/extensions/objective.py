"""A coupling of one's own: stress, Σ_ij M_ij (d²_ij − t)², over the input's expected edges."""

from dataclasses import dataclass

import numpy as np

from graphcouple import extend


class Stress(extend.Objective):
    def __init__(self, posterior, target):
        means = posterior.mean()
        dense = means.toarray() if hasattr(means, "toarray") else means
        self.means, self.target = dense + dense.T, target

    @property
    def n_points(self):
        return len(self.means)

    @property
    def lower_bound(self):
        return 0.0

    def value(self, Z):
        return self.value_and_grad(Z)[0]

    def value_and_grad(self, Z):
        Y = Z.astype(np.float64)
        difference = Y[:, None] - Y
        excess = (difference**2).sum(-1) - self.target
        gradient = 4 * np.einsum("ij,ijk->ik", self.means * excess, difference)
        return 0.5 * float((self.means * excess**2).sum()), gradient.astype(Z.dtype)

    def curvature(self, Z):
        return 8.0 * float(self.means.sum(axis=1).max()) * max(self.target, float((Z**2).sum(axis=1).max()))


@extend.register_coupling("stress")
@dataclass(frozen=True)
class StressCoupling(extend.Coupling):
    target: float = 1.0

    def bind(self, problem):
        return Stress(problem.posterior, self.target)
