"""Maps on a line, where points that repel without bound cannot pass each other."""

import numpy as np
import pytest

import graphcouple as gc
from tests.reference import coupling_of


@pytest.mark.parametrize("make", [gc.UMAP, gc.LargeVis])
def test_exaggeration_does_not_jumble_the_order_of_points(digits, make):
    """It took UMAP's loss from 5 to 11 by point, above any multiple of the first principal component."""
    X = digits[0][:300]
    fitted, line = make(n_components=1, random_state=0).fit(X), gc.PrecisionCoupling(n_components=1).fit_transform(X)
    best = min(coupling_of(fitted).value(size * line / line.std()) for size in np.logspace(-1, 3, 60))
    assert fitted.loss_ < 0.9 * best
    assert fitted.stop_reason_ == f"all {fitted.n_iter_} steps taken"


def test_points_pass_each_other_in_a_plane_and_under_bounded_kernels(digits):
    X = digits[0][:100]
    plane = gc.PrecisionCoupling().fit_transform(X)
    model, latent = gc.UMAP().models(100)
    umap = gc.EffectiveCrossEntropy(model.posterior(X), latent)
    assert umap.attracting.limit(plane[:, :1]) == 1.0
    assert umap.attracting.limit(plane) == np.inf
    tsne = gc.CrossEntropy(gc.TSNE(perplexity=10).models(100)[0].posterior(X), gc.GraphModel(gc.Student(), "E"))
    assert tsne.attracting.limit(plane[:, :1]) == np.inf


def test_components_of_points_that_cannot_pass_each_other_start_side_by_side():
    """Drawn to their means, they pushed each other 70 times as far out, where the bound on the size hardly pulls."""
    rng = np.random.default_rng(3)
    X = (6.0 * rng.normal(size=(12, 10)))[np.repeat(np.arange(12), 30)] + rng.normal(size=(360, 10))
    latent = gc.GraphModel(gc.Odds(gc.RationalPower.from_min_dist(0.1)), "B")
    fitted = gc.GraphCoupling(
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)), latent, n_components=1, random_state=0
    ).fit(X)
    assert np.ptp(fitted.embedding_) < 10_000
    objective = gc.CrossEntropy(fitted.posterior_, latent)
    start = gc.PrecisionCoupling(n_components=1).fit_transform(X)
    spaced = gc.Descent().plan(objective, start, 500, smooth=True)[0]
    np.testing.assert_array_equal(np.sort(spaced.ravel()), np.arange(360))
    by_component = spaced.reshape(12, 30)
    assert (np.ptp(by_component, axis=1) == 29).mean() > 0.7
