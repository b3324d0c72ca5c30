"""Barnes–Hut: far groups of points act as one charge at their centre."""

from __future__ import annotations

import numpy as np

from graphcouple._numba.blocks import in_blocks
from graphcouple._numba.threads import over_rows
from graphcouple._numba.tree import LEVELS, build, summarise, walk
from graphcouple._support.validation import check_integer, check_positive
from graphcouple.graphs import FloatArray
from graphcouple.summation.base import Summation, register
from graphcouple.summation.near_cells import morton_keys
from graphcouple.summation.particle_mesh import MESH_FROM
from graphcouple.summation.radials import RadialFunction


@register("barnes_hut")
class BarnesHut(Summation):
    """Sums over all pairs in O(n log n) by a tree of cells; embeddings of two or three dimensions.

    A cell whose diagonal s is small compared with its distance d, s² ≤ angle² (d² + ℓ²/4), counts as one charge at
    its centre of charge. ℓ is the length over which the radial function varies, or 0 if it is not smooth: a cell much
    smaller than ℓ need not be opened, however near it is. Any radial function works, including singular ones.

    Potentials below `resolution`, of points far from all others, are less accurate. Prior D needs their
    logarithms, and computes them by exact sums.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core. The result is bitwise the same for any number.
    angle : float, default=0.35
        Opening angle; the error of forces decreases with its square.
    leaf_size : int, default=8
        Cells of at most this many points are not split.

    Raises
    ------
    ValueError
        When the embedding has one dimension, or more than three.

    References
    ----------
    Barnes and Hut (1986), A hierarchical O(N log N) force-calculation algorithm; van der Maaten (2014) for t-SNE.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> from graphcouple.summation import BarnesHut, Exact, KernelValue
    >>> Z = 10.0 * np.random.default_rng(0).normal(size=(500, 3))
    >>> tree, exact = (s.potential(Z, KernelValue(gc.Student())) for s in (BarnesHut(), Exact()))
    >>> bool(np.linalg.norm(tree[1] - exact[1]) < 1e-2 * np.linalg.norm(exact[1]))
    True
    """

    single_from = MESH_FROM

    def __init__(self, n_jobs: int | None = None, *, angle: float = 0.35, leaf_size: int = 8) -> None:
        super().__init__(n_jobs)
        self.angle = check_positive("angle", angle)
        self.resolution = 1e-3 * (self.angle / 0.35) ** 2
        self.leaf_size = check_integer("leaf_size", leaf_size, 1)

    def potential(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray | None = None, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        n, n_dims = Z.shape
        if not 2 <= n_dims <= 3:
            remedy = "'particle_mesh' or 'exact'" if n_dims == 1 else "'exact'"
            raise ValueError(
                f"summation='barnes_hut' is for two or three dimensions, but the embedding has {n_dims}; use {remedy}."
            )
        if charges is not None and (charges < 0).any() and (charges > 0).any():
            # Cells of both signs have a dipole, which their centre of charge does not show.
            signs = (self.potential(Z, radial, np.maximum(sign * charges, 0.0), **outputs) for sign in (1.0, -1.0))
            (potential, gradient), (other, other_gradient) = signs
            return potential - other, gradient - other_gradient
        keys = morton_keys(Z, self.n_jobs)
        order = np.argsort(keys, kind="stable")
        points = np.ascontiguousarray(Z[order], dtype=np.float64)
        c = np.ones(n) if charges is None else np.ascontiguousarray(charges[order], dtype=np.float64)
        # A split makes several smaller cells, or one cell that holds all the points.
        max_cells = 2 * n + LEVELS * (n // self.leaf_size + 1) + 1
        first, last, level, child, n_children = (np.empty(max_cells, dtype=np.int32) for _ in range(5))
        n_cells = build(keys[order], n_dims, self.leaf_size, first, last, level, child, n_children)
        centre, charge, sq_size = np.empty((n_cells, n_dims)), np.empty(n_cells), np.empty(n_cells)
        summarise(n_cells, points, c, first, last, centre, charge, sq_size)
        sq_length = 0.25 * radial.length**2 if radial.smooth_at_zero else 0.0
        potential, gradient = np.empty(n), np.empty((n, n_dims))
        tree = (first, last, child, n_children, centre, charge, sq_size)
        arrays = (points, c, in_blocks(radial), self.angle**2, sq_length, *tree, potential, gradient)
        over_rows(n, self.n_jobs, walk, *arrays)
        positions = np.empty(n, dtype=np.int64)
        positions[order] = np.arange(n)
        return potential[positions], gradient[positions]
