"""Graphs of very many edges: both directions of each, single precision, and some rows at a time."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import graphcouple as gc
from graphcouple import graphs
from graphcouple.estimators import carry_out
from graphcouple.graphs import Support
from graphcouple.laws.priors import posterior
from graphcouple.neighbors import inverted_file
from graphcouple.optimize.roughness import smoothest
from graphcouple.summation import EdgeSum, LogKernel, edge_product, edges
from graphcouple.summation.directions import both_directions, either_direction

LAWS = {
    "D": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=15, search="approximate"),
    "D, both scales": gc.GraphModel(gc.Gaussian(), "D", gc.SelfTuning(5), n_neighbors=15, search="approximate"),
    "E": gc.GraphModel(gc.Gaussian(), "E", gc.Perplexity(5), n_neighbors=15, search="approximate"),
    "B": gc.GraphModel(
        gc.Odds(gc.Exponential()),
        "B",
        gc.LocalConnectivity(10),
        n_neighbors=9,
        symmetrize="threshold",
        search="approximate",
    ),
}


@pytest.fixture
def graph(rng):
    """Return a graph with mutual edges, one-way edges, loops, stored zeros and nodes without edges."""
    dense = rng.normal(size=(60, 60)) * (rng.random((60, 60)) < 0.15)
    dense[7], dense[:, 9] = 0.0, 0.0
    matrix = sp.csr_array(dense)
    matrix.data[::11] = 0.0
    return Support(matrix.indptr, matrix.indices), matrix


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(3)
    return rng.normal(size=(40, 6))[rng.integers(0, 40, 700)] + 0.4 * rng.normal(size=(700, 6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_directions_add_up_to_a_matrix_and_its_transpose(graph, dtype):
    support, matrix = graph
    before = matrix.data.astype(dtype)
    own, reverses = both_directions(support, before.copy())
    dense = sp.csr_array((before, matrix.indices, matrix.indptr), shape=matrix.shape).toarray()
    parts = [sp.csr_array((of[2], of[1].astype(int), of[0].astype(int)), shape=dense.shape) for of in (own, reverses)]
    np.testing.assert_array_equal((parts[0] + parts[1]).toarray(), dense + dense.T)
    assert own[2].dtype == reverses[2].dtype == dtype
    # No place is in both, so the second part holds the pairs that have one direction only.
    stored = [sp.csr_array((np.ones(part.nnz), part.indices, part.indptr), shape=dense.shape) for part in parts]
    assert (stored[0] + stored[1]).toarray().max() == 1.0
    alone, again = (both_directions(support, before.copy(), n_jobs) for n_jobs in (1, 3))
    for ours, theirs in zip(alone, again, strict=True):
        for one, several in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, several)


def test_a_symmetric_graph_has_no_reverses_to_add(graph):
    _, matrix = graph
    whole = sp.csr_array(abs(matrix) + abs(matrix).T)
    whole.sort_indices()
    (edges_of_both,) = both_directions(Support(whole.indptr, whole.indices), whole.data.copy())
    np.testing.assert_allclose(edges_of_both[2], 2.0 * whole.data, rtol=1e-15)


def test_either_direction_has_sorted_rows_and_keeps_stored_zeros(graph):
    support, matrix = graph
    union, values = either_direction(support, matrix.data)
    found = sp.csr_array((values, union.indices, union.indptr), shape=matrix.shape)
    np.testing.assert_allclose(found.toarray(), (matrix + matrix.T).toarray(), rtol=1e-15)
    ones = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    assert union.n_edges == (ones + ones.T).nnz
    assert all(np.all(np.diff(union.indices[a:b]) > 0) for a, b in zip(union.indptr, union.indptr[1:], strict=False))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_products_with_edges_are_those_of_scipy(dtype, n_jobs, rng):
    # Rows of more than 256 edges take several blocks.
    weights = (10.0 * rng.random((600, 600)) * (rng.random((600, 600)) < 0.7)).astype(dtype)
    weights[7] = 0
    points = rng.normal(size=(600, 3))
    for matrix in (sp.csr_array(weights), sp.csc_array(weights), weights):
        np.testing.assert_allclose(edge_product(matrix, points, n_jobs), weights @ points, rtol=1e-5, atol=1e-4)


def test_rows_of_very_many_edges_are_summed_block_by_block(rng):
    matrix, Z = sp.csr_array(rng.random((400, 400)) * (rng.random((400, 400)) < 0.9)), rng.normal(size=(400, 2))
    sums = EdgeSum(Support(matrix.indptr, matrix.indices), matrix.data, LogKernel(gc.RationalPower(1.5, 0.9)))
    value, gradient = sums.evaluate(Z)
    from_table, forces = sums.evaluate(Z.astype(np.float32))
    assert from_table == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(forces, gradient, atol=1e-4 * np.abs(gradient).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [False, True])
def test_edge_sums_of_one_way_edges_are_those_of_the_dense_matrix(graph, dtype, most, rng):
    support, matrix = graph
    if most:
        matrix = sp.csr_array(rng.random((60, 60)) * (rng.random((60, 60)) < 0.7) * ~np.eye(60, dtype=bool))
        support = Support(matrix.indptr, matrix.indices)
    Z = rng.normal(size=(60, 2)).astype(dtype)
    radial = LogKernel(gc.Student())
    value, gradient = EdgeSum(support, matrix.data, radial).evaluate(Z)
    places = Z.astype(np.float64)
    away = places[:, None] - places
    sq_dist = np.square(away).sum(axis=2)
    both = matrix.toarray() + matrix.toarray().T
    tolerance = 1e-9 if dtype is np.float64 else 3e-5
    assert value == pytest.approx(0.5 * (both * radial.potential(sq_dist)).sum(), rel=tolerance)
    exact = 2.0 * np.einsum("ij,ijk->ik", both * radial.slope(sq_dist), away)
    np.testing.assert_allclose(gradient, exact, rtol=tolerance, atol=tolerance * np.abs(exact).max())


@pytest.mark.parametrize("name", LAWS)
def test_rows_at_a_time_give_the_same_law(points, name, monkeypatch):
    def figures():
        law = LAWS[name].posterior(points)
        return law.edge_means, law.support.indices, law.entropy(), law.log_partition()

    whole = figures()
    monkeypatch.setattr(graphs, "_PART_EDGES", 100)
    assert len(list(LAWS[name].posterior(points).support.in_parts())) > 50
    for found, expected in zip(figures(), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_many_edges_are_kept_in_single_precision_and_give_the_same_law(points, name, monkeypatch):
    whole = LAWS[name].posterior(points)
    for module in (graphs, edges, inverted_file):
        monkeypatch.setattr(module, "MANY_EDGES", 1000)
    law = LAWS[name].posterior(points)
    assert law.natural_parameters.dtype == law.edge_means.dtype == np.float32
    assert law.edge_means is not law.edge_means
    np.testing.assert_array_equal(law.support.indices, whole.support.indices)
    np.testing.assert_allclose(law.edge_means, whole.edge_means, rtol=1e-5, atol=1e-12)
    assert law.entropy() == pytest.approx(whole.entropy(), rel=1e-5)
    latent = gc.GraphModel(gc.Student(), "B" if name == "B" else "E")
    Z = points[:, :2]
    found, expected = (gc.CrossEntropy(of, latent) for of in (law, whole))
    assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-5)
    assert found.value(Z) == pytest.approx(expected.value(Z), rel=1e-6)
    np.testing.assert_allclose(smoothest(found, Z, 10), smoothest(expected, Z, 10), atol=1e-4 * Z.std())


def test_points_in_units_that_single_precision_cannot_square_stay_in_double(points, monkeypatch):
    monkeypatch.setattr(inverted_file, "MANY_EDGES", 1000)
    near = [gc.neighbors.nearest_neighbors(points * unit, 9, search="approximate") for unit in (1.0, 1e-40)]
    assert [sq_dist.dtype for _, sq_dist in near] == [np.float32, np.float64]
    assert (near[1][1] > 0).all()


def test_new_rows_have_the_same_distances_however_many_are_searched_together(points, monkeypatch):
    monkeypatch.setattr(inverted_file, "MANY_EDGES", 1000)
    index = gc.neighbors.InvertedFile(points, 9)
    indices, sq_dist = index.of_new(points[:150] + 0.1)
    parts = [index.of_new(points[a : a + 50] + 0.1) for a in (0, 50, 100)]
    np.testing.assert_array_equal(indices, np.concatenate([part[0] for part in parts]))
    np.testing.assert_array_equal(sq_dist, np.concatenate([part[1] for part in parts]))


@pytest.mark.parametrize("method", [gc.TSNE, gc.SNE, gc.LargeVis])
def test_very_many_parameters_are_dropped_and_computed_again_when_asked_for(method, points, monkeypatch):
    monkeypatch.setattr(graphs, "MANY_EDGES", 100)
    monkeypatch.setattr(posterior, "MANY_EDGES", 100)
    searches = []
    search = gc.GraphModel.edges_among
    monkeypatch.setattr(gc.GraphModel, "edges_among", lambda *a: searches.append(1) or search(*a))
    model = method(perplexity=5, max_iter=30, random_state=0, n_neighbors=15).fit(points)
    assert len(searches) == 1
    law = model.posterior_
    assert law.recompute is not None
    entropy = law.entropy()
    assert len(searches) == 2
    kept = model.sentence.input.posterior(points)
    assert entropy == kept.entropy()
    again = gc.GraphCoupling(**model.sentence.replace(input=kept)).fit(points)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    assert again.loss_ == model.loss_


def test_a_law_that_can_be_computed_again_goes_to_other_processes(points):
    law = gc.TSNE(perplexity=5, max_iter=5, n_neighbors=15).fit(points).posterior_
    assert law.recompute is not None
    copied = pickle.loads(pickle.dumps(law))
    assert copied.entropy() == law.entropy()


@pytest.mark.parametrize("name", LAWS)
def test_a_renumbered_law_is_the_law_of_the_points_in_another_order(points, name, rng):
    order = rng.permutation(len(points)).astype(np.int32)
    expected = LAWS[name].posterior(points).mean()[order][:, order].toarray()
    law = LAWS[name].posterior(points).renumbered(order)
    assert all((np.diff(row) > 0).all() for row in np.split(law.support.indices, law.support.indptr[1:-1]))
    np.testing.assert_allclose(law.mean().toarray(), expected, rtol=1e-12)
    assert law.unordered == (name == "B")


# More iterations would let rounding grow: two threads of BLAS round sums of rows in another order.
def searched_in_lists(method, **parameters):
    stated = method(random_state=0, max_iter=6, **parameters).sentence
    wanted = {
        "search": "approximate",
        "n_neighbors": 100 if stated.input.n_neighbors == "auto" else stated.input.n_neighbors,
    }
    return gc.GraphCoupling(**stated.replace(input=replace(stated.input, **wanted)))


@pytest.fixture
def numbered_from_100(monkeypatch):
    """Let a hundred points be many, in lists of fifty."""
    monkeypatch.setattr(carry_out, "_MANY_POINTS", 100)
    monkeypatch.setattr(inverted_file, "_POINTS_A_LIST", 50)


@pytest.mark.parametrize("method", [gc.TSNE, gc.UMAP, gc.LargeVis, gc.PairwiseMatching])
def test_numbering_points_by_their_lists_changes_nothing_for_the_user(method, points, monkeypatch):
    monkeypatch.setattr(inverted_file, "_POINTS_A_LIST", 50)
    seen = []
    model = searched_in_lists(method, callback=lambda iteration, loss, Z: seen.append(Z))
    plain = clone(model).fit(points)
    assert plain._posterior is not None
    monkeypatch.setattr(carry_out, "_MANY_POINTS", 100)
    model.fit(points)
    assert model._posterior is None
    assert (np.diff(model._given.order) < 0).sum() > 5
    size = plain.embedding_.std()
    np.testing.assert_allclose(model.embedding_, plain.embedding_, atol=1e-6 * size)
    np.testing.assert_allclose(seen[len(seen) // 2 :], seen[: len(seen) // 2], atol=1e-6 * size)
    assert model.loss_ == pytest.approx(plain.loss_, rel=1e-9)
    for name in {"kl_divergence_"} & set(vars(plain)):
        assert getattr(model, name) == pytest.approx(plain.kl_divergence_, rel=1e-9)
    np.testing.assert_array_equal(model.posterior_.edge_means, plain.posterior_.edge_means)
    new = points[:20] + 0.05
    np.testing.assert_allclose(model.transform(new), plain.transform(new), atol=1e-5 * size)


def test_points_keep_their_numbers_where_a_part_names_them(points, numbered_from_100):
    model = searched_in_lists(gc.TSNE)
    own_prior = gc.GraphModel(gc.Student(), gc.FixedEdges(1.0 - np.eye(len(points))))
    for change in (
        {"terms": [gc.ComponentMeans()]},
        {"coupling": "reconstruction"},
        {"latent": own_prior},
        {"optimizer": gc.LBFGS()},
    ):
        assert clone(model).set_params(**change).fit(points)._posterior is not None
    assert model.fit(points, sample_weight=np.full(len(points), 2.0))._posterior is not None


def test_recomputed_parameters_follow_the_numbers(points, numbered_from_100, monkeypatch):
    for module in (graphs, posterior):
        monkeypatch.setattr(module, "MANY_EDGES", 100)
    laws = []
    search = carry_out.with_terms
    monkeypatch.setattr(
        carry_out, "with_terms", lambda coupling, terms: laws.append(coupling) or search(coupling, terms)
    )
    orders, along = [], carry_out._along
    monkeypatch.setattr(carry_out, "_along", lambda *arguments: orders.append(along(*arguments)) or orders[0])
    model = searched_in_lists(gc.TSNE).fit(points)
    assert laws[0].posterior._parameters is None
    expected = model.posterior_.mean()[orders[0]][:, orders[0]].toarray()
    np.testing.assert_allclose(laws[0].posterior.mean().toarray(), expected, rtol=1e-12)


def test_runs_of_neighbours_stay_together_and_follow_the_start(rng, monkeypatch):
    monkeypatch.setattr(carry_out, "_RUN", 50)
    start, order = rng.uniform(size=(2000, 2)), rng.permutation(2000).astype(np.int32)
    # Each run is a patch of the start, as a list of neighbors is.
    order = order[np.argsort((4 * start[order]).astype(int) @ [4, 1], kind="stable")]
    after = carry_out._along(order, start, 1)
    for run in order.reshape(-1, 50):
        assert np.ptp(np.flatnonzero(np.isin(after, run))) == 49
    steps = [np.linalg.norm(np.diff(start[o], axis=0), axis=1).mean() for o in (order, after)]
    assert steps[1] < 0.5 * steps[0]


def test_a_random_start_says_nothing_of_neighbours(points, numbered_from_100, monkeypatch):
    monkeypatch.setattr(carry_out, "_along", None)
    searched_in_lists(gc.TSNE).set_params(init="random").fit(points)
    with pytest.raises(TypeError, match="not callable"):
        searched_in_lists(gc.TSNE).fit(points)
