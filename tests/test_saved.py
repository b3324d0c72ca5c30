"""Estimators in files: nothing is lost that new points need, nothing is run, and old files stay readable."""

import functools
import io
import json
import pickle
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsTransformer

import graphcouple as gc
from graphcouple._support import storage
from graphcouple.neighbors import InvertedFile

FIRST_VERSION = Path(__file__).parent / "data" / "tsne_version1.gc"


@pytest.fixture(scope="module")
def iris():
    X, _ = gc.datasets.load("iris")
    return X[::2], X[1::2]


METHODS = {
    "TSNE": gc.TSNE(perplexity=10),
    "scales": gc.TSNE(perplexity=(5, 30)),
    "SNE in float32": gc.SNE(perplexity=10),
    "infonc-tsne": gc.InfoNCTSNE(perplexity=10, max_iter=50),
    "snekhorn": gc.SNEkhorn(perplexity=10, max_iter=50),
    "UMAP": gc.UMAP(),
    "UMAP full": gc.UMAP(repulsion="full", metric="manhattan"),
    "LargeVis": gc.LargeVis(perplexity=10, summation="exact"),
    "hierarchical": gc.HierarchicalCoupling(gc.TSNE(perplexity=10), weight=0.5),
    "ccpca": gc.CCPCA(perplexity=10),
    "precision": gc.PrecisionCoupling(),
    "mds": gc.ClassicalMDS(metric="manhattan", n_landmarks=30),
    "kernel pca": gc.KernelPCA(kernel=gc.Student(2.0)),
    "isomap": gc.Isomap(n_neighbors=5, n_landmarks=30),
    "lle": gc.LocallyLinearEmbedding(),
    "eigenmaps": gc.LaplacianEigenmaps(perplexity=10),
    "phate": gc.PHATE(perplexity=10),
    "diffusion": gc.DiffusionMaps(perplexity=10, t=3),
    "autoencoder": gc.LinearAutoencoder(),
    "stress": gc.MetricMDS(weights="sammon"),
    "composed": gc.GraphCoupling(
        gc.GraphModel(
            gc.Exponential(), "D", gc.SelfTuning(5), n_neighbors=20, metric="minkowski", metric_params={"p": 3}
        ),
        gc.GraphModel(gc.Student(0.5), gc.FixedEdges(0.5), gc.ConstantBandwidth(2.0)),
        terms=[gc.Anchors([0, 1], np.zeros((2, 2)), 0.1)],
        summation=gc.Exact(),
        init=np.random.default_rng(0).normal(size=(75, 2)),
    ),
}


@pytest.mark.filterwarnings(r"ignore:the graph has \d+ connected components")
@pytest.mark.parametrize("name", METHODS)
def test_a_loaded_estimator_has_the_same_bits(iris, tmp_path, name):
    X, X_new = iris
    if name.endswith("float32"):
        X, X_new = X.astype(np.float32), X_new.astype(np.float32)
    method = METHODS[name]
    if "random_state" in method.get_params():
        method.set_params(random_state=3)
    if isinstance(method, gc.estimators.CouplingEstimator):
        method.set_params(max_iter=60)
    fitted = method.fit(X)
    fitted.save(tmp_path / "model")
    again = gc.load(tmp_path / "model")
    assert type(again) is type(fitted)
    assert repr(again) == repr(fitted)
    np.testing.assert_array_equal(again.transform(X_new), fitted.transform(X_new))
    np.testing.assert_array_equal(again.embedding_, fitted.embedding_)
    for attribute, value in vars(fitted).items():
        if attribute.endswith("_") and attribute not in fitted._not_saved:
            if isinstance(value, list):
                assert all(np.array_equal(a, b) for a, b in zip(getattr(again, attribute), value, strict=True))
            else:
                np.testing.assert_array_equal(getattr(again, attribute), value, err_msg=attribute)
    if isinstance(fitted, gc.estimators.CouplingEstimator):
        np.testing.assert_array_equal(again.posterior_.edge_means, fitted.posterior_.edge_means)
        np.testing.assert_array_equal(again.isolation(X_new), fitted.isolation(X_new))
        np.testing.assert_array_equal(
            again.inverse_transform(again.embedding_[:3]), fitted.inverse_transform(fitted.embedding_[:3])
        )


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
def test_many_points_are_searched_alike_after_loading(tmp_path):
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(6000, 20)).astype(np.float32), rng.normal(size=(200, 20)).astype(np.float32)
    fitted = gc.TSNE(perplexity=(5, 10), random_state=0, max_iter=10).fit(X)
    expected = fitted.transform(X_new)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(gc.load(tmp_path / "model").transform(X_new), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X_new), expected)


