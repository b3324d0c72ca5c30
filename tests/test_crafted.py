"""What comes from outside and is wrong: files, metrics, kernels, neighbours. Each is refused in words, or mended."""

import json
import os
import stat
import zipfile
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier, kneighbors_graph
from sklearn.pipeline import make_pipeline

import graphcouple as gc
from graphcouple.neighbors import distances_of
from graphcouple.optimize.monitor import Monitor, Stopping

X = np.random.default_rng(0).normal(size=(60, 4))


def saved(path, estimator):
    estimator.save(path)
    return path


def crafted(source, target, change):
    """A copy of a file, with its entries changed by a function of name and content."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return target


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(
        tmp_path_factory.mktemp("model") / "model.gc", gc.TSNE(perplexity=8, max_iter=30, random_state=0).fit(X)
    )


def arrays_changed(change):
    import io

    def changed(name, content):
        if not name.endswith(".npy"):
            return content
        array, file = change(np.load(io.BytesIO(content))), io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    return changed


def filled(value, shape):
    return arrays_changed(lambda array: np.full_like(array, value) if array.shape == shape else array)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (filled(np.nan, (60, 4)), "NaN"),
        (filled(np.inf, (60, 4)), "points are not finite"),
        (filled(np.inf, (60, 2)), "embedding is not finite"),
        (filled(1e300, (60, 4)), "whose squares overflow"),
        (arrays_changed(lambda array: array[1:] if array.shape == (60,) else array), "law does not fit"),
        (
            arrays_changed(lambda array: array.astype(int) if array.shape == (60, 2) else array),
            "not a table of numbers",
        ),
        (arrays_changed(lambda array: array.ravel() if array.shape == (60, 2) else array), "not a table of numbers"),
        (lambda name, content: content.replace(b'"scale"', b'"scala"'), "damaged .KeyError"),
        (lambda name, content: content.replace(b'"class": "TSNE"', b'"class": ["TSNE"]'), "which graphcouple does not"),
        (arrays_changed(lambda array: array[:7] if array.shape == (60, 2) else array), "60 points and 7 places"),
        (lambda name, content: content[:90] if name.endswith(".npy") else content, "damaged"),
        (lambda name, content: content[:40] if name == "model.json" else content, "damaged"),
        (lambda name, content: b"[" * 100_000 if name == "model.json" else content, "damaged"),
        (lambda name, content: content.replace(b'"array0"', b'"array99"'), "damaged"),
        (lambda name, content: content.replace(b"(60, 4)", b"(9060, 4)".ljust(7)), "damaged"),
    ],
    ids=[
        "nan",
        "inf",
        "map",
        "scale",
        "law",
        "integers",
        "flat",
        "member",
        "class",
        "rows",
        "array",
        "json",
        "deep",
        "missing",
        "header",
    ],
)
def test_crafted_models_are_refused(model, tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        gc.load(crafted(model, tmp_path / "crafted.gc", change))


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"unique": True}, lambda array: array[::-1]),
        ({"unique": True}, lambda array: array + 1),
        ({"unique": True}, lambda array: array[:-1]),
        ({"n_landmarks": 30}, lambda array: array + 60),
        ({"n_landmarks": 30}, lambda array: array - 60),
        ({"n_landmarks": 30}, lambda array: array.astype(float)),
    ],
)
def test_copies_and_landmarks_of_files_are_rows(tmp_path, options, change):
    path = saved(
        tmp_path / "model.gc",
        gc.TSNE(perplexity=8, max_iter=5, random_state=0, **options).fit(np.concatenate([X, X[:5]])),
    )
    fitted = gc.load(path)
    fitted.transform(X[:2])
    size = 65 if "unique" in options else fitted.landmarks_.size

    def changed(array):
        return change(array) if array.dtype.kind == "i" and array.shape == (size,) else array

    with pytest.raises(ValueError, match="copies"):
        gc.load(crafted(path, tmp_path / "crafted.gc", arrays_changed(changed)))


def test_generators_of_files_are_numpys(tmp_path):
    path = saved(tmp_path / "model.gc", gc.TSNE(random_state=np.random.RandomState(0), max_iter=5, perplexity=8).fit(X))
    gc.load(path)

    def moved(name, content):
        if name != "model.json":
            return content
        tree = json.loads(content)
        tree["content"]["dict"]["parameters"]["dict"]["random_state"]["random_state"][2] = 10**9
        return json.dumps(tree).encode()

    with pytest.raises(ValueError, match="random_state is not numpy's"):
        gc.load(crafted(path, tmp_path / "crafted.gc", moved))


def test_models_larger_than_the_limit_are_not_read(model, monkeypatch):
    monkeypatch.setattr("graphcouple._support.storage.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="more than the limit"):
        gc.load(model)


def test_files_keep_their_permissions_and_links(tmp_path):
    fitted = gc.PrecisionCoupling().fit(X)
    target, link = tmp_path / "model.gc", tmp_path / "link.gc"
    fitted.save(target)
    target.chmod(0o600)
    os.symlink(target, link)
    fitted.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(ValueError, match="is a folder"):
        fitted.save(tmp_path)


def test_a_checkpoint_sets_nothing_but_what_a_run_has_shown(tmp_path):
    objective = gc.PrecisionCrossEntropy(X)
    monitor = Monitor(objective, 10, Stopping(patience=5, check_every=1))
    with pytest.raises(ValueError, match="damaged"):
        monitor.recall({**monitor.remembered(), "check_finite": None})
    with pytest.raises(ValueError, match="damaged"):
        monitor.recall({"losses": []})


def test_a_full_disk_does_not_end_a_fit(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr("graphcouple._support.storage.write", full)
    with pytest.warns(UserWarning, match="No space left on device; the fit continues"):
        fitted = gc.TSNE(perplexity=8, max_iter=30, random_state=0, checkpoint=tmp_path / "run").fit(X)
    assert fitted.n_iter_ == 30


@pytest.mark.parametrize("found", [-1.0, np.nan, np.inf, "near", 1j, None], ids=str)
def test_metrics_of_ones_own_return_distances(found):
    with pytest.raises(ValueError, match="must return a finite number of at least 0"):
        gc.TSNE(perplexity=8, metric=lambda a, b: found).fit(X)


def test_metrics_that_fail_later_are_refused_too():
    ordered = X[np.argsort(X[:, 0])]
    with pytest.raises(ValueError, match="must return a finite number of at least 0 for two rows, got -"):
        gc.TSNE(perplexity=8, metric=lambda a, b: float(np.linalg.norm(a - b) - 20.0 * (a[0] > 1.0))).fit(ordered)


def test_metrics_of_ones_own_are_symmetric():
    with pytest.raises(ValueError, match=r"must be symmetric, but is .* take the mean of both directions"):
        gc.TSNE(perplexity=8, metric=lambda a, b: float(np.abs(a - b).sum() * (1 + (a[0] > b[0])))).fit(X)


def test_metrics_of_ones_own_are_zero_from_a_row_to_itself():
    with pytest.raises(
        ValueError, match=r"must be 0 from a row to itself, but is .* pass a distance, not a similarity"
    ):
        gc.TSNE(perplexity=8, metric=lambda a, b: float(np.exp(-np.square(a - b).sum()))).fit(X)
    # Rounding is no distance, and rows that are all equal have none.
    for points in (X, 0.0 * X):
        distances_of(points, lambda a, b: 1e-8 + float(np.abs(a - b).sum()))


def test_masked_entries_are_refused():
    with pytest.raises(ValueError, match="X has masked entries; impute or drop"):
        gc.TSNE(perplexity=8).fit(np.ma.masked_greater(X, 1.0))
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8))
    np.testing.assert_array_equal(law.posterior(np.ma.masked_greater(X, 1e9)).edge_means, law.posterior(X).edge_means)


def test_mahalanobis_takes_the_covariance():
    V = np.cov(X.T)
    by_V, by_inverse = (
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8), 30, metric="mahalanobis", metric_params=given).posterior(X)
        for given in ({"V": V}, {"VI": np.linalg.inv(V)})
    )
    np.testing.assert_allclose(by_V.edge_means, by_inverse.edge_means, rtol=1e-9)
    with pytest.raises(ValueError, match="invertible"):
        gc.TSNE(metric="mahalanobis", metric_params={"V": np.zeros((4, 4))}).fit(X)


@dataclass(frozen=True)
class NanAtZero(gc.Kernel):
    """log d² − log d² is NaN at 0."""

    def log(self, sq_dist):
        with np.errstate(all="ignore"):
            return -sq_dist + np.log(sq_dist) - np.log(sq_dist)

    def grad_log(self, sq_dist):
        return -1.0 + 0.0 * sq_dist


def test_kernels_are_numbers_at_distance_zero():
    with pytest.raises(ValueError, match="nan at distance 0"):
        gc.check_kernel(NanAtZero())


def test_kernels_have_names():
    assert gc.GraphModel("student", "E") == gc.GraphModel(gc.Student(), "E")
    with pytest.raises(ValueError, match="kernel"):
        gc.GraphModel("nothing", "E")


def test_few_given_neighbours_lower_the_perplexity():
    graph = kneighbors_graph(X, 14, mode="distance")
    with pytest.warns(
        UserWarning, match=r"lowered to 4\.67, since 14 neighbors of a point are given. Give at least 90"
    ):
        fitted = gc.TSNE(max_iter=400, random_state=0).fit(X, neighbors=graph)
    rows = np.add.reduceat(
        -fitted.posterior_.edge_means * np.log(np.maximum(fitted.posterior_.edge_means, 1e-300)),
        fitted.posterior_.support.indptr[:-1],
    )
    np.testing.assert_allclose(np.exp(rows), 14 / 3, rtol=1e-4)


def test_two_scales_take_matrices_of_scipy():
    counts = np.abs(X) * (np.abs(X) > 0.5)
    dense, sparse = (
        gc.TwoScaleCoupling(gc.TSNE(perplexity=8, random_state=0), random_state=0).fit(of).weight_
        for of in (counts, sp.csr_matrix(counts))
    )
    assert sparse == pytest.approx(dense, rel=0.2)


def test_weights_of_too_wide_a_range_are_refused():
    with pytest.raises(ValueError, match="above a ratio of 1e"):
        gc.TSNE(perplexity=8).fit(X, sample_weight=np.r_[1e300, np.ones(59)])


def test_two_columns_of_one_name():
    frame = pd.DataFrame(X, columns=list("abca"))
    with pytest.raises(ValueError, match="two columns named 'a'"):
        gc.TSNE().fit(frame)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (["x", "y", "z"], "'x' in column 'b'"),
        ([0, 1, np.nan], "NaN in column 'b'"),
        ([0, np.inf, 1], "infinity in column 'b'"),
        (np.arange(3).astype("M8[D]"), "dates, durations or other objects in column 'b'"),
        (np.arange(3).astype("m8[s]"), "objects in column 'b'"),
        ([object()] * 3, "objects in column 'b'"),
    ],
)
def test_a_column_that_cannot_be_used_is_named(values, match):
    with pytest.raises((TypeError, ValueError), match=match):
        gc.TSNE().fit(pd.DataFrame({"a": [0.0, 1.0, 3.0], "b": values}))


def test_the_first_column_with_the_value_that_is_named_is_named():
    frame = pd.DataFrame({"a": [0.0, np.inf, 3.0], "b": [np.nan, 1.0, 2.0]})
    with pytest.raises(ValueError, match="NaN in column 'b'"):
        gc.TSNE().fit(frame)
    with pytest.raises(TypeError, match=r"^Feature names are only supported"):
        gc.TSNE().fit(pd.DataFrame(np.eye(3), columns=["a", 1, "c"]))


def test_methods_without_weights_name_themselves():
    for method in (gc.CCPCA(), gc.AttractionRepulsionPCA()):
        with pytest.raises(TypeError, match=f"{type(method).__name__} takes no sample weights"):
            method.fit(np.eye(4), sample_weight=np.ones(4))


def test_complex_weights():
    with pytest.raises(TypeError, match="real numbers"):
        gc.TSNE(perplexity=8).fit(X, sample_weight=np.ones(60) * 1j)


@pytest.mark.parametrize("content", [b"junk", b"PK\x03\x04junk"])
def test_files_of_arrays_that_hold_none(tmp_path, content):
    from graphcouple.datasets._files import read_points

    path = tmp_path / "junk.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"junk\.npz is not a NumPy file") as refused:
        read_points(path, None)
    assert "pickle" not in str(refused.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [gc.PrecisionCoupling(), gc.MetricMDS(), gc.AttractionRepulsionPCA(random_state=0)])
def test_equal_rows_are_said_to_be_equal(method):
    with pytest.warns(UserWarning, match="all 60 rows of X are equal"):
        method.fit(np.ones((60, 4)))
    assert np.abs(method.embedding_).max() < 1e-6
    if isinstance(method, gc.MetricMDS):
        # A picture of rounding errors would look like one of data.
        assert not method.embedding_.any()


@pytest.mark.filterwarnings("ignore")
def test_new_points_with_the_neighbours_of_a_transformer():
    from sklearn.neighbors import KNeighborsTransformer

    finder = KNeighborsTransformer(n_neighbors=30)
    tsne = gc.TSNE(perplexity=8, metric="precomputed", max_iter=50, random_state=0).fit(finder.fit_transform(X))
    new = X[:3] + 1e-3
    Z = tsne.transform(finder.transform(new))
    assert np.linalg.norm(Z - tsne.embedding_[:3], axis=1).max() < 0.2 * np.ptp(tsne.embedding_)


def test_classes_that_are_ignored_are_said_to_be():
    y = np.arange(60) % 2
    with pytest.warns(UserWarning, match="y is ignored at target_weight=0"):
        gc.UMAP(max_iter=2).fit(X, y)
    with pytest.warns(UserWarning, match="y is ignored at target_weight=0"):
        gc.UMAP(max_iter=2).fit_transform(X, y)
    # Classes that a pipeline passes on are meant for its last step.
    make_pipeline(gc.UMAP(max_iter=2), KNeighborsClassifier()).fit(X, y)


def test_a_report_states_the_law_that_was_used(tmp_path, run):
    np.save(tmp_path / "X.npy", X)
    _, out, _ = run("embed", tmp_path / "X.npy", "--perplexity", 200, "-o", tmp_path / "Z.npy", "--no-plot")
    assert "Perplexity(perplexity=19.6" in out
    assert "nearest neighbors" not in out


def test_where_in_a_formula_makes_no_arrays():
    import numba

    from graphcouple._numba.elementary import MODULES

    where = MODULES[np].where
    compiled = numba.njit(lambda s: where(s < 1.0, 2.0 * s, s))
    assert [compiled(s) for s in (0.5, 3.0)] == [1.0, 3.0]
    assert compiled.overloads[compiled.signatures[0]].signature.return_type == numba.float64
