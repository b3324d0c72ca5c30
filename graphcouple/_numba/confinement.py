"""Moments of the distances of points from their mean, block by block: the same bits for any number of threads."""

from graphcouple._numba.jit import jit


@jit
def _sq_radius(Z, i, mean):
    total = 0.0
    for a in range(Z.shape[1]):
        total += (Z[i, a] - mean[a]) * (Z[i, a] - mean[a])
    return total


@jit
def fill_farthest(start, stop, size, Z, mean, farthest):
    """Fill the largest ‖z_i − mean‖² of each block of `size` points."""
    for block in range(start, stop):
        farthest[block] = 0.0
        for i in range(block * size, min((block + 1) * size, Z.shape[0])):
            # A distance that is not a number stays.
            if not _sq_radius(Z, i, mean) <= farthest[block]:
                farthest[block] = _sq_radius(Z, i, mean)


@jit
def fill_moments(start, stop, size, Z, mean, widest, power, weights, moments):
    """Fill Σ w_i s_i^power and Σ w_i s_i^(power − 1) (z_i − mean) of each block, with s_i = ‖z_i − mean‖²/widest."""
    for block in range(start, stop):
        moments[block] = 0.0
        for i in range(block * size, min((block + 1) * size, Z.shape[0])):
            share = _sq_radius(Z, i, mean) / widest
            weight = 1.0 if weights is None else weights[i]
            for _ in range(power - 1):
                weight *= share
            moments[block, 0] += weight * share
            for a in range(Z.shape[1]):
                moments[block, a + 1] += weight * (Z[i, a] - mean[a])


@jit
def fill_pull(start, stop, Z, mean, widest, power, weights, centre, strength, gradient):
    """Fill strength · w_i [s_i^(power − 1) (z_i − mean) − centre]."""
    for i in range(start, stop):
        weight = strength if weights is None else strength * weights[i]
        share, steep = _sq_radius(Z, i, mean) / widest, 1.0
        for _ in range(power - 1):
            steep *= share
        for a in range(Z.shape[1]):
            gradient[i, a] = weight * (steep * (Z[i, a] - mean[a]) - centre[a])
