"""Tiles of a fine grid where points are: forces beside exact sums, on pages that are mostly empty."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import graphcouple as gc
from graphcouple.summation import (
    Auto,
    KernelValue,
    LogOnePlusKernel,
    ParticleMesh,
    near_cells,
    near_pairs,
    particle_mesh,
    tiles,
)
from graphcouple.summation.fields import ExactField

STUDENT = KernelValue(gc.Student())
UMAP = LogOnePlusKernel(gc.UMAP().models(100)[1].kernel)


def page(n_clusters, page_width, cluster_width, n=20_000):
    rng = np.random.default_rng(0)
    centres = page_width * rng.normal(size=(n_clusters, 2))
    return centres[rng.integers(0, n_clusters, n)] + cluster_width * rng.normal(size=(n, 2))


@pytest.fixture
def in_tiles(monkeypatch):
    """Three grids, the finest of which resolves Student's kernel."""
    monkeypatch.setattr(particle_mesh, "tiled_spacings", lambda *_: [1.0 / 3.0, 4.0 / 3.0, 16.0 / 3.0])


def errors_of(sums, Z, radial, charges):
    """Return the largest error of potentials and forces on some points, relative to the size of all."""
    rows = np.arange(0, len(Z), 97)
    exact, forces = ExactField(Z.astype(np.float64), radial, charges).at(Z[rows].astype(np.float64))
    exact -= charges[:, rows] * radial.potential(np.zeros(1))
    potential, gradient = sums
    return (
        np.abs(potential[:, rows] - exact).max() / np.abs(exact).max(),
        np.linalg.norm(gradient[:, rows] - forces) / np.linalg.norm(forces),
    )


PAGES = {
    "clusters wider than a tile": (8, 3000.0, 30.0),
    "clusters of a few nodes": (30, 3000.0, 1.0),
    "two far places": (2, 3000.0, 3.0),
    "connected": (1, 1.0, 300.0),
}


RADIALS = {"student": STUDENT, "umap": UMAP}
FAST = (("clusters wider than a tile", "umap"), ("clusters of a few nodes", "student"), ("connected", "student"))


@pytest.mark.parametrize(
    ("name", "radial"),
    [
        pytest.param(
            name, RADIALS[radial], marks=[] if (name, radial) in FAST else pytest.mark.nightly, id=f"{name}-{radial}"
        )
        for name in PAGES
        for radial in RADIALS
    ],
)
def test_forces_are_as_accurate_as_of_a_grid_of_the_whole_page(name, radial, in_tiles):
    dtype = np.float32 if (radial is UMAP) == (name == "connected") else np.float64
    Z, mesh = page(*PAGES[name]).astype(dtype), ParticleMesh(n_jobs=1)
    charges = np.stack([np.ones(len(Z)), 1.0 + np.arange(len(Z)) % 3])
    grid = mesh._grid(Z, radial)
    assert grid.coarse is not None
    sums = mesh.potentials(Z, radial, charges)
    potential_error, force_error = errors_of(sums, Z, radial, charges)
    assert potential_error < 2e-3
    assert force_error < 1e-2
    # Bits do not depend on threads.
    for one, two in zip(sums, ParticleMesh(2).potentials(Z, radial, charges), strict=True):
        np.testing.assert_array_equal(one, two)


