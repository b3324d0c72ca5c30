"""Maps of related data sets: the joint minimum, the ties, data sets added later, and methods that cannot be aligned."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple import couplings
from tests.reference import dense

RNG = np.random.default_rng(0)
FIRST = RNG.normal(size=(25, 6))
SECOND = np.concatenate([FIRST[5:], RNG.normal(size=(4, 6))]) + 0.05 * RNG.normal(size=(24, 6))
RELATED = np.arange(5, 25), np.arange(20)


def joint_loss(flat, means, weight):
    """The sum of two t-SNE losses and of the ties, from dense matrices."""
    Z = flat.reshape(-1, 2)
    maps, total = (Z[: len(FIRST)], Z[len(FIRST) :]), 0.0
    for P, places in zip(means, maps, strict=True):
        kernel = 1.0 / (1.0 + cdist(places, places) ** 2)
        np.fill_diagonal(kernel, 0.0)
        logs = np.log(np.where(kernel > 0, kernel, 1.0))
        total += P.sum() * np.log(kernel.sum()) - (P * logs).sum()
    return total + weight * np.square(maps[0][RELATED[0]] - maps[1][RELATED[1]]).sum()


def test_the_sum_of_all_losses_and_ties_is_least():
    aligned = gc.AlignedMaps(gc.TSNE(perplexity=5, random_state=0), weight=0.05).fit([FIRST, SECOND], [RELATED])
    means = [dense(method.posterior_.mean()) for method in aligned.estimators_]
    with pytest.warns(UserWarning, match="warm_start=True, but not a map of AlignedMaps"):
        aligned.estimators_[0].uncertainty()
    ended = np.concatenate(aligned.embeddings_)
    assert joint_loss(ended.ravel(), means, 0.05) == pytest.approx(aligned.loss_, rel=1e-9)
    assert aligned.map_losses_.sum() + 0.05 * aligned.tie_loss_ == pytest.approx(aligned.loss_, rel=1e-9)
    starts = ended, RNG.normal(scale=3.0, size=ended.shape)
    least = min(minimize(joint_loss, start.ravel(), (means, 0.05)).fun for start in starts)
    assert aligned.loss_ < least * (1 + 1e-3)
    with pytest.raises(TypeError, match=r"pass one of AlignedMaps\.embeddings_ rather than"):
        gc.metrics.knn_accuracy(aligned, np.arange(25) % 2)
    for other in (gc.AlignedMaps, gc.AlignedMaps()):
        with pytest.raises(TypeError, match="AlignedMaps has no embedding_: fit an estimator first"):
            gc.metrics.knn_accuracy(other, np.arange(25) % 2)


def test_edges_of_a_part_are_among_its_points():
    whole = gc.CrossEntropy(
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(FIRST), gc.GraphModel("student", "E")
    )
    shifted = couplings.PartOf(whole, 30, 5)
    among = np.zeros((30, 30))
    among[5:, 5:] = dense(sum(whole.attracting.matrices))
    np.testing.assert_array_equal(dense(sum(shifted.attracting.matrices)), among)
    Z = RNG.normal(size=(30, 2))
    bound = whole.attracting.confinement()
    assert shifted.attracting.confinement().value(Z) == bound.value(Z[5:])


def test_ties_pull_related_rows_together(digits):
    sets = [digits[0][:150], digits[0][50:220], digits[0][120:300, ::-1]]
    relations = [dict(zip(range(50, 150), range(100), strict=True)), (np.arange(70, 170), np.arange(100))]

    def apart(maps):
        pairs = [maps[0][50:] - maps[1][:100], maps[1][70:] - maps[2][:100]]
        size = np.mean([np.sqrt(np.square(Z - Z.mean(axis=0)).sum(axis=1).mean()) for Z in maps])
        return np.mean([np.linalg.norm(pair, axis=1).mean() for pair in pairs]) / size

    method = gc.TSNE(perplexity=15, random_state=0)
    alone = [gc.TSNE(perplexity=15, random_state=0).fit(X) for X in sets]
    turned = [alone[0].embedding_]
    for k, shared in enumerate(((np.arange(100), np.arange(50, 150)), (np.arange(100), np.arange(70, 170)))):
        turned.append(gc.align(alone[k + 1].embedding_, to=turned[-1], shared=shared))
    tied = gc.AlignedMaps(method).fit(sets, relations)
    assert apart(tied.embeddings_) < 0.12 < 0.25 < apart(turned)
    best = sum(each.loss_ for each in alone)
    assert best * (1 - 1e-3) < tied.map_losses_.sum() < best * 1.02
    one_place = gc.AlignedMaps(method, weight=100.0).fit(sets, relations)
    assert one_place.tie_loss_ < 0.01
    assert one_place.map_losses_.sum() < best * 1.05
    assert tied.estimators_[1].transform(sets[1][:3] + 1e-3) == pytest.approx(tied.embeddings_[1][:3], abs=0.5)


@pytest.mark.parametrize("weight", [0.01, 100.0])
def test_ties_of_equal_data_sets_cost_nothing(weight):
    alone = gc.TSNE(perplexity=5, random_state=0).fit(FIRST).loss_
    twice = gc.AlignedMaps(gc.TSNE(perplexity=5, random_state=0), weight=weight).fit([FIRST, FIRST])
    np.testing.assert_allclose(twice.map_losses_, alone, rtol=3e-3)


def test_a_callback_sees_all_maps_and_columns_have_names():
    seen = []
    method = gc.TSNE(perplexity=5, max_iter=30, callback=lambda iteration, loss, Z: seen.append(Z.shape))
    with pytest.warns(ConvergenceWarning):
        aligned = gc.AlignedMaps(method, random_state=0).fit([FIRST, SECOND], [RELATED])
    assert set(seen) == {(49, 2)}
    assert aligned.get_feature_names_out().tolist() == ["alignedmaps0", "alignedmaps1"]


def test_a_data_set_is_added_without_moving_the_others(digits):
    sets = [digits[0][:120], digits[0][40:160]]
    relation = np.arange(40, 120), np.arange(80)
    aligned = gc.AlignedMaps(gc.TSNE(perplexity=15), random_state=0).fit(sets, [relation])
    before = [Z.copy() for Z in aligned.embeddings_]
    aligned.update(digits[0][80:200], relation)
    for old, new in zip(before, aligned.embeddings_[:2], strict=True):
        np.testing.assert_array_equal(old, new)
    added = aligned.embeddings_[2]
    assert np.linalg.norm(before[1][40:] - added[:80], axis=1).mean() < 0.12 * np.abs(added).max()
    assert aligned.map_losses_.sum() + 0.01 * aligned.tie_loss_ == pytest.approx(aligned.loss_, rel=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("relation", [(np.zeros(13, int), np.arange(13)), (np.arange(13), np.zeros(13, int))])
def test_starts_keep_their_shape_where_related_rows_are_in_one_place(monkeypatch, relation):
    starts = []

    def watched(objective, start, *options, **more):
        starts.append(start[-len(FIRST) :])
        return gc.solve(objective, start, *options, **more)

    monkeypatch.setattr("graphcouple.estimators.aligned.solve", watched)
    for related in (relation, (relation[0][:1], relation[1][:1])):
        gc.AlignedMaps(gc.TSNE(perplexity=5, max_iter=5), random_state=0).fit([SECOND, FIRST], [related]).update(
            FIRST, related
        )
    # A single pair has no scale.
    for start, of_one_pair in zip(starts[:2], starts[2:], strict=True):
        np.testing.assert_allclose(pdist(start), pdist(of_one_pair), rtol=1e-6)


def test_same_rows_classes_and_wrapped_methods(digits):
    X, y = digits[0][:100], digits[1][:100]
    learned = gc.UMAP(target_weight=0.5, max_iter=30, random_state=0)
    with pytest.warns(ConvergenceWarning):
        supervised = gc.AlignedMaps(learned).fit([X, X[:, ::2]], ys=[y, y])
    assert supervised.estimators_[1].n_features_in_ == 32
    scaled = gc.TwoScaleCoupling(gc.TSNE(perplexity=10), random_state=0)
    maps = gc.AlignedMaps(scaled, random_state=0).fit_transform([X, X.astype(np.float32)])
    assert [Z.dtype for Z in maps] == [np.float64, np.float32]
    np.testing.assert_allclose(maps[0], maps[1], atol=0.05 * np.abs(maps[0]).max())


@pytest.mark.parametrize(
    ("method", "match"),
    [
        (gc.TSNE(init=np.zeros((40, 2))), "starts from an array"),
        (gc.TSNE(n_landmarks=20), "is of a part of the rows"),
        (gc.UMAP(repulsion="sampled"), "is made by sampled steps"),
        (gc.LaptSNE(batch_size=10, n_clusters=3), "is made in batches of one graph's rows"),
        (gc.DistR(gc.TSNE(perplexity=5)), "has shared places"),
        (gc.TSNE(warm_start=True), "continues another; leave checkpoint and warm_start out"),
        (gc.COSNE(), "must be flat"),
        (gc.TSNE(terms=[gc.Anchors([0], [[0, 0]])]), "has terms that name rows"),
        (gc.ParametricCoupling(), "is a function of the points"),
    ],
)
def test_methods_that_cannot_be_aligned_say_why(method, match):
    with pytest.raises(ValueError, match=match):
        gc.AlignedMaps(method).fit([FIRST, SECOND], [RELATED])


@pytest.mark.parametrize(
    ("data", "options", "error", "match"),
    [
        (FIRST, {}, TypeError, "list of at least two data sets"),
        ([FIRST], {}, TypeError, "list of at least two data sets"),
        ([FIRST, SECOND], {}, ValueError, r"25 rows and the next 24; say with relations\[0\]="),
        ([FIRST, SECOND], {"relations": []}, ValueError, "relations has 0 entries, but 2 data sets need 1"),
        ([FIRST, SECOND], {"relations": [RELATED], "ys": [None]}, ValueError, "ys has 1 entries"),
        ([FIRST, SECOND], {"relations": [{24: 24}]}, ValueError, r"relations\[0\] names row 24 of the next"),
        ([FIRST, SECOND], {"relations": [{}]}, ValueError, r"relations\[0\] must pair at least one row"),
        ([FIRST, SECOND], {"relations": {5: 7}}, TypeError, "relations must be a list .* got dict"),
        ([FIRST, SECOND], {"relations": [pd.Series({5: 7})]}, TypeError, r"\[0\] must be a dict, .* got Series"),
        ([FIRST, SECOND], {"relations": [{0.7: 1.9}]}, TypeError, r"relations\[0\] must hold row numbers"),
        (
            [FIRST, None],
            {"relations": [RELATED]},
            ValueError,
            "X is None, and the input's law finds its graph among points",
        ),
        ([FIRST, SECOND], {"relations": [True]}, TypeError, r"relations\[0\] must be a dict, .* got bool"),
    ],
)
def test_wrong_input_says_what_to_give(data, options, error, match):
    with pytest.raises(error, match=match):
        gc.AlignedMaps(gc.TSNE(perplexity=5)).fit(data, **options)


def test_the_loss_after_an_update_has_the_weight_of_the_update(rng):
    X = rng.normal(size=(40, 4))
    aligned = gc.AlignedMaps(gc.TSNE(perplexity=8, max_iter=5), weight=0.01, random_state=0).fit([X, X])
    aligned.set_params(weight=10.0).update(X)
    assert aligned.loss_ == pytest.approx(aligned.map_losses_.sum() + 10.0 * aligned.tie_loss_)
