"""Charges spread on a grid by cubic B-splines, and potentials read from it."""

import numpy as np

from graphcouple._numba.jit import jit


@jit
def _weights(t):
    """Return the four cubic B-splines that are not zero at fraction t of a cell."""
    r = 1.0 - t
    return (
        r * r * r / 6.0,
        (t * t * (3.0 * t - 6.0) + 4.0) / 6.0,
        (r * r * (3.0 * r - 6.0) + 4.0) / 6.0,
        t * t * t / 6.0,
    )


@jit
def _slopes(t):
    """Return the derivatives of these splines in t."""
    r = 1.0 - t
    return -0.5 * r * r, t * (1.5 * t - 2.0), r * (2.0 - 1.5 * r), 0.5 * t * t


@jit
def _interpolate(w, grid, a, column):
    """Return Σ_k w_k grid[a − 1 + k, column]."""
    return w[0] * grid[a - 1, column] + w[1] * grid[a, column] + w[2] * grid[a + 1, column] + w[3] * grid[a + 2, column]


@jit
def _row(c, p, s):
    """Return Σ_q c[p, q] s^q."""
    return ((c[p, 3] * s + c[p, 2]) * s + c[p, 1]) * s + c[p, 0]


@jit
def _row_slope(c, p, s):
    return (3.0 * c[p, 3] * s + 2.0 * c[p, 2]) * s + c[p, 1]


@jit
def grid_rows(start, stop, Z, origin, spacing, rows):
    """Fill the grid row just below each point."""
    for i in range(start, stop):
        rows[i] = int((Z[i, 0] - origin[0]) / spacing)


@jit
def sort_by_bin(bins, n_bins, order, starts):
    """Fill `order` with the points bin by bin, in their original order, and `starts` with the start of each bin."""
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
def _add_charge(x, y, charge, grid):
    """Add a charge at (x, y), in nodes, to the grid."""
    a, b = int(x), int(y)
    wx = _weights(x - a)
    wy = _weights(y - b)
    for k in range(4):
        c = charge * wx[k]
        for m in range(4):
            grid[a - 1 + k, b - 1 + m] += c * wy[m]


@jit
def spread(start, stop, parity, rows_per_band, order, row_starts, Z, origin, spacing, charges, grid):
    """Add the charges of the points in every second band of grid rows to the grid.

    A band is wider than a spline's reach, so bands of the same parity write to different rows.
    One-dimensional points lie on column `origin[1]`.
    """
    n_rows = row_starts.size - 1
    flat = Z.shape[1] == 1
    for half in range(start, stop):
        band = 2 * half + parity
        first = row_starts[min(band * rows_per_band, n_rows)]
        last = row_starts[min((band + 1) * rows_per_band, n_rows)]
        for s in range(first, last):
            i = order[s]
            x = (Z[i, 0] - origin[0]) / spacing
            y = origin[1] if flat else (Z[i, 1] - origin[1]) / spacing
            _add_charge(x, y, charges[i], grid)


@jit
def spread_inside(start, stop, Z, origin, spacing, charges, grid):
    """Add the charges of points to a grid, except where a spline reaches beyond the grid's border."""
    for i in range(start, stop):
        x = (Z[i, 0] - origin[0]) / spacing
        y = (Z[i, 1] - origin[1]) / spacing
        if 1.0 <= x < grid.shape[0] - 2 and 1.0 <= y < grid.shape[1] - 2:
            _add_charge(x, y, charges[i], grid)


@jit
def _read(grid, a, b, t, u):
    """Return the value of the splines at fraction (t, u) of the cell beyond node (a, b), and its slopes by cell."""
    wx = _weights(t)
    wy = _weights(u)
    vx = _slopes(t)
    vy = _slopes(u)
    values = (
        _interpolate(wx, grid, a, b - 1),
        _interpolate(wx, grid, a, b),
        _interpolate(wx, grid, a, b + 1),
        _interpolate(wx, grid, a, b + 2),
    )
    slope_x = (
        _interpolate(vx, grid, a, b - 1) * wy[0]
        + _interpolate(vx, grid, a, b) * wy[1]
        + _interpolate(vx, grid, a, b + 1) * wy[2]
        + _interpolate(vx, grid, a, b + 2) * wy[3]
    )
    value = values[0] * wy[0] + values[1] * wy[1] + values[2] * wy[2] + values[3] * wy[3]
    slope_y = values[0] * vy[0] + values[1] * vy[1] + values[2] * vy[2] + values[3] * vy[3]
    return value, slope_x, slope_y


@jit
def add_tiles_at(start, stop, places, low, side, width, numbers, spacing, fields, potential, gradient):
    """Add the tiles' fields at places. `numbers` are the tiles, ascending; a field begins one node before its tile."""
    for i in range(start, stop):
        x = (places[i, 0] - low[0]) / side
        y = (places[i, 1] - low[1]) / side
        row, column = int(x), int(y)
        number = (row + 1) * width + column + 1
        first = np.searchsorted(numbers, number)
        if first == numbers.size or numbers[first] != number:
            continue
        x = (x - row) * side / spacing + 1.0
        y = (y - column) * side / spacing + 1.0
        a, b = int(x), int(y)
        for k in range(fields.shape[1]):
            value, slope_x, slope_y = _read(fields[first, k], a, b, x - a, y - b)
            potential[k, i] += value
            gradient[k, i, 0] += slope_x / spacing
            gradient[k, i, 1] += slope_y / spacing


@jit
def gather(start, stop, Z, origin, spacing, charges, grid, own, potential, gradient):
    """Interpolate the potential and its gradient from the grid, without the contribution of a point's own charge.

    A unit charge's own potential is Σ_pq own[p, q] (t − ½)^2p (u − ½)^2q at the fractions (t, u) of a cell. Spreading
    and gathering contribute equally to its gradient, so half of the gradient belongs to gathering.
    """
    flat = Z.shape[1] == 1
    for i in range(start, stop):
        x = (Z[i, 0] - origin[0]) / spacing
        y = origin[1] if flat else (Z[i, 1] - origin[1]) / spacing
        a, b = int(x), int(y)
        t, u = x - a, y - b
        value, slope_x, slope_y = _read(grid, a, b, t, u)
        p, q = t - 0.5, u - 0.5
        pp, qq = p * p, q * q
        o0, o1 = _row(own, 0, qq), _row(own, 1, qq)
        o2, o3 = _row(own, 2, qq), _row(own, 3, qq)
        c = charges[i]
        potential[i] = value - c * (((o3 * pp + o2) * pp + o1) * pp + o0)
        gradient[i, 0] = (slope_x - c * p * ((3.0 * o3 * pp + 2.0 * o2) * pp + o1)) / spacing
        if not flat:
            s0, s1 = _row_slope(own, 0, qq), _row_slope(own, 1, qq)
            s2, s3 = _row_slope(own, 2, qq), _row_slope(own, 3, qq)
            gradient[i, 1] = (slope_y - c * q * (((s3 * pp + s2) * pp + s1) * pp + s0)) / spacing
