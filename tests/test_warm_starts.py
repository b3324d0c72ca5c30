"""Fits that go on from the last embedding."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import graphcouple as gc
from tests.test_run_control import sample


@dataclass(frozen=True)
class Staged(gc.MomentumGains):
    """An optimizer with a schedule that its constructor does not take."""

    later: gc.Exaggeration = field(default=gc.Exaggeration(4.0), init=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "optimizer",
    [
        gc.MomentumGains(),
        Staged(),
        gc.LBFGS(exaggeration=gc.Exaggeration(12.0, 50)),
        gc.MiniBatches(40, descent=gc.MomentumGains(), random_state=0),
    ],
)
def test_a_warm_start_and_an_update_do_not_exaggerate_whatever_the_optimizer(optimizer):
    points = sample(82)
    sentence = gc.TSNE(perplexity=8, random_state=0, max_iter=200, warm_start=True).sentence.replace(
        optimizer=optimizer
    )
    method = gc.GraphCoupling(**sentence).fit(points[:80])
    settled = method.loss_
    assert method.fit(points[:80]).loss_history_.max() < 1.02 * settled
    assert method.update(points[80:], move="all").loss_history_[1:].max() < 1.1 * settled
    assert method.sentence.optimizer == optimizer


def test_a_warm_start_of_another_exaggeration_has_the_size_it_has():
    points = sample(80)
    method = gc.TSNE(perplexity=8, random_state=0, warm_start=True).fit(points)
    with pytest.warns(UserWarning, match="the start is used as given"):
        gc.TSNE(perplexity=8, exaggeration=4, init=method.embedding_).fit(points)
    method.set_params(exaggeration=4).fit(points)


@pytest.mark.filterwarnings("ignore")
def test_a_warm_start_goes_on_from_the_last_embedding():
    whole = sample(200)
    method = gc.TSNE(random_state=0, max_iter=60, warm_start=True)
    first = method.fit(whole).loss_
    before = method.embedding_.copy()
    again = method.fit(whole)
    assert again.loss_history_[0] == pytest.approx(first, rel=1e-6)
    assert again.loss_ < first
    # Without exaggeration the loss of a converged run stays where it was.
    longer = gc.TSNE(random_state=0, warm_start=True).fit(whole)
    settled = longer.loss_
    longer.fit(whole)
    assert abs(longer.loss_ - settled) < 1e-3 * abs(settled)
    method.set_params(perplexity=10).fit(whole)
    assert method.loss_history_[0] > method.loss_
    with pytest.raises(ValueError, match="warm_start=True continues from the last embedding, of shape"):
        method.fit(whole[:150])
    with pytest.raises(ValueError, match="n_components=3"):
        method.set_params(n_components=3).fit(whole)
    assert not np.array_equal(before, method.embedding_)
    cold = gc.TSNE(random_state=0, max_iter=60)
    assert np.array_equal(cold.fit_transform(whole), cold.fit_transform(whole))
