"""Prototypes: the loss against the loss of all points, moves against every single move, and the plan's concavity."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import graphcouple as gc
from graphcouple.couplings import GroupedPosterior, Plan, groups_of

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(20, 4)) + shift for shift in (0.0, 4.0, 9.0)])
LABELS = np.arange(60) % 7
PLACES = RNG.normal(size=(7, 2))
LAWS = {
    "D–E": ("D", "E", gc.Student(), 1.0, 1.0),
    "D–E, exaggerated": ("D", "E", gc.Student(), 8.0, 1.0),
    "D–E, narrow": ("D", "E", gc.Student(), 1.0, 0.2),
    "D–D": ("D", "D", gc.Gaussian(), 1.0, 1.0),
    "B–B": ("B", "B", gc.Student(), 1.0, 1.0),
    "D–B": ("D", gc.Binary(edge_prior=0.1), gc.Student(2.0), 1.0, 1.0),
}


def coupling_of(name, points=X):
    prior, latent, kernel, exaggeration, scale = LAWS[name]
    model = gc.GraphModel(gc.Gaussian(), prior, gc.Perplexity(6), symmetrize="threshold" if prior == "B" else None)
    law = gc.GraphModel(kernel, latent, None if scale == 1.0 else gc.ConstantBandwidth(scale))
    return gc.CrossEntropy(model.posterior(points), law, exaggeration=exaggeration)


@pytest.mark.parametrize("name", LAWS)
def test_the_loss_is_that_of_all_points_at_shared_places(name):
    coupling = coupling_of(name)
    objective = Plan(coupling, LABELS).objective()
    assert objective.value(PLACES) == pytest.approx(coupling.value(PLACES[LABELS]), rel=1e-12)
    gradient = coupling.gradient(PLACES[LABELS])
    sums = np.stack([gradient[k == LABELS].sum(axis=0) for k in range(7)])
    np.testing.assert_allclose(objective.gradient(PLACES), sums, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_moves_lower_the_loss_until_no_single_move_does(name):
    coupling = coupling_of(name)
    plan, places, loss, moved = Plan(coupling, LABELS), PLACES, coupling.value(PLACES[LABELS]), 1
    while moved:
        places, moved = plan.improve(places, np.random.RandomState(0))
        after = coupling.value(places[plan.labels])
        assert after < loss if moved else after == pytest.approx(loss, rel=1e-12)
        loss = after
    for i in range(60):
        for k in range(len(places)):
            labels = plan.labels.copy()
            labels[i] = k
            # Under prior D, points move where a linear bound of the loss falls, so better moves can be left.
            slack = 0.5 if name == "D–D" else 1e-6
            assert coupling.value(places[labels]) > loss - slack


@pytest.mark.parametrize("name", LAWS)
def test_the_loss_is_concave_in_a_row_of_the_plan(name):
    """Split point 0 between two places: the loss of point 0 with weights w there, the other points fixed."""
    _, latent, kernel, exaggeration, scale = LAWS[name]
    coupling, model = coupling_of(name), gc.GraphModel(kernel, latent)
    means = coupling.posterior.support.to_csr(coupling.posterior.edge_means).toarray()
    log_kernel = model.prior.latent_kernel(kernel).log(((PLACES[:, None] - PLACES) ** 2).sum(axis=2) / scale**2)

    def loss(share):
        plan = np.eye(7)[LABELS]
        plan[0] = 0.0
        plan[0, [1, 4]] = 1.0 - share, share
        between = plan @ log_kernel @ plan.T
        values = plan @ np.exp(log_kernel) @ plan.T
        if coupling.posterior.unordered or model.prior.drawn_by == "pair":
            half = 0.5 if coupling.posterior.unordered else 1.0
            partition = plan @ np.log1p(np.exp(log_kernel)) @ plan.T
            return half * (-(means * between).sum() + partition.sum() - np.trace(partition))
        np.fill_diagonal(values, 0.0)
        total = 60.0 * np.log(values.sum()) if latent == "E" else plan_rows(plan, np.exp(log_kernel))
        return -exaggeration * (means * between).sum() + total

    def plan_rows(plan, kernel_values):
        """Σ_i Σ_k T_ik log Σ_{j≠i} Σ_l T_jl k_kl."""
        to_places = plan @ kernel_values
        return sum(plan[i] @ np.log(np.maximum(to_places.sum(axis=0) - to_places[i], 1e-300)) for i in range(60))

    shares = np.linspace(0.0, 1.0, 9)
    values = np.array([loss(share) for share in shares])
    assert values[0] == pytest.approx(coupling.value(PLACES[np.r_[1, LABELS[1:]]]), rel=1e-9)
    chord = values[0] + shares * (values[-1] - values[0])
    assert (values >= chord - 1e-9 * np.abs(values)).all()


def test_groups_follow_the_graph():
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(6)).posterior(X)
    groups = groups_of(law, 3, np.random.RandomState(0))
    assert adjusted_rand_score(groups, np.repeat([0, 1, 2], 20)) == 1.0
    np.testing.assert_array_equal(groups_of(law, 60, np.random.RandomState(0)), np.arange(60))


def test_drawn_graphs_have_the_mean_between_groups():
    law = GroupedPosterior(gc.GraphModel("gaussian", "D", gc.Perplexity(6)).posterior(X), LABELS)
    drawn = sum(law.sample(seed).toarray() for seed in range(400)) / 400
    mean = law.support.to_csr(law.edge_means).toarray()
    assert np.abs(drawn - mean).max() < 5.0 * np.sqrt(mean.max() / 400)
    rows, columns = law.sample_edges(3)
    np.testing.assert_array_equal(np.argwhere(law.sample(3).toarray()), np.stack([rows, columns], axis=1))
    with pytest.raises(ValueError, match="no formula"):
        law.log_prob(np.zeros((7, 7)))


@pytest.mark.parametrize("method", [gc.TSNE(perplexity=8), gc.SNE(perplexity=8)], ids=["t-SNE", "SNE"])
def test_a_fit_is_a_map_of_its_method(method):
    reduced = gc.DistR(method, n_prototypes=6, random_state=0).fit(X)
    objective = gc.CrossEntropy(reduced.posterior_, reduced.sentence.latent)
    assert reduced.loss_ == pytest.approx(objective.value(reduced.prototypes_[reduced.labels_]), rel=1e-9)
    assert (
        np.linalg.norm(
            np.stack(
                [
                    objective.gradient(reduced.embedding_)[reduced.labels_ == k].sum(axis=0)
                    for k in range(len(reduced.prototypes_))
                ]
            )
        )
        < 0.05
    )
    assert adjusted_rand_score(reduced.labels_, np.repeat([0, 1, 2], 20)) > 0.4
    for label in np.unique(reduced.labels_):
        assert len({0, 1, 2} & set(np.repeat([0, 1, 2], 20)[reduced.labels_ == label])) == 1
    assert (reduced.predict(X) == reduced.labels_).mean() > 0.9
    again = gc.DistR(method, n_prototypes=6, random_state=0, n_jobs=1).fit(X)
    np.testing.assert_array_equal(again.embedding_, reduced.embedding_)


def test_mixtures_callbacks_and_limits():
    seen = []
    method = gc.TSNE(perplexity=(4, 8), callback=lambda iteration, loss, Z: seen.append((iteration, Z.shape)))
    reduced = gc.DistR(method, n_prototypes=6, random_state=0).fit(X)
    objective = gc.CrossEntropy(reduced.posterior_, reduced.sentence.latent)
    assert reduced.loss_ == pytest.approx(objective.value(reduced.embedding_), rel=1e-9)
    assert {shape for _, shape in seen} == {(60, 2)}
    assert max(iteration for iteration, _ in seen) == reduced.n_iter_
    for call in (lambda: reduced.update(X[:3]), reduced.uncertainty):
        with pytest.raises(ValueError, match="places"):
            call()


def test_every_descent_has_the_iterations_of_the_method():
    seen = []
    method = gc.TSNE(perplexity=8, max_iter=7, callback=lambda i, loss, Z: seen.append(i))
    reduced = gc.DistR(method, n_prototypes=6, random_state=0).fit(X)
    assert len(seen) > 2
    assert np.diff(sorted(set(seen))).max() <= 7
    assert reduced.n_iter_ == max(seen)


def test_as_many_places_as_points_give_the_plain_method():
    plain = gc.TSNE(perplexity=8, random_state=0).fit(X)
    reduced = gc.DistR(gc.TSNE(perplexity=8), n_prototypes=60, random_state=0).fit(X)
    assert reduced.loss_ < plain.loss_ + 1e-3 * abs(plain.loss_)


def test_the_inverse_of_a_place_is_the_mean_of_its_points():
    shared = gc.DistR(gc.TSNE(perplexity=8, max_iter=20), n_prototypes=6, random_state=0).fit(X)
    for k, place in enumerate(shared.prototypes_):
        mean = X[shared.labels_ == k].mean(axis=0)
        np.testing.assert_allclose(shared.inverse_transform(place[None])[0], mean, rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (gc.UMAP(), "cross-entropy only"),
        (gc.SNEkhorn(perplexity=8), "prior B, D or E"),
        (gc.TSNE(terms=[gc.LargeScale()]), "terms"),
        (gc.TSNE(n_landmarks=20), "part of the rows"),
        (gc.LaptSNE(batch_size=10, n_clusters=3), "batches of one graph's rows"),
        (gc.GraphCoupling(gc.GraphModel("gaussian", "B"), gc.GraphModel(gc.Odds(gc.Student()), "B")), "at distance 0"),
    ],
)
def test_methods_that_cannot_share_places(method, message):
    with pytest.raises(ValueError, match=message):
        gc.DistR(method, n_prototypes=5).fit(X)
