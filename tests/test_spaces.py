"""Maps in curved spaces, against distances by other formulas, losses summed in plain NumPy, and their flat limit."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform
from scipy.stats import spearmanr
from sklearn.neighbors import kneighbors_graph

import graphcouple as gc
from graphcouple.couplings import Held, OriginDistances, OriginMismatch
from graphcouple.graphs import Support
from graphcouple.laws import Hyperbolic, Spherical
from graphcouple.optimize import position_uncertainty
from graphcouple.summation import LogKernel
from graphcouple.summation.curved import CurvedSums
from tests.reference import dense, numerical_gradient, relative_error

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 5))
LAW = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5))
SPACES = [Hyperbolic(), Hyperbolic(3.0), Spherical(2.5)]


def model_distances(space, Z):
    """Return distances from points of the hyperboloid, or of the sphere, in one dimension more."""
    r = space.from_centre(np.linalg.norm(Z, axis=1))[0] / space.radius
    direction = Z / np.linalg.norm(Z, axis=1)[:, None]
    if isinstance(space, Hyperbolic):
        u, w = np.sinh(r)[:, None] * direction, np.cosh(r)
        return space.radius * np.arccosh(np.maximum(np.outer(w, w) - u @ u.T, 1.0))
    u = np.column_stack([np.sin(r)[:, None] * direction, np.cos(r)])
    return space.radius * np.arccos(np.clip(u @ u.T, -1.0, 1.0))


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("q", [1, 2, 4])
def test_distances_are_those_of_the_model_in_one_dimension_more(space, q):
    Z = 2.0 * RNG.normal(size=(30, q))
    distances = space.between(Z)
    apart = ~np.eye(30, dtype=bool)
    np.testing.assert_allclose(distances[apart], model_distances(space, Z)[apart], atol=1e-6)
    assert space(Z[3], Z[7]) == pytest.approx(distances[3, 7], rel=1e-12)
    np.testing.assert_allclose(
        space.between(Z, np.zeros((1, q)))[:, 0],
        model_distances(space, np.vstack([Z, 1e-9 * Z[:1]]))[:-1, -1],
        atol=1e-6,
    )


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_distances_from_the_centre_are_distances_beyond_the_antipode_too(space):
    lengths = np.array([0.3, 4.0, 7.8, 7.9, 12.0, 15.6, 15.8, 20.0, 25.0])
    r, slope = space.from_centre(lengths)
    np.testing.assert_allclose(r, space.between(lengths[:, None] * [[0.6, 0.8]], np.zeros((1, 2)))[:, 0], atol=1e-7)
    ends = [space.from_centre(lengths + step)[0] for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, rtol=1e-6)


def test_hyperbolic_maps_have_the_areas_of_the_space():
    """A disc of radius r has the area 4π sinh²(r/2)."""
    z = np.array([0.5, 3.0, 40.0])
    r = Hyperbolic().from_centre(z)[0]
    np.testing.assert_allclose(np.pi * z**2, 4.0 * np.pi * np.sinh(0.5 * r) ** 2)


@pytest.mark.parametrize("space", [Hyperbolic(), Hyperbolic(3.0)], ids=str)
@pytest.mark.parametrize("q", [2, 3])
def test_the_inverse_metric_is_that_of_small_steps(space, q):
    Z, h = 2.0 * RNG.normal(size=(5, q)), 1e-4
    moved = [[z + h * (a + b) / 2.0 for a in np.eye(q) for b in np.eye(q)] for z in Z]
    squares = np.array([space.between(np.array(near), z[None])[:, 0] ** 2 for near, z in zip(moved, Z, strict=True)])
    squares = squares.reshape(5, q, q) / h**2
    own = np.einsum("iaa->ia", squares)
    metrics = 2.0 * squares - 0.5 * (own[:, :, None] + own[:, None])
    forces = RNG.normal(size=(5, 2 * q))
    wanted = np.linalg.solve(metrics[:, None], forces.reshape(5, 2, q)[..., None]).reshape(5, 2 * q)
    np.testing.assert_allclose(space.raised(forces, Z), wanted, rtol=1e-3)


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("prior", ["B", "D", "E"])
def test_value_and_gradient(space, prior):
    posterior = LAW.posterior(X)
    objective = gc.CrossEntropy(posterior, gc.GraphModel("student", prior, metric=space))
    Z = 2.0 * RNG.normal(size=(30, 2))
    # Series take the place of quotients at the centre.
    Z[0], Z[1] = 0.0, 1e-5
    k = 1.0 / (1.0 + space.between(Z) ** 2)
    np.fill_diagonal(k, 0.0)
    partition = {"B": np.log1p(k).sum(), "D": np.log(k.sum(axis=1)).sum(), "E": 30 * np.log(k.sum())}[prior]
    apart = ~np.eye(30, dtype=bool)
    loss, gradient = objective.value_and_grad(Z)
    assert loss == pytest.approx(partition - (dense(posterior.mean())[apart] * np.log(k[apart])).sum(), rel=1e-12)
    assert relative_error(gradient, numerical_gradient(objective.value, Z)) < 1e-6


def test_a_graph_without_edges_is_not_one_of_all():
    none = Support(np.zeros(31, dtype=np.int32), np.zeros(0, dtype=np.int32))
    sums = CurvedSums(Hyperbolic()).edge_sum(none, np.zeros(0), LogKernel(gc.Student()))
    value, gradient = sums.evaluate(RNG.normal(size=(30, 2)))
    assert value == 0.0
    assert not gradient.any()


@pytest.mark.parametrize("space", [Hyperbolic, Spherical])
def test_a_large_radius_is_flat(space):
    laws = [gc.GraphModel("student", "E", metric=metric) for metric in ("euclidean", space(1e5))]
    graph = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(3), n_neighbors=8).posterior(X)
    Z = RNG.normal(size=(30, 2))
    (flat, forces), (curved, bent) = (gc.CrossEntropy(graph, law).value_and_grad(Z) for law in laws)
    assert curved == pytest.approx(flat, rel=1e-8)
    np.testing.assert_allclose(bent, forces, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_effective_repulsion_and_threads(space):
    fuzzy = gc.GraphModel(gc.Odds(gc.Exponential()), "B", n_neighbors=5, symmetrize="threshold").posterior(X)
    latent = gc.GraphModel(gc.Odds(gc.RationalPower(1.6, 0.9)), "B", metric=space)
    Z = 2.0 * RNG.normal(size=(30, 3))
    one, two = (gc.EffectiveCrossEntropy(fuzzy, latent, n_jobs=jobs) for jobs in (1, 2))
    assert relative_error(one.gradient(Z), numerical_gradient(one.value, Z)) < 1e-6
    np.testing.assert_array_equal(one.gradient(Z), two.gradient(Z))


def test_trees_are_less_distorted_than_in_the_plane():
    """Rank correlation of distances along a binary tree and on the map: 0.95 against 0.7 at the defaults."""
    tree = nx.balanced_tree(2, 6)
    along = np.asarray(nx.floyd_warshall_numpy(tree))
    options = {"perplexity": 15, "metric": "precomputed", "random_state": 0, "max_iter": 400}
    flat = gc.TSNE(**options).fit_transform(along)
    cosne = gc.COSNE(**options).fit(along)
    space = cosne.sentence.latent.metric
    plane, curved = np.linalg.norm(flat[:, None] - flat[None], axis=2), space.between(cosne.embedding_)
    pairs = np.triu_indices(len(along), 1)
    ranks = [spearmanr(along[pairs], distances[pairs]).statistic for distances in (plane, curved)]
    assert ranks[1] > ranks[0] + 0.1
    assert ((cosne.disc_**2).sum(axis=1) < 1).all()
    np.testing.assert_allclose(
        2.0 * np.arctanh(np.linalg.norm(cosne.disc_, axis=1)), space.between(cosne.embedding_, np.zeros((1, 2)))[:, 0]
    )


@pytest.mark.parametrize("space", [None, *SPACES], ids=str)
def test_distances_from_the_centre(space):
    wanted = RNG.uniform(size=30)
    objective = OriginMismatch(wanted, space)
    Z = 2.0 * RNG.normal(size=(30, 2))
    r = np.linalg.norm(Z, axis=1) if space is None else space.from_centre(np.linalg.norm(Z, axis=1))[0]
    scale = (r @ wanted) / (wanted @ wanted)
    assert objective.value(Z) == pytest.approx(30 * ((r - scale * wanted) ** 2).sum() / (r @ r), rel=1e-12)
    assert relative_error(objective.value_and_grad(Z)[1], numerical_gradient(objective.value, Z)) < 1e-6
    # Points in the centre keep none of the distances, and no map is worse.
    assert objective.value(0.0 * Z) == 30.0 > objective.value(Z)
    assert OriginMismatch(wanted, space, np.full(30, 2.0)).value(0.0 * Z) == 60.0
    # A point in the centre of a small map feels no force.
    small = np.vstack([np.zeros((1, Z.shape[1])), 1e-2 * Z[1:]])
    assert np.isfinite(objective.gradient(small)).all()
    assert (objective.gradient(0.0 * Z) == 0.0).all()
    assert OriginMismatch(0.0 * wanted, space).value(Z) == OriginMismatch(0.0 * wanted, space).value(0.0 * Z) == 0.0


def test_distances_of_the_data_from_their_mean():
    sentence = gc.TSNE(perplexity=5, max_iter=20, random_state=0).sentence
    far = np.linalg.norm(X - X.mean(axis=0), axis=1)
    problem = gc.couplings.Problem(
        X, None, LAW.posterior(X), sentence.latent, 2, gc.Exact(), "euclidean", np.random.RandomState(0), 1
    )
    np.testing.assert_allclose(OriginDistances().bind(problem).wanted, far)
    for offset in (0.0, 1e8):
        sparse = dataclasses.replace(problem, X=csr_array(X + offset))
        np.testing.assert_allclose(OriginDistances().bind(sparse).wanted, far, rtol=1e-7)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    given = gc.COSNE(perplexity=5, metric="precomputed", max_iter=20, random_state=0).fit(
        squareform(squareform(distances, checks=False))
    )
    assert given.term_losses_[0] == pytest.approx(OriginMismatch(far, Hyperbolic()).value(given.embedding_), rel=1e-9)
    inside = gc.COSNE(perplexity=5, metric=Hyperbolic(), max_iter=20, random_state=0).fit(X)
    depth = Hyperbolic().from_centre(np.linalg.norm(X, axis=1))[0]
    assert inside.term_losses_[0] == pytest.approx(
        OriginMismatch(depth, Hyperbolic()).value(inside.embedding_), rel=1e-9
    )
    own = gc.COSNE(perplexity=5, origin_weight=0, terms=[OriginDistances(distances=depth)], max_iter=20, random_state=0)
    assert own.fit(X).term_losses_[0] == pytest.approx(
        OriginMismatch(depth, Hyperbolic()).value(own.embedding_), rel=1e-9
    )


def test_a_map_of_the_sphere_is_inverted_by_distances_of_the_sphere(tmp_path):
    sphere = Spherical(2.0)
    fitted = with_latent(gc.GraphModel("student", "E", metric=sphere)).fit(X)
    Z = fitted.embedding_
    r = np.linalg.norm(Z, axis=1)
    i = r.argmax()
    # The far way round to the same place: the points that are near on the chart are far on the sphere.
    around = -(2.0 * np.pi * sphere.radius - r[i]) * Z[i] / r[i]
    np.testing.assert_allclose(fitted.inverse_transform(around[None])[0], X[i], atol=1e-6)
    # The law that has only distances gives the same weights.
    places = Z[:4] + 0.3
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(29 / 3), metric="precomputed", n_neighbors=29)
    edges = law.given(sphere.between(Z)).new_edges(sphere.between(places, Z)).to_csr().toarray()
    wanted = edges / edges.sum(axis=1, keepdims=True) @ X
    np.testing.assert_allclose(fitted.inverse_transform(places), wanted, rtol=1e-8)
    fitted.save(tmp_path / "map")
    again = gc.load(tmp_path / "map")
    fitted.set_params(latent=gc.GraphModel("student", "E"))
    for each in (fitted, again):
        np.testing.assert_allclose(each.inverse_transform(places), wanted, rtol=1e-8)


def test_separated_clusters_stay_within_reach():
    clusters = np.vstack([center + 0.1 * RNG.normal(size=(60, 4)) for center in 50.0 * np.eye(4)])
    cosne = gc.COSNE(perplexity=8, random_state=0).fit(clusters)
    r = Hyperbolic().from_centre(np.linalg.norm(cosne.embedding_, axis=1))[0]
    assert r.max() < 12
    assert len(np.unique(cosne.embedding_.round(4), axis=0)) == 240


def with_latent(law, coupling="cross-entropy", **parts):
    sentence = gc.TSNE(perplexity=5, max_iter=20, random_state=0).sentence
    return gc.GraphCoupling(**sentence.replace(latent=law, coupling=coupling, **parts))


def test_what_needs_flat_maps_says_so(tmp_path):
    law = gc.GraphModel("student", "E", metric=Hyperbolic())
    for method, match in [
        (with_latent(law, terms=[gc.Density()]), "3 × local radii measures Euclidean distances"),
        (with_latent(law, "matching"), "measures Euclidean distances, but the latent law is of hyperbolic"),
        (with_latent(law, summation="barnes_hut"), "sums in hyperbolic space of radius 1 are exact"),
        (with_latent(gc.GraphModel("gaussian", "E", metric=Hyperbolic())), "falls like a power of the distance"),
        (
            with_latent(gc.GraphModel("student", "E", gc.ConstantBandwidth(2.0), metric=Hyperbolic())),
            "takes no bandwidth",
        ),
        (
            with_latent(gc.GraphModel("student", gc.FixedEdges(np.ones((30, 30))), metric=Hyperbolic())),
            "no graph as its edge",
        ),
    ]:
        with pytest.raises(ValueError, match=match):
            method.fit(X)
    with pytest.raises(ValueError, match="this coupling measures Euclidean distances"):
        gc.couplings.ContrastiveCrossEntropy(LAW.posterior(X), gc.GraphModel("student", "D", metric=Hyperbolic()))
    sampled = gc.UMAP(n_neighbors=5, repulsion="sampled", max_iter=2).sentence
    curved = gc.GraphModel(sampled.latent.kernel, "B", metric=Hyperbolic())
    with pytest.raises(ValueError, match="NegativeSampling measures Euclidean distances, not hyperbolic"):
        gc.GraphCoupling(**sampled.replace(latent=curved)).fit(X)
    with pytest.raises(ValueError, match="radius must be"):
        Hyperbolic(0.0)
    cosne = gc.COSNE(perplexity=5, max_iter=20, random_state=0).fit(X)
    with pytest.raises(ValueError, match="positions in hyperbolic space of radius 1 have no such law here"):
        cosne.uncertainty()
    for space in (Hyperbolic(2.0), Spherical(5.0)):
        objective = gc.CrossEntropy(LAW.posterior(X), gc.GraphModel("student", "E", metric=space))
        term = OriginMismatch(np.ones(30), space)
        for each in (objective, objective + 0.1 * Held(objective, np.zeros(30, dtype=bool)), 1.0 * term):
            with pytest.raises(ValueError, match=f"positions in {space} have no such law here; fit a flat map"):
                position_uncertainty(each, cosne.embedding_)
    with pytest.warns(
        UserWarning, match=r"COSNE's map is curved, .* are laws.Hyperbolic\(radius=1.0\).between"
    ) as told:
        gc.compare([gc.COSNE(perplexity=5, max_iter=2)], X, seeds=2)
    assert sum("is curved" in str(each.message) for each in told) == 1
    disc = cosne.disc_
    np.testing.assert_array_equal(cosne.set_params(radius=5.0).disc_, disc)
    with pytest.raises(ValueError, match="COSNE has no law that places new points"):
        cosne.transform(X)
    with pytest.raises(ValueError, match="COSNE has no law that places the rows beyond n_landmarks=20"):
        gc.COSNE(n_landmarks=20).fit(X)
    with pytest.raises(
        ValueError, match=r"sparse graph of distances .* or leave out the term, in COSNE by origin_weight=0"
    ):
        gc.COSNE(metric="precomputed", n_neighbors=5, perplexity=2).fit(kneighbors_graph(X, 8, mode="distance"))
    far = np.linalg.norm(X, axis=1)
    for distances in (-far, far[:3]):
        with pytest.raises(ValueError, match="distances must be 30 finite numbers, none negative"):
            gc.COSNE(terms=[OriginDistances(distances=distances)], perplexity=5).fit(X)
    law = gc.GraphModel("student", "E", metric=Hyperbolic())
    many = gc.CrossEntropy(
        gc.GraphModel(gc.Gaussian(), "D", n_neighbors=2).posterior(RNG.normal(size=(30_001, 1))), law
    )
    with pytest.raises(ValueError, match="compare all pairs of at most 30000 points, got 30001"):
        many.value(np.zeros((30_001, 2)))
    cosne.save(tmp_path / "map")
    np.testing.assert_array_equal(gc.load(tmp_path / "map").disc_, cosne.disc_)