@pytest.mark.parametrize("method", [gc.TSNE(perplexity=10), gc.UMAP(), gc.LargeVis(perplexity=10)])
def test_files_and_pickles_hold_little_more_than_points_and_places(tmp_path, method):
    X = np.random.default_rng(0).normal(size=(4000, 50)).astype(np.float32)
    fitted = method.set_params(random_state=0, max_iter=5).fit(X)
    fitted.transform(X[:10] + 1)
    needed = X.nbytes + fitted.embedding_.nbytes
    fitted.save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 1.2 * needed
    assert len(pickle.dumps(fitted)) < 1.3 * needed
    assert fitted.posterior_.n_nodes == 4000


def test_distances_and_neighbors_that_were_given_are_kept_by_pickles_alone(iris, tmp_path):
    X, X_new = iris
    by_distance = gc.TSNE(perplexity=5, metric="precomputed", random_state=0, max_iter=50).fit(cdist(X, X))
    by_distance.save(tmp_path / "distances")
    again = gc.load(tmp_path / "distances")
    np.testing.assert_array_equal(again.transform(cdist(X_new, X)), by_distance.transform(cdist(X_new, X)))
    with pytest.raises(ValueError, match="does not keep precomputed distances"):
        _ = again.posterior_
    found = gc.neighbors.nearest_neighbors(X, 12)
    given = (found[0].indices.reshape(-1, 12), np.sqrt(found[1]).reshape(-1, 12))
    by_neighbor = gc.TSNE(perplexity=4, random_state=0, max_iter=50).fit(X, neighbors=given)
    by_neighbor.save(tmp_path / "neighbors")
    again = gc.load(tmp_path / "neighbors")
    np.testing.assert_array_equal(again.transform(X_new), by_neighbor.transform(X_new))
    with pytest.raises(ValueError, match="does not keep the neighbors"):
        _ = again.posterior_
    for fitted in (by_distance, by_neighbor):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).point_losses(), fitted.point_losses())


def test_an_own_graph_is_drawn_and_its_drawing_loaded(tmp_path):
    weights = sp.csr_array(np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1))
    drawn = gc.GraphCoupling(weights, gc.GraphModel(gc.Student(), "E"), random_state=0, max_iter=50).fit()
    drawn.save(tmp_path / "ring")
    again = gc.load(tmp_path / "ring")
    np.testing.assert_array_equal(again.embedding_, drawn.embedding_)
    with pytest.raises(ValueError, match="new points need a law"):
        again.transform(np.zeros((1, 2)))
    assert again.posterior_.entropy() == drawn.posterior_.entropy()
    assert pickle.loads(pickle.dumps(drawn)).posterior_.n_nodes == 12


def test_updates_go_on_after_loading(iris, tmp_path):
    X, X_new = iris
    fitted = gc.TSNE(perplexity=10, random_state=0, max_iter=50).fit(X)
    fitted.save(tmp_path / "model")
    expected = fitted.update(X_new[:20], move="new").embedding_
    np.testing.assert_array_equal(gc.load(tmp_path / "model").update(X_new[:20], move="new").embedding_, expected)