def test_pairs_in_sparse_tiles_are_summed_as_transforms_sum_them(in_tiles, monkeypatch):
    """Sums differ by the errors of transforms and tables alone."""
    Z = page(*PAGES["clusters of a few nodes"])
    charges, found = np.stack([np.ones(len(Z)), 1.0 + np.arange(len(Z)) % 3]), []
    for most in (0, 10**12, tiles.SPARSE_PAIRS):
        monkeypatch.setattr(tiles, "SPARSE_PAIRS", most)
        found.append(ParticleMesh(1).potentials(Z, UMAP, charges))
        assert max(errors_of(found[-1], Z, UMAP, charges)) < 3e-3
    assert not np.array_equal(found[0][0], found[1][0])
    assert not np.array_equal(found[1][0], found[2][0])
    for one, two in zip(found[2], ParticleMesh(2).potentials(Z, UMAP, charges), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", [name for name in PAGES if name != "connected"])
def test_fields_of_tiles_are_exact_sums_at_any_place(name, in_tiles, rng):
    Z = page(*PAGES[name])
    charges = np.stack([np.ones(len(Z)), 1.0 + np.arange(len(Z)) % 3])
    field = ParticleMesh().field(Z, STUDENT, charges)
    assert len(field._tiles) == 2
    # Near points, between clusters, and beyond all of them.
    places = np.concatenate([Z[::200] + rng.normal(size=(100, 2)), 2.0 * Z[7::400], rng.normal(size=(50, 2)) * 100.0])
    exact, forces = ExactField(Z, STUDENT, charges).at(places)
    potential, gradient = field.at(places)
    assert np.abs(potential - exact).max() < 2e-3 * np.abs(exact).max()
    assert np.linalg.norm(gradient - forces) < 1e-2 * np.linalg.norm(forces)
    np.testing.assert_array_equal(field.at(places[40:60])[0], potential[:, 40:60])


def test_very_many_tiles_are_sorted_to_the_same_bits(in_tiles, monkeypatch):
    Z, mesh = page(*PAGES["clusters of a few nodes"]), ParticleMesh()
    counted = mesh.potential(Z, STUDENT)
    monkeypatch.setattr("graphcouple.summation.tiles._MOST_BINS", 0)
    for one, other in zip(mesh.potential(Z, STUDENT), counted, strict=True):
        np.testing.assert_array_equal(one, other)


FOLDED_PAGES = {
    "clusters": lambda rng: page(30, 30.0, 0.5, n=3000),
    "dots on a huge page": lambda rng: np.concatenate([page(40, 1e5, 0.5, n=3000), [[3e5, 0.0], [3e5, 0.1]]]),
    "diagonal": lambda rng: np.linspace(0.0, 30.0, 400)[:, None] * np.ones(2),
    "scattered in couples": lambda rng: (
        np.repeat(rng.uniform(0.0, 1e6, (500, 2)), 2, axis=0) + rng.uniform(0, 0.1, (1000, 2))
    ),
    "long and thin": lambda rng: np.stack(
        [np.cumsum(rng.exponential(20.0, 600) ** 2), rng.uniform(0, 0.2, 600)], axis=1
    ),
}


@pytest.mark.parametrize("name", FOLDED_PAGES)
def test_folded_pages_have_the_same_near_pairs_in_few_cells(name, rng, monkeypatch):
    Z, edge, most = FOLDED_PAGES[name](rng), 0.0125, 2**12
    monkeypatch.setattr(near_cells, "_MOST_CELLS", most)
    table, sets = np.tile([1.0, 0.0, 0.5, 0.0], (near_pairs.LARGEST, 1)), np.ones((1, len(Z)))
    cells = near_cells.NearCells(Z, sets, edge, table)
    assert cells.is_folded
    assert cells.starts.size <= most + 1
    potential, gradient = np.zeros((1, len(Z))), np.zeros((1, len(Z), 2))
    near_pairs.add_near(Z, sets, edge, table, 1, True, potential, gradient)
    near = cdist(Z, Z, "sqeuclidean") < edge
    assert near.sum() > len(Z)
    np.testing.assert_array_equal(potential[0], 0.5 * (near.sum(axis=1) - 1.0))
    np.testing.assert_allclose(gradient[0], 2.0 * (near[..., None] * (Z[:, None] - Z)).sum(axis=1), atol=1e-6)
    potential[:], gradient[:] = 0.0, 0.0
    places = np.concatenate([Z[::7] + 0.01, Z[:5] - 1e4])
    potential, gradient = np.zeros((1, len(places))), np.zeros((1, len(places), 2))
    cells.add(places, 1, potential, gradient)
    np.testing.assert_array_equal(potential[0], 0.5 * (cdist(places, Z, "sqeuclidean") < edge).sum(axis=1))


@pytest.mark.parametrize(("page_width", "width"), [(5000.0, 0.3), (5000.0, 0.01), (60.0, 0.05)])
def test_very_many_points_in_two_places_need_no_tree(page_width, width):
    Z = page(2, page_width, width, n=60_000)
    assert ParticleMesh()._grid(Z, STUDENT).coarse is not None
    summation = Auto().for_points(Z, STUDENT)
    assert isinstance(summation, ParticleMesh)
    charges = np.ones((1, len(Z)))
    assert errors_of(summation.potentials(Z, STUDENT, charges), Z, STUDENT, charges)[1] < 1e-2


def test_fields_of_too_many_tiles_are_not_kept(in_tiles):
    Z = page(*PAGES["connected"])
    assert not ParticleMesh().field(Z, STUDENT, np.ones((1, len(Z))))._tiles


def test_few_points_and_full_pages_have_no_tiles():
    assert ParticleMesh()._grid(page(30, 3000.0, 30.0)[:19_999], STUDENT).coarse is None
    assert ParticleMesh()._grid(page(1, 1.0, 60.0, n=60_000), STUDENT).coarse is None
