"""Diffusion maps: distances against powers of the walk's matrix, and shapes free of the density of their points."""

import networkx as nx
import numpy as np
import pytest
import scanpy as sc
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

import graphcouple as gc

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))


def walk(weights, alpha):
    """Return the matrix P of the walk, and the degrees."""
    weights = weights / np.outer(weights.sum(axis=1), weights.sum(axis=1)) ** alpha
    degrees = weights.sum(axis=1)
    return weights / degrees[:, None], degrees


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("t", [1, 3])
def test_distances_are_those_of_walks(alpha, t):
    method = gc.DiffusionMaps(39, t=t, alpha=alpha, input=gc.GraphModel(gc.Gaussian(), "E")).fit(X)
    means = method.posterior_.mean()
    P, degrees = walk(means + means.T, alpha)
    ends = np.linalg.matrix_power(P, t) / np.sqrt(degrees / degrees.sum())
    np.testing.assert_allclose(cdist(method.embedding_, method.embedding_), cdist(ends, ends), atol=1e-9)
    np.testing.assert_allclose(
        np.sort(1.0 - method.eigenvalues_), np.sort(np.linalg.eigvals(P).real)[:-1], rtol=1e-8, atol=1e-10
    )


@pytest.mark.filterwarnings("ignore:5 eigenvectors give a rough pseudotime")
def test_eigenvalues_and_pseudotimes_are_scanpys():
    cells = sc.datasets.pbmc68k_reduced()
    sc.tl.diffmap(cells, n_comps=6)
    ours = gc.DiffusionMaps(5, input=cells.obsp["connectivities"]).fit()
    np.testing.assert_allclose(1.0 - ours.eigenvalues_, cells.uns["diffmap_evals"][1:], rtol=1e-5)
    # As docs/howto/classical.md says.
    weights = cells.obsp["connectivities"].toarray().astype(float)
    weights /= np.outer(weights.sum(axis=1), weights.sum(axis=1))
    theirs = cells.obsm["X_diffmap"][:, 1:] / np.sqrt(weights.sum(axis=1))[:, None]
    ratios = ours.set_params(t=0).fit().embedding_ / theirs
    np.testing.assert_allclose(np.abs(ratios), np.median(np.abs(ratios)), rtol=1e-2)
    cells.uns["iroot"] = 3
    sc.tl.dpt(cells, n_dcs=6)
    assert spearmanr(ours.pseudotime(3, 5), cells.obs["dpt_pseudotime"])[0] > 0.97


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_pseudotimes_are_distances_of_walks_of_all_lengths(alpha, tmp_path):
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(6))
    method = gc.DiffusionMaps(2, alpha=alpha, input=law).fit(X)
    means = method.posterior_.mean()
    P, degrees = walk(means + means.T, alpha)
    stationary = degrees / degrees.sum()
    all_steps = np.linalg.inv(np.eye(40) - P + stationary) - np.eye(40)
    expected = np.linalg.norm((all_steps - all_steps[7]) / np.sqrt(stationary), axis=1)
    np.testing.assert_allclose(method.pseudotime(7), expected / expected.max(), rtol=1e-7, atol=1e-12)
    method.save(tmp_path / "map.gc")
    loaded, places = gc.load(tmp_path / "map.gc"), method.transform(X[:5] + 0.1)
    np.testing.assert_allclose(loaded.pseudotime(7), method.pseudotime(7), rtol=1e-9)
    # Parameters that are set later are those of the next fit.
    np.testing.assert_array_equal(method.set_params(alpha=1.0 - alpha).pseudotime(7), loaded.pseudotime(7))
    np.testing.assert_array_equal(method.transform(X[:5] + 0.1), places)


def test_pseudotimes_of_alike_eigenvalues_are_exact():
    star = gc.DiffusionMaps(t=1, input=nx.star_graph(30))
    with pytest.warns(UserWarning, match="after t=1 steps"):
        star.fit()
    np.testing.assert_allclose(star.pseudotime(0), [0.0] + [1.0] * 30, atol=1e-9)
    np.testing.assert_allclose(star.pseudotime(1), [1.0] + [0.0] * 30, atol=1e-9)
    method = gc.DiffusionMaps(perplexity=10).fit(RNG.normal(size=(200, 10)))
    with pytest.warns(UserWarning, match="10 eigenvectors give a rough pseudotime"):
        method.pseudotime(0, 10)