def test_names_of_columns_are_kept(iris, tmp_path):
    frame = pd.DataFrame(iris[0], columns=list("abcd"))
    gc.TSNE(perplexity=10, random_state=0, max_iter=20).fit(frame).save(tmp_path / "model")
    assert gc.load(tmp_path / "model").feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize(
    "method", [gc.PrecisionCoupling(), gc.HierarchicalCoupling(gc.TSNE(max_iter=20, random_state=0))]
)
def test_the_output_that_was_set_is_kept(iris, tmp_path, method):
    X, X_new = iris
    method.set_output(transform="pandas").fit(X).save(tmp_path / "model")
    again = gc.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.transform(X_new), method.transform(X_new))
    _with_tree(tmp_path / "model", lambda tree: tree["content"]["dict"].update(output="code"))
    with pytest.raises(ValueError, match="the file is damaged: scikit-learn has no output"):
        gc.load(tmp_path / "model")


@dataclass(frozen=True)
class Wide(gc.Kernel):
    """1/(1 + d²/w²)."""

    width: float = 2.0

    def log(self, sq_dist):
        return -np.log1p(sq_dist / self.width**2)

    def grad_log(self, sq_dist):
        return -1.0 / (self.width**2 + sq_dist)


def test_code_is_refused_unless_the_reader_has_it(iris, tmp_path):
    X, X_new = iris
    own = gc.GraphCoupling(
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)), gc.GraphModel(Wide(3.0), "E"), init="pca"
    )
    own.set_params(random_state=0, max_iter=30).fit(X).save(tmp_path / "own")
    with pytest.raises(ValueError, match=r"class 'Wide'.*classes=\[Wide\]"):
        gc.load(tmp_path / "own")
    again = gc.load(tmp_path / "own", classes=[Wide])
    assert again.latent.kernel == Wide(3.0)
    np.testing.assert_array_equal(again.transform(X_new), own.transform(X_new))

    def taxi(a, b):
        return float(np.abs(a - b).sum())

    by_function = gc.TSNE(perplexity=10, metric=taxi, random_state=0, max_iter=20).fit(X)
    with pytest.raises(TypeError, match=r"the model\.parameters\.metric is a function, which cannot be saved"):
        by_function.save(tmp_path / "function")
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), search=KNeighborsTransformer(n_neighbors=20))
    searched = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), init="pca", random_state=0, max_iter=20).fit(X)
    with pytest.raises(TypeError, match="KNeighborsTransformer"):
        searched.save(tmp_path / "search")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]
    with_callback = gc.TSNE(perplexity=10, random_state=0, max_iter=20, callback=lambda *_: False).fit(X)
    with_callback.save(tmp_path / "callback")
    assert gc.load(tmp_path / "callback").callback is None
    wrapped = gc.TwoScaleCoupling(with_callback, random_state=0).fit(X)
    wrapped.save(tmp_path / "callback")
    assert gc.load(tmp_path / "callback").estimator.callback is None
    assert wrapped.estimator.callback is not None


