"""A start: points on a circle, in the order of their first coordinate."""

import numpy as np

from graphcouple import extend


@extend.register_start("circle", needs_points=True)
def circle(X, posterior, n_components, rng, n_jobs=None):
    angle = 2.0 * np.pi * np.argsort(np.argsort(X[:, 0])) / len(X)
    return np.column_stack([np.cos(angle - 0.5 * np.pi * k) for k in range(n_components)])
