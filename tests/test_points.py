"""Fitted points one by one: their losses and their isolation."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist, squareform
from scipy.special import logsumexp

import graphcouple as gc
from graphcouple.couplings.fixed_map import NormalizedMap
from graphcouple.summation import Exact, LogKernel
from tests.reference import Parabola

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_the_losses_of_points_add_up_to_the_loss(rng):
    X = rng.normal(size=(60, 4))
    model = gc.GraphModel(gc.Gaussian(), "B", gc.Perplexity(10))
    independent = gc.GraphCoupling(model, gc.GraphModel(gc.Student(), "B"))
    # An undirected edge is in the losses of both of its points.
    for method, share in ((gc.SNE(perplexity=10), 1.0), (gc.UMAP(), 0.5), (independent, 1.0)):
        fitted = method.set_params(max_iter=30, random_state=0).fit(X)
        assert share * fitted.point_losses().sum() == pytest.approx(fitted.loss_, rel=1e-9)


@pytest.mark.parametrize("far", [1.0, 1e3])
def test_the_loss_of_a_point_is_its_row_of_the_law(rng, far):
    X, Z = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    Z[0] *= far
    fitted = gc.SNE(perplexity=8, max_iter=1, random_state=0).fit(X)
    sq_dist = squareform(pdist(Z / 3, "sqeuclidean"))
    np.fill_diagonal(sq_dist, np.inf)
    means = np.asarray(fitted.posterior_.mean())
    edges = sp.csr_array(means)
    places = NormalizedMap(Z / 3, LogKernel(gc.Gaussian()), gc.Gaussian(), Exact())
    log_kernel = gc.Gaussian().log(sq_dist)
    wanted = logsumexp(log_kernel, axis=1) - np.where(means > 0, means * np.where(means > 0, log_kernel, 0), 0).sum(1)
    np.testing.assert_allclose(places.own_losses(2 * edges), wanted, rtol=1e-9)


def test_fitted_points_are_isolated_as_new_ones_would_be(rng):
    X = np.vstack([rng.normal(size=(50, 3)), [[30.0, 0, 0]]])
    isolation = gc.TSNE(perplexity=8, max_iter=5, random_state=0).fit(X).isolation()
    sq_dist = np.sort(squareform(pdist(X, "sqeuclidean")), axis=1)[:, 1:11].mean(axis=1)
    nearest = np.argsort(squareform(pdist(X)), axis=1)[:, 1:11]
    np.testing.assert_allclose(isolation, np.sqrt(sq_dist / sq_dist[nearest].mean(axis=1)))
    assert isolation.argmax() == 50
    allowed = np.ones((51, 51))
    allowed[50] = allowed[:, 50] = 0.0
    law = gc.GraphModel("gaussian", gc.Binary(allowed))
    alone = gc.GraphCoupling(law, gc.GraphModel("student", "B"), random_state=0).fit(X).isolation()
    assert np.flatnonzero(np.isinf(alone)).tolist() == [50]


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
def test_new_points_out_of_reach_are_named_and_a_number_as_edge_prior_counts_for_them(rng):
    X = rng.normal(size=(20, 2))
    for prior in "DE":
        with pytest.raises(ValueError, match="1 rows of X_new, the first of them row 1, have no edge"):
            gc.GraphModel(Parabola(9.0), prior).given(X).new_edges([[0.0, 0.0], [99.0, 0.0]])
    near = X[:3] + 1e-6
    rare = gc.GraphModel("gaussian", gc.Binary(0.01)).given(X)
    means, fitted = rare.new_edges(near).to_csr(), rare.posterior().mean()[:3]
    np.testing.assert_allclose(means.toarray()[fitted > 0], fitted[fitted > 0], rtol=1e-3)


def test_points_that_were_not_fitted_have_no_loss(rng):
    X = rng.normal(size=(80, 3))
    X[40:60] = X[:20]
    equal = gc.TSNE(perplexity=5, unique=True, max_iter=5, random_state=0).fit(X)
    np.testing.assert_array_equal(equal.point_losses()[40:60], equal.point_losses()[:20])
    part = gc.TSNE(perplexity=5, n_landmarks=30, max_iter=5, random_state=0).fit(X)
    assert np.isfinite(part.point_losses()).nonzero()[0].tolist() == part.landmarks_.tolist()
    assert np.isfinite(part.isolation()).sum() == len(part.landmarks_) > 25


def test_notebooks_show_sentences_reports_and_ends(rng):
    tsne = gc.TSNE(perplexity=5, max_iter=5, random_state=0)
    stated = tsne._repr_html_()
    assert "Perplexity(perplexity=5)" in stated
    assert "sk-" in stated
    tsne.fit(rng.normal(size=(40, 3)))
    assert f"{tsne.loss_:.6g} nats" in tsne._repr_html_()
    assert "<td" in tsne.sentence._repr_html_()
    assert ">40</td>" in tsne.posterior_._repr_html_()
    solution = gc.Solution(tsne.embedding_, 1.25, 5, False, "stopped <b>", np.zeros(1), np.zeros(1))
    assert "1.25" in solution._repr_html_()
    assert "stopped &lt;b&gt;" in solution._repr_html_()
    objective = gc.CrossEntropy(tsne.posterior_, gc.GraphModel(gc.Student(), "E"))
    assert ">CrossEntropy</td>" in objective._repr_html_()
    assert "prior E" in gc.GraphModel(gc.Student(), "E")._repr_html_()
    Z = rng.normal(size=(40, 3))
    curves, torn = gc.metrics.neighborhood_curves(Z, Z[:, :2]), gc.metrics.tears(Z, Z[:, :2])
    assert f">{curves.preservation[9]:.3f}</td>" in curves._repr_html_()
    assert f">{torn.edges:.1%}</td>" in torn._repr_html_()


def test_the_loss_of_a_sentence_is_written_as_latex():
    attraction = r" - \sum_{i \neq j} w_{ij} \log k_{ij}"
    assert gc.SNE().sentence.latex() == r"E(Z) = \sum_i \log \sum_{j \neq i} k_{ij}" + attraction
    full = gc.UMAP(repulsion="full", terms=[gc.ReferenceShape()]).sentence.latex()
    assert full == r"E(Z) = \sum_{i < j} \log(1 + k_{ij}) - \sum_{i < j} w_{ij} \log k_{ij} + \sum_t \lambda_t E_t(Z)"
    assert gc.LargeVis().sentence.latex().endswith(r"+ 7 \sum_{i < j} c_{ij} \log(1 + k_{ij})")
    assert r"$E(Z) = \sum_i" in gc.SNE()._repr_html_()
    assert gc.TwoKernelLLE().sentence.latex() == ""


def test_a_point_without_edges_has_no_loss_under_a_fixed_number_of_edges():
    ring = np.zeros((6, 6))
    ring[np.arange(1, 6), 1 + np.arange(1, 6) % 5] = 1.0
    losses = gc.GraphCoupling(ring, gc.GraphModel(gc.Student(), "E"), random_state=0).fit().point_losses()
    assert losses[0] == 0.0
    assert (losses[1:] > 0.0).all()
