"""Laws of odd input: sparse points far apart, hubs, NumPy's numbers, transformers, light graphs."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer

import graphcouple as gc
from graphcouple.neighbors import distances_of, neighbors_among
from graphcouple.neighbors.points import as_points
from tests.reference import Parabola

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))


class Counted(KNeighborsTransformer):
    """A transformer that counts its searches."""

    searches = 0

    def fit_transform(self, X, y=None):
        Counted.searches += 1
        return super().fit_transform(X, y)


def test_a_prior_that_forbids_nothing_leaves_the_neighbours_of_a_transformer():
    search = Counted(n_neighbors=5, mode="distance", metric="manhattan")
    plain, allowed = (
        gc.GraphModel("gaussian", prior, None, search=search).posterior(X)
        for prior in ("D", gc.UnitOutDegree(np.ones((60, 60))))
    )
    np.testing.assert_array_equal(plain.support.indices, allowed.support.indices)
    np.testing.assert_allclose(plain.edge_means, allowed.edge_means)
    # Laws of one metric share one search.
    Counted.searches = 0
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(3), search=search)
    gc.laws.GraphMixture([law, law.set_params(bandwidth=gc.Perplexity(4))]).posterior(X)
    assert Counted.searches == 1


def test_sparse_new_rows_find_their_neighbours_among_far_groups():
    points = np.zeros((200, 8))
    points[np.arange(200), np.arange(200) % 5] = 1e4
    points[:, 5:] = 1e-4 * RNG.normal(size=(200, 3))
    new = points[:20].copy()
    new[:, 5:] += 1e-5 * RNG.normal(size=(20, 3))
    found, usual = neighbors_among(sp.csr_array(new), sp.csr_array(points), 5), neighbors_among(new, points, 5)
    np.testing.assert_array_equal(found[0].indices, usual[0].indices)
    np.testing.assert_allclose(found[1], usual[1])


def test_a_hub_does_not_keep_all_ends_of_walks():
    steps = np.zeros((12, 12))
    for i in range(12):
        for s in (1, 2):
            steps[i, (i + s) % 12] = steps[(i + s) % 12, i] = s
    steps[0, 1:] = np.where(steps[0, 1:] > 0, steps[0, 1:], 3.0)
    steps_of = gc.GraphModel("gaussian", "D", metric="precomputed")
    law = gc.laws.DiffusedLaw(steps_of, 4, n_kept=3)
    # Without a number of one's own, nothing is lost where one row has all.
    M = steps_of.posterior(sp.csr_array(steps)).mean()
    whole = np.linalg.matrix_power(M.toarray() if sp.issparse(M) else M, 4)
    np.fill_diagonal(whole, 0.0)
    found = gc.laws.DiffusedLaw(steps_of, 4).posterior(sp.csr_array(steps)).mean()
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, whole / whole.sum(axis=1, keepdims=True), atol=1e-12)
    assert np.diff(law.posterior(sp.csr_array(steps)).support.indptr).max() <= 3


def test_numbers_and_names_are_taken_in_any_form():
    few = X[:10]
    with pytest.warns(UserWarning, match="n_neighbors=15"):
        usual = gc.UMAP(n_neighbors=15, random_state=0, max_iter=5).fit_transform(few)
    with pytest.warns(UserWarning, match="n_neighbors=15"):
        same = gc.UMAP(n_neighbors=np.int64(15), random_state=0, max_iter=5).fit_transform(few)
    np.testing.assert_array_equal(usual, same)
    model = gc.GraphModel("gaussian", "D").set_params(kernel="student", kernel__dof=2.0)
    assert model.kernel == gc.Student(2.0)
    assert gc.GraphModel("gaussian", "D", metric="mahalanobis").posterior(X[:, :1]).n_edges == 60 * 59
    curves = gc.metrics.neighborhood_curves(X[:3], X[:3, :2])._repr_html_()
    assert "K = 0" not in curves


def test_sparse_rows_have_the_same_cosines_in_any_batch():
    counts = RNG.poisson(0.5, (60, 20)) * 1.0
    counts[:, 0] = 1.0
    new = sp.csr_array(np.vstack([counts[:6], counts[6:15] + 0.1 * RNG.normal(size=(9, 20))]))
    distances = distances_of(as_points(sp.csr_array(counts)), "cosine")
    whole = distances.to(new, None)[1].reshape(15, 60)
    for i in range(15):
        np.testing.assert_array_equal(distances.to(new[[i]], None)[1], whole[i])


def test_scales_and_weights_that_lose_their_digits_are_refused():
    indices = np.array([[1, 2], [0, 2], [1, 0], [2, 1]])
    for unit in (1e-170, 1e170):
        with pytest.raises(ValueError, match="neighbors"):
            gc.GraphModel("gaussian", "D").given(X[:4], (indices, unit * np.tile([1.0, 2.0], (4, 1))))
    W = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    for weight, edges_per_node in ((1e-6, None), (0.5, 1e-6)):
        with pytest.raises(ValueError, match=r"no edges of weight .* or raise edges_per_node"):
            gc.laws.communities(gc.Binary().around(W * weight), edges_per_node=edges_per_node)


def test_distances_to_new_rows_may_differ_in_number():
    """Without a number of neighbours, a row takes all that it stores, whatever the other rows store."""
    D = np.ceil(12.0 * cdist(X, X))
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), metric="precomputed").given(D)
    new = sp.csr_array(np.where(RNG.random((5, 60)) < 0.5, np.ceil(12.0 * cdist(RNG.normal(size=(5, 3)), X)), 0.0))
    together, alone = law.new_edges(new), [law.new_edges(new[[i]]) for i in range(5)]
    assert (np.diff(together.support.indptr) == np.diff(new.indptr)).all()
    for i, edges in enumerate(alone):
        row = slice(*together.support.indptr[i : i + 2])
        np.testing.assert_array_equal(together.means[row], edges.means)
        assert together.isolation[i] == pytest.approx(edges.isolation[0], rel=1e-12)
    untied = D[:5] + RNG.uniform(1.0, 2.0, (5, 60))
    np.testing.assert_allclose(law.new_edges(untied).isolation, law.new_edges(sp.csr_array(untied)).isolation)


def test_a_squared_metric_has_no_theorem():
    model = gc.GraphModel(gc.Student(), "D", metric="sqeuclidean")
    with pytest.raises(ValueError, match="is not known to be a norm of differences"):
        gc.theory.degeneracy_report(model, X)


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
def test_edges_that_a_kernel_rules_out_are_no_ends_of_copies():
    weights = RNG.integers(1, 4, size=20).astype(float)
    law = gc.GraphModel(Parabola(), "D", gc.ConstantBandwidth(4.0))
    weighted, repeated = (
        law.posterior(X[:20], sample_weight=weights),
        law.posterior(np.repeat(X[:20], weights.astype(int), axis=0)),
    )
    assert weighted.n_edges < 20 * 19
    assert weighted.least_entropy() == pytest.approx(repeated.entropy(), rel=1e-9)


@pytest.mark.filterwarnings("ignore:the scale of largest likelihood")
def test_auto_is_one_number_of_neighbours(monkeypatch):
    monkeypatch.setattr("graphcouple.laws.model.ALL_PAIRS_UP_TO", 200)
    points = RNG.normal(size=(300, 3))
    law = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(), "auto").given(points)
    stated = law.law.n_neighbors
    first, second = (law.new_edges(points[:3] + 0.01) for _ in range(2))
    assert law.law.n_neighbors == stated
    np.testing.assert_array_equal(first.support.indices, second.support.indices)
    np.testing.assert_array_equal(first.means, second.means)
