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
    assert fitted.stop_reason_ == f"all {fitted.n_iter_} random steps taken"


def test_points_pass_each_other_in_a_plane_and_under_bounded_kernels(digits):
    X = digits[0][:100]
    plane = gc.PrecisionCoupling().fit_transform(X)
    model, latent = gc.UMAP().models(100)
    umap = gc.EffectiveCrossEntropy(model.posterior(X), latent)
    assert umap.attracting.limit(plane[:, :1]) == 1.0
    assert umap.attracting.limit(plane) == np.inf
    tsne = gc.CrossEntropy(gc.TSNE(perplexity=10).models(100)[0].posterior(X), gc.GraphModel(gc.Student(), "E"))
    assert tsne.attracting.limit(plane[:, :1]) == np.inf
