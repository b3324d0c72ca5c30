"""A coupling of one's own: stress, Σ_ij M_ij (d⁴_ij − 2 t d²_ij + t²), whose first part attracts."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from graphcouple import extend


class Stress(extend.Objective):
    def __init__(self, means, target, strength=1.0):
        self.means, self.target, self.strength = means, target, strength

    @property
    def attracting(self):
        stronger = partial(Stress, self.means, self.target)
        return extend.Attraction(source=self, times=stronger, edges=lambda: self.means)

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
        sq_dist, t = (difference**2).sum(-1), self.target
        gradient = 4 * np.einsum("ij,ijk->ik", self.means * (self.strength * sq_dist - t), difference)
        value = 0.5 * float((self.means * (self.strength * sq_dist**2 - 2 * t * sq_dist + t**2)).sum())
        return value, gradient.astype(Z.dtype)

    def curvature(self, Z):
        return 8.0 * float(self.means.sum(axis=1).max()) * max(self.target, float((Z**2).sum(axis=1).max()))


@extend.register_coupling("stress")
@dataclass(frozen=True)
class StressCoupling(extend.Coupling):
    target: float = 1.0

    def bind(self, problem):
        means = problem.posterior.support.to_csr(problem.posterior.edge_means).toarray()
        return Stress(means + means.T, self.target)