def test_pseudotimes_of_other_components_are_infinite():
    own = sp.block_diag([np.ones((5, 5)) - np.eye(5), np.ones((4, 4)) - np.eye(4), np.zeros((1, 1))]).tocsr()
    with pytest.warns(UserWarning, match="disconnected|components"):
        method = gc.DiffusionMaps(2, input=own).fit()
    assert np.isfinite(method.pseudotime(1)).tolist() == [True] * 5 + [False] * 5
    for root, why in ((9, "has no edges"), (10, "must be a row of the 10 points")):
        with pytest.raises(ValueError, match=why):
            method.pseudotime(root)


def test_no_steps_are_eigenmaps():
    eigenmaps = gc.LaplacianEigenmaps(perplexity=8, n_neighbors=15).fit(X)
    ours = gc.DiffusionMaps(perplexity=8, n_neighbors=15, t=0, alpha=0).fit(X)
    np.testing.assert_array_equal(ours.embedding_, eigenmaps.embedding_)
    new = RNG.normal(size=(9, 3))
    np.testing.assert_allclose(ours.transform(new), eigenmaps.transform(new), rtol=1e-12)


@pytest.mark.parametrize(("alpha", "even"), [(1.0, True), (0.0, False)])
def test_the_density_of_a_circle_is_taken_out(alpha, even):
    angles = np.sort(2.0 * np.pi * RNG.beta(2.0, 2.0, size=1500))
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    law = gc.GraphModel(gc.Gaussian(), "E", gc.ConstantBandwidth(0.15))
    Z = gc.DiffusionMaps(alpha=alpha, input=law).fit_transform(circle)
    radii = np.linalg.norm(Z - 0.5 * (Z.max(axis=0) + Z.min(axis=0)), axis=1)
    assert (radii.std() < 0.1 * radii.mean()) == even


def test_new_points_follow_nystroms_formula():
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8), 20)
    points, new = RNG.normal(size=(200, 3)), RNG.normal(size=(7, 3))
    method = gc.DiffusionMaps(input=law, t=2.0).fit(points)
    means = method.posterior_.mean()
    edges = law.new_edges(points, new).toarray() / np.asarray((means + means.T).sum(axis=0)).ravel()
    steps = edges / edges.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        method.transform(new), steps @ method.embedding_ / (1.0 - method.eigenvalues_), rtol=1e-8
    )


def test_no_walk_leaves_a_component():
    pieces = nx.disjoint_union(nx.cycle_graph(12), nx.cycle_graph(20))
    with pytest.warns(UserWarning, match="2 "):
        few = gc.DiffusionMaps(input=pieces, t=0).fit()
    with pytest.warns(UserWarning, match="2 "):
        many = gc.DiffusionMaps(input=pieces, t=4).fit()
    for part in (np.arange(12), np.arange(12, 32)):
        length = len(part)
        shrink = np.cos(2.0 * np.pi / length) ** 4
        spread = [one.embedding_[part].std(axis=0) for one in (few, many)]
        np.testing.assert_allclose(spread[1], shrink * spread[0], rtol=1e-6)
        np.testing.assert_allclose(many.embedding_[part].mean(axis=0), few.embedding_[part].mean(axis=0), atol=1e-9)


def test_a_walk_that_forgets_its_start_says_so(recwarn):
    path = nx.path_graph(30)
    path.add_node(99)
    for method, points in ((gc.DiffusionMaps(perplexity=8, t=1e5), X), (gc.DiffusionMaps(input=path, t=1e7), None)):
        with pytest.warns(UserWarning, match="end in the same places"):
            method.fit(points)
    recwarn.clear()
    sides = gc.DiffusionMaps(11, alpha=0.0, t=101, input=nx.complete_bipartite_graph(6, 6)).fit()
    assert abs(sides.embedding_[:, -1]).min() > 0.5
    assert not recwarn.list


def test_small_whole_numbers_do_not_overflow():
    counts = np.triu(RNG.integers(1, 200, (25, 25)).astype(np.uint8), 1)
    counts += counts.T
    found = [gc.DiffusionMaps(alpha=0.0, input=graph).fit() for graph in (counts, counts.astype(float))]
    np.testing.assert_array_equal(found[0].embedding_, found[1].embedding_)
    assert found[0].report()[0] == ("input", "a graph or posterior of your own")


def test_new_points_stay_among_the_fitted_ones_where_eigenvectors_are_noise():
    few = gc.DiffusionMaps(11, perplexity=2).fit(X[:12])
    noise = few.eigenvalues_ > 0.9
    assert noise.sum() > 4
    Z = few.transform(X[:12] + 1e-7)[:, noise]
    assert (np.abs(Z).max(axis=0) < 1.01 * np.abs(few.embedding_[:, noise]).max(axis=0)).all()


def steps_of(law, X):
    M = law.posterior(X).mean()
    return M if isinstance(M, np.ndarray) else M.toarray()


