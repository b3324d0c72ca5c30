"""Charges on a regular grid by cubic B-splines, and potentials back from it; near pairs by cell lists."""

from __future__ import annotations

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit


@jit
def _weights(t, w):
    """Fill w with the four B-splines that are not zero at fraction t of a cell."""
    r = 1.0 - t
    w[0] = r * r * r / 6.0
    w[1] = (t * t * (3.0 * t - 6.0) + 4.0) / 6.0
    w[2] = (r * r * (3.0 * r - 6.0) + 4.0) / 6.0
    w[3] = t * t * t / 6.0


@jit
def _slopes(t, w):
    """Fill w with their derivatives in t."""
    r = 1.0 - t
    w[0] = -0.5 * r * r
    w[1] = t * (1.5 * t - 2.0)
    w[2] = r * (2.0 - 1.5 * r)
    w[3] = 0.5 * t * t


@jit
def _overlaps(u, w, out):
    """Fill out[m] with Σ u_k w_p over nodes that lie m apart in either direction."""
    for m in range(4):
        total = 0.0
        for k in range(4 - m):
            total += u[k] * w[k + m]
            if m > 0:
                total += u[k + m] * w[k]
        out[m] = total


@jit
def sort_by_bin(bins, n_bins, order, starts):
    """Fill `order` with the points bin by bin, each in its first order, and `starts` with where the bins begin."""
    starts[:] = 0
    for i in range(bins.size):
        starts[bins[i] + 1] += 1
    for b in range(n_bins):
        starts[b + 1] += starts[b]
    place = starts[:-1].copy()
    for i in range(bins.size):
        order[place[bins[i]]] = i
        place[bins[i]] += 1


@jit
def spread(start, stop, parity, rows_per_band, order, row_starts, x, y, charges, grid):
    """Add the charges of the points in every second band of grid rows to the grid.

    A band is wider than a spline's reach, so bands of one parity write to rows of their own.
    """
    wx = np.empty(4)
    wy = np.empty(4)
    n_rows = row_starts.size - 1
    for half in range(start, stop):
        band = 2 * half + parity
        first = row_starts[min(band * rows_per_band, n_rows)]
        last = row_starts[min((band + 1) * rows_per_band, n_rows)]
        for s in range(first, last):
            i = order[s]
            a = int(np.floor(x[i]))
            b = int(np.floor(y[i]))
            _weights(x[i] - a, wx)
            _weights(y[i] - b, wy)
            for k in range(4):
                c = charges[i] * wx[k]
                for m in range(4):
                    grid[a - 1 + k, b - 1 + m] += c * wy[m]


@jit
def gather(start, stop, order, x, y, charges, grid, near_origin, spacing, potential, gradient):
    """Read the potential and its gradient off the grid, without what a point's own charge put there.

    `near_origin` is the kernel as the grid has it, at offsets 0 to 3 in either direction.
    """
    wx = np.empty(4)
    wy = np.empty(4)
    vx = np.empty(4)
    vy = np.empty(4)
    xx = np.empty(4)
    yy = np.empty(4)
    vxx = np.empty(4)
    vyy = np.empty(4)
    n_dims = gradient.shape[1]
    for s in range(start, stop):
        i = order[s]
        a = int(np.floor(x[i]))
        b = int(np.floor(y[i]))
        _weights(x[i] - a, wx)
        _weights(y[i] - b, wy)
        _slopes(x[i] - a, vx)
        _slopes(y[i] - b, vy)
        value = 0.0
        along = 0.0
        across = 0.0
        for k in range(4):
            here = 0.0
            turned = 0.0
            for m in range(4):
                here += wy[m] * grid[a - 1 + k, b - 1 + m]
                turned += vy[m] * grid[a - 1 + k, b - 1 + m]
            value += wx[k] * here
            along += vx[k] * here
            across += wx[k] * turned
        _overlaps(wx, wx, xx)
        _overlaps(wy, wy, yy)
        _overlaps(vx, wx, vxx)
        _overlaps(vy, wy, vyy)
        own = 0.0
        own_along = 0.0
        own_across = 0.0
        for k in range(4):
            here = 0.0
            turned = 0.0
            for m in range(4):
                here += yy[m] * near_origin[k, m]
                turned += vyy[m] * near_origin[k, m]
            own += xx[k] * here
            own_along += vxx[k] * here
            own_across += xx[k] * turned
        potential[i] = value - charges[i] * own
        gradient[i, 0] = (along - charges[i] * own_along) / spacing
        if n_dims > 1:
            gradient[i, 1] = (across - charges[i] * own_across) / spacing


@jit
def add_near_pairs(start, stop, Z, charges, radial, cap, order, cells, starts, shape, potential, gradient):
    """Add, over pairs nearer than the cap's edge, what the radial function has and its smooth cap has not.

    The cap is the polynomial Σ_k cap[k + 1] (s − cap[0])^k in s = d², for s below cap[0].
    """
    n_dims = Z.shape[1]
    edge = cap[0]
    for s in range(start, stop):
        i = order[s]
        row = cells[i] // shape[1]
        column = cells[i] % shape[1]
        total = 0.0
        fx = 0.0
        fy = 0.0
        for r in range(max(row - 1, 0), min(row + 2, shape[0])):
            first = starts[r * shape[1] + max(column - 1, 0)]
            last = starts[r * shape[1] + min(column + 2, shape[1])]
            for t in range(first, last):
                j = order[t]
                dx = Z[i, 0] - Z[j, 0]
                dy = Z[i, 1] - Z[j, 1] if n_dims > 1 else 0.0
                d2 = dx * dx + dy * dy
                if d2 < edge and j != i:
                    u = d2 - edge
                    smooth = cap[1] + u * (cap[2] + u * (cap[3] + u * cap[4]))
                    tangent = cap[2] + u * (2.0 * cap[3] + u * 3.0 * cap[4])
                    total += charges[j] * (radial.potential(d2) - smooth)
                    force = 2.0 * charges[j] * (radial.slope(d2) - tangent)
                    fx += force * dx
                    fy += force * dy
        potential[i] += total
        gradient[i, 0] += fx
        if n_dims > 1:
            gradient[i, 1] += fy
