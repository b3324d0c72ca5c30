"""Tied distances: one-hot rows, grids, counts, hops. Each tie has an equal share, and the law stays a law."""

import warnings

import numpy as np
import pytest

import graphcouple as gc

RNG = np.random.default_rng(0)
GRID = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)
SETS = {
    "identity": np.eye(50),
    "one-hot": np.eye(6)[RNG.integers(0, 6, (120, 3))].reshape(120, -1),
    "grid": GRID,
    "counts": RNG.poisson(0.5, (120, 8)).astype(np.float32),
    "far": 1e6 + GRID,
}


GAUSSIAN = gc.Gaussian()


def posterior(name, prior, kernel=GAUSSIAN, perplexity=5.0, **options):
    return gc.GraphModel(kernel, prior, gc.Perplexity(perplexity), **options).posterior(SETS[name])


@pytest.mark.filterwarnings("ignore:perplexity:UserWarning")
@pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Exponential()])
@pytest.mark.parametrize("n_neighbors", [None, 15])
@pytest.mark.parametrize("name", SETS)
def test_rows_sum_to_one(name, n_neighbors, kernel):
    law = posterior(name, "D", kernel, n_neighbors=n_neighbors)
    sums = np.add.reduceat(law.edge_means, law.support.indptr[:-1])
    np.testing.assert_allclose(sums, 1.0, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:perplexity:UserWarning")
@pytest.mark.parametrize("prior", ["D", "E"])
@pytest.mark.parametrize("name", SETS)
def test_samples_have_the_laws_entropy(name, prior):
    law = posterior(name, prior)
    n = law.n_nodes
    assert law.edge_means.sum() == pytest.approx(n, rel=1e-9)
    surprise = -np.array([law.log_prob(law.sample(seed)) for seed in range(200)])
    assert (surprise > 0).all()
    assert abs(surprise.mean() - law.entropy()) < 5.0 * surprise.std() / np.sqrt(200) + 1e-9 * law.entropy()


@pytest.mark.filterwarnings("ignore:perplexity:UserWarning")
def test_edges_of_prior_b_stay_probabilities():
    means = posterior("grid", "B", gc.Odds(gc.Gaussian())).edge_means
    assert 0.0 <= means.min() <= means.max() <= 1.0


def test_ties_share_equally_and_are_counted():
    with pytest.warns(UserWarning, match="not reached in 27 of 125 rows, the first row 31: 6 neighbors are tied"):
        law = posterior("grid", "D")
    d = np.abs(GRID[:, None] - GRID).sum(axis=2)
    inner = (d == 1.0).sum(axis=1) == 6
    np.testing.assert_allclose(law.mean()[inner][d[inner] == 1.0], 1.0 / 6.0, rtol=1e-8)
    np.testing.assert_allclose(law.mean()[inner][d[inner] > 1.0], 0.0, atol=1e-8)
    # No bandwidth is smaller than the ties need.
    assert np.abs(law.natural_parameters).max() < 1e6
    # Where fewer are tied, the perplexity is reached.
    rows = np.maximum(law.mean()[~inner], 1e-300)
    np.testing.assert_allclose(np.exp(-(rows * np.log(rows)).sum(axis=1)), 5.0, rtol=1e-5)


def test_rows_with_as_many_ties_as_the_perplexity_have_the_widest_bandwidth_that_leaves_the_mass_to_the_ties():
    line = np.subtract.outer(np.arange(14.0), np.arange(14.0)) ** 2
    # The search of a row with a far point starts from another bandwidth.
    line[7, 0] = line[0, 7] = 1e8
    scales = gc.Perplexity(2.0).fit(line)[1]
    for i in (5, 7):
        others = np.delete(line[i], i)
        p = np.exp((1.0 - others) / (2.0 * scales[i] ** 2))
        p /= p.sum()
        rest = p[(others > 1.0) & (p > 0.0)]
        # log 2 + 1e-10 is the entropy of two equal ties and a few others, to first order in the mass of the others.
        surplus = (rest * (1.0 - np.log(rest) - np.log(2.0))).sum()
        assert surplus == pytest.approx(1e-10, rel=0.01)


@pytest.mark.parametrize(("perplexity", "faint", "first"), [(5.0, 81, 6), (6.0, 27, 31)])
@pytest.mark.parametrize("prior", ["B", "E"])
def test_rows_of_ties_lose_their_edges_where_no_row_must_keep_any(prior, perplexity, faint, first):
    with pytest.warns(UserWarning, match=f"leaves {faint} of 125 rows almost without edges, the first row {first}:"):
        law = posterior("grid", prior, perplexity=perplexity)
    favoured = {"B": gc.Binary, "E": gc.FixedEdges}[prior](edge_prior=1.0)
    with pytest.warns(UserWarning, match=f"leaves {faint} of 125 rows"):
        gc.GraphModel("gaussian", favoured, gc.Perplexity(perplexity)).posterior(GRID)
    ties = (np.abs(GRID[:, None] - GRID).sum(axis=2) == 1.0).sum(axis=1)
    np.testing.assert_array_equal(law.mean().sum(axis=1) < 0.01, ties >= perplexity)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior("grid", "D", perplexity=6.0)
        gc.GraphModel("gaussian", prior, gc.Perplexity(6.5)).posterior(GRID)
        # If all rows are alike, each has an equal share of the edges.
        even = np.array(list(np.ndindex(5, 5))) * (2.0 * np.pi / 5.0)
        torus = np.hstack([np.cos(even), np.sin(even)])
        if prior == "E":
            mean = gc.GraphModel("gaussian", "E", gc.Perplexity(4.0)).posterior(torus).mean()
            np.testing.assert_allclose(mean.sum(axis=1), 1.0, rtol=1e-6)
    # Under prior E, the rows of new points have edges of their own.
    fitted = gc.GraphModel("gaussian", prior, gc.Perplexity(6.5)).given(GRID)
    with pytest.warns(UserWarning, match="no nearest neighbors; look at the data and the metric"):
        gc.GraphModel("gaussian", prior, gc.Perplexity(5.0)).posterior(np.eye(20))
    said = "leaves 1 of 2 rows almost" if prior == "B" else "not reached in 1 of 2 rows.*share equally"
    with pytest.warns(UserWarning, match=said):
        edges = fitted.new_edges(np.array([[1.5, 1.5, 1.5], [0.1, 0.2, 0.3]]))
    np.testing.assert_allclose(edges.to_csr().sum(axis=1)[0], float(prior == "E"), atol=1e-3)


def test_ties_do_not_share_equally_under_a_tail_that_is_a_power():
    """Among the corners of a cube, at small scales the Student kernel is 1/d², and C(5, j) corners are at d² = j."""
    cube = (np.arange(32)[:, None] >> np.arange(5) & 1).astype(float)
    numbers, share = np.array([5, 10, 10, 5, 1]), 1.0 / np.arange(1, 6)
    share /= numbers @ share
    reached = np.exp(-(numbers @ (share * np.log(share))))
    with pytest.raises(ValueError, match=f"too high, the nearest perplexity it reaches is {reached:.4g}"):
        gc.GraphModel(gc.Student(), "D", gc.Perplexity(3)).posterior(cube)


@pytest.mark.filterwarnings("ignore:perplexity:UserWarning", "ignore:the embedding has not settled")
def test_divergences_are_not_negative():
    for name in ("identity", "one-hot", "grid"):
        assert gc.TSNE(perplexity=5, max_iter=60, random_state=0).fit(SETS[name]).kl_divergence_ > -1e-9


def test_tiny_bandwidths_are_laws_too():
    """η of −1e20, whose differences are all that matters."""
    for prior in ("D", "E"):
        law = gc.GraphModel(gc.Gaussian(), prior, gc.ConstantBandwidth(1e-10)).posterior(np.eye(20))
        assert law.edge_means.sum() == pytest.approx(20.0, rel=1e-12)
        assert law.log_prob(law.sample(0)) < -10.0


@pytest.mark.parametrize("data", ["iris", "line"])
def test_the_perplexity_of_a_bernoulli_law_is_that_of_its_probabilities(data, iris):
    """THESIS, section 5.1: v, not the odds v/(1 − v)."""
    X = iris[0] if data == "iris" else np.geomspace(1.0, 50.0, 60)[:, None]
    v = gc.GraphModel(gc.Odds(gc.Gaussian()), "B", gc.Perplexity(12)).posterior(X).mean()
    share = v / v.sum(axis=1, keepdims=True)
    entropies = -np.where(share > 0, share * np.log(np.maximum(share, 1e-300)), 0.0).sum(axis=1)
    np.testing.assert_allclose(np.exp(entropies), 12.0, rtol=1e-4)