@pytest.mark.parametrize("n_neighbors", [None, 12])
@pytest.mark.parametrize("t", [1, 2, 5])
def test_a_diffused_law_has_the_ends_of_walks(t, n_neighbors, tmp_path):
    one = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(6), n_neighbors)
    M = steps_of(one, X)
    ends = np.linalg.matrix_power(M, t)
    np.fill_diagonal(ends, 0.0)
    # Of all pairs, all ends are kept.
    law = gc.laws.DiffusedLaw(one, t, n_kept=40 if n_neighbors else 3)
    np.testing.assert_allclose(steps_of(law, X), ends / ends.sum(axis=1, keepdims=True), atol=1e-12)
    fitted = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), max_iter=20, random_state=0).fit(X)
    new = np.concatenate([X[:2], X[:3] + 0.1])
    unasked = law.given(X).new_edges(new).normalized().toarray()
    edges = fitted._given.new_edges(new).normalized().toarray()
    first = one.given(X).new_edges(new).normalized().toarray()
    np.testing.assert_array_equal(edges, unasked)
    np.testing.assert_array_equal(edges[:2], first[:2])
    np.testing.assert_allclose(edges[2:], first[2:] @ np.linalg.matrix_power(M, t - 1), atol=1e-12)
    fitted.save(tmp_path / "map.gc")
    np.testing.assert_array_equal(gc.load(tmp_path / "map.gc").transform(new), fitted.transform(new))


def test_walks_keep_their_likeliest_ends_and_may_not_leave_two_points():
    one = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), 12)
    kept = gc.laws.DiffusedLaw(one, 3).posterior(X)
    assert np.diff(kept.support.indptr).max() <= 12
    M = steps_of(one, X)
    two = M @ M
    two[two < np.sort(two, axis=1)[:, [-12]]] = 0.0
    three = two @ M
    three[three < np.sort(three, axis=1)[:, [-12]]] = 0.0
    np.fill_diagonal(three, 0.0)
    np.testing.assert_allclose(steps_of(gc.laws.DiffusedLaw(one, 3), X), three / three.sum(axis=1, keepdims=True))
    pairs = np.array([[0.0], [0.1], [90.0], [90.1]])
    single = gc.GraphModel(gc.Gaussian(), "D", gc.ConstantBandwidth(1.0), 1)
    np.testing.assert_array_equal(steps_of(gc.laws.DiffusedLaw(single, 2), pairs), steps_of(single, pairs))


def test_searches_set_the_steps_and_the_law_that_takes_them():
    one = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4))
    method = gc.GraphCoupling(gc.laws.DiffusedLaw(one), gc.GraphModel(gc.Student(), "E"))
    method.set_params(input__n_steps=3, input__law__bandwidth__perplexity=7)
    assert (method.input.n_steps, method.input.law.bandwidth, one.bandwidth) == (3, gc.Perplexity(7), gc.Perplexity(4))
    with pytest.raises(ValueError, match="GraphModel has no parameter 'bandwidth__k'"):
        method.set_params(input__law__bandwidth__k=7)


def test_walks_need_steps_from_every_point():
    one = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4))
    with pytest.raises(ValueError, match="law must have prior D"):
        gc.laws.DiffusedLaw(gc.GraphModel(gc.Gaussian(), "B"))
    with pytest.raises(TypeError, match="law must be a GraphModel"):
        gc.laws.DiffusedLaw("D")
    with pytest.raises(ValueError, match="n_steps must be at least 1"):
        gc.laws.DiffusedLaw(one, 0)
    with pytest.raises(ValueError, match="takes no sample weights"):
        gc.laws.DiffusedLaw(one).posterior(X, sample_weight=np.ones(40))


def test_bad_parameters():
    for name, value in (("t", -1.0), ("alpha", 1.5)):
        with pytest.raises(ValueError, match=name):
            gc.DiffusionMaps(**{name: value}).fit(X)


def test_the_pseudotime_is_of_the_graph_of_the_fit(rng, tmp_path):
    weights = [rng.random((50, 50)) * (rng.random((50, 50)) < 0.3) for _ in range(2)]
    graphs = [sp.csr_array(each + each.T) for each in weights]
    fitted = gc.DiffusionMaps(input=graphs[0].copy()).fit()
    time = fitted.pseudotime(3)
    fitted.input.data[:50] *= 9.0
    np.testing.assert_array_equal(fitted.pseudotime(3), time)
    np.testing.assert_array_equal(fitted.set_params(input=graphs[1]).pseudotime(3), time)
    fitted.save(tmp_path / "later")
    np.testing.assert_allclose(gc.load(tmp_path / "later").pseudotime(3), time, rtol=1e-9)
