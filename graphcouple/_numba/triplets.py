"""Sums over triplets of points, in a fixed number of parts, with the same bits for any number of threads."""

import numpy as np

from graphcouple._numba.jit import jit


@jit
def triplet_parts(start, stop, bounds, points, triplets, weights, value, gradient):
    """Fill Σ w a/(a + b) of each part, with a = 1 + d²_ij and b = 1 + d²_ik, and add its gradient to `gradient`."""
    n_dims = points.shape[1]
    for part in range(start, stop):
        total = 0.0
        for t in range(bounds[part], bounds[part + 1]):
            i, j, k = triplets[t, 0], triplets[t, 1], triplets[t, 2]
            near, far = 1.0, 1.0
            for a in range(n_dims):
                near += (np.float64(points[i, a]) - points[j, a]) ** 2
                far += (np.float64(points[i, a]) - points[k, a]) ** 2
            both = near + far
            total += weights[t] * near / both
            scale = 2.0 * weights[t] / (both * both)
            for a in range(n_dims):
                pull = scale * far * (np.float64(points[i, a]) - points[j, a])
                push = scale * near * (np.float64(points[i, a]) - points[k, a])
                gradient[part, i, a] += pull - push
                gradient[part, j, a] -= pull
                gradient[part, k, a] += push
        value[part] = total