def _with_tree(path, change):
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(entries["model.json"])
    change(tree)
    entries["model.json"] = json.dumps(tree).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def test_a_file_is_never_unpickled_and_foreign_files_are_refused(iris, tmp_path):
    gc.TSNE(perplexity=10, random_state=0, max_iter=20).fit(iris[0]).save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert all(name == "model.json" or name.endswith(".npy") for name in archive.namelist())
        entries = {name: archive.read(name) for name in archive.namelist()}
    harmful = io.BytesIO()
    np.lib.format.write_array(harmful, np.array([functools.partial(exec, "1")], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "harmful", "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, harmful.getvalue() if name == "array0.npy" else content)
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        gc.load(tmp_path / "harmful")
    (tmp_path / "text").write_text("not a model")
    with pytest.raises(ValueError, match="not a zip file"):
        gc.load(tmp_path / "text")
    np.savez(tmp_path / "arrays.npz", X=iris[0])
    with pytest.raises(ValueError, match=r"has no model\.json"):
        gc.load(tmp_path / "arrays.npz")
    with pytest.raises(FileNotFoundError):
        gc.load(tmp_path / "absent")
    _with_tree(tmp_path / "model", lambda tree: tree["content"]["dict"].update({"class": "Unknown"}))
    with pytest.raises(ValueError, match="class 'Unknown'"):
        gc.load(tmp_path / "model")


def test_versions_newer_are_refused_and_older_ones_upgraded(iris, tmp_path, monkeypatch):
    fitted = gc.TSNE(perplexity=10, random_state=0, max_iter=20).fit(iris[0])
    fitted.save(tmp_path / "model")
    expected = fitted.transform(iris[1])

    def rename(tree):
        parameters = tree["content"]["dict"]["parameters"]["dict"]
        parameters["perplexity"] = parameters.pop("effective_neighbors")
        return tree

    def older(tree):
        parameters = tree["content"]["dict"]["parameters"]["dict"]
        parameters["effective_neighbors"] = parameters.pop("perplexity")

    monkeypatch.setattr(storage, "VERSION", storage.VERSION + 1)
    monkeypatch.setitem(storage.UPGRADES, storage.VERSION - 1, rename)
    _with_tree(tmp_path / "model", older)
    again = gc.load(tmp_path / "model")
    assert again.perplexity == 10
    np.testing.assert_array_equal(again.transform(iris[1]), expected)
    again.save(tmp_path / "newer")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="upgrade graphcouple"):
        gc.load(tmp_path / "newer")
    _with_tree(tmp_path / "newer", lambda tree: tree.update(version=0))
    with pytest.raises(ValueError, match="can no longer be read"):
        gc.load(tmp_path / "newer")


def test_the_first_version_is_still_read():
    again = gc.load(FIRST_VERSION)
    X = np.linspace(0.0, 1.0, 60).reshape(20, 3) ** 2
    np.testing.assert_array_equal(again.transform(X), again.embedding_)
    assert again.get_params()["perplexity"] == 5.0


def test_only_fitted_estimators_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        gc.TSNE().save(tmp_path / "model")


def test_the_lists_of_a_search_are_kept(digits, tmp_path, monkeypatch):
    import faiss

    X, new = digits[0][:900], digits[0][900:1000]
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10), 40, search="approximate")
    method = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), max_iter=20, random_state=0).fit(X)
    placed = method.transform(new)
    method.save(tmp_path / "model")
    pickled = pickle.dumps(method)
    monkeypatch.setattr(faiss, "Kmeans", None)
    again = gc.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(new), placed)
    again.save(tmp_path / "again")
    for copy in (gc.load(tmp_path / "again"), pickle.loads(pickled)):
        np.testing.assert_array_equal(copy.transform(new), placed)
    lists = method._given.distances._index.lists
    for name, wrong in [
        ("list_of", lists["list_of"][:-1]),
        ("list_of", lists["list_of"] + lists["means"].shape[0]),
        ("means", lists["means"][:, 1:]),
        ("mean", lists["mean"][1:]),
        ("n_searched", lists["n_searched"] + 10**6),
        ("n_candidates", 10**6),
        ("n_probed", 0),
    ]:
        with pytest.raises(ValueError, match="its search lists do not fit its points"):
            InvertedFile.from_lists(X, lists | {name: wrong})


@pytest.mark.parametrize("weights", [None, np.r_[2.0, np.ones(29)]], ids=["plain", "weighted"])
@pytest.mark.parametrize("prior", ["B", "D", "E", "S"])
def test_posteriors_as_input_come_back(prior, weights, tmp_path, rng):
    if prior == "S" and weights is not None:
        with pytest.raises(ValueError, match="weights"):
            gc.GraphModel("gaussian", prior).posterior(rng.normal(size=(30, 3)), sample_weight=weights)
        return
    law = gc.GraphModel("gaussian", prior, gc.Perplexity(5)).posterior(rng.normal(size=(30, 3)), sample_weight=weights)
    latent = gc.GraphModel("student", "B" if prior == "B" else "E")
    fitted = gc.GraphCoupling(law, latent, init="random", max_iter=15, random_state=0).fit()
    fitted.save(tmp_path / "model.gc")
    loaded = gc.load(tmp_path / "model.gc")
    np.testing.assert_array_equal(loaded.embedding_, fitted.embedding_)
    np.testing.assert_array_equal(loaded.input.edge_means, law.edge_means)
