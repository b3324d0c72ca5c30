"""A summation: plain NumPy, all pairs at once."""

import numpy as np

from graphcouple import extend


@extend.register_summation("numpy")
class Plain(extend.Summation):
    def potential(self, Z, radial, charges=None, *, with_potential=True, with_gradient=True):
        c = np.ones(len(Z)) if charges is None else np.asarray(charges, dtype=np.float64)
        Y = Z.astype(np.float64)
        difference = Y[:, None] - Y
        sq_dist = (difference**2).sum(-1)
        others = ~np.eye(len(Z), dtype=bool)
        # The diagonal does not count, and is where formulas may be singular.
        np.fill_diagonal(sq_dist, 1.0)
        potential = np.where(others, radial.potential(sq_dist), 0.0) @ c
        slope = np.where(others, radial.slope(sq_dist), 0.0) * c
        return potential, 2.0 * np.einsum("ij,ijk->ik", slope, difference)
