import gzip

import numpy as np
import pytest

import graphcouple as gc

CODES = {"u1": 0x08, "i1": 0x09, ">i2": 0x0B, ">i4": 0x0C, ">f4": 0x0D, ">f8": 0x0E}


def _idx(array, code):
    header = bytes([0, 0, CODES[code], array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return header + array.astype(code).tobytes()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_are_read_as_written(tmp_path, rng, code, zipped):
    images = rng.integers(0, 100, size=(5, 4, 3))
    data = _idx(images, code)
    path = tmp_path / "images"
    path.write_bytes(gzip.compress(data) if zipped else data)
    found = gc.datasets.read_idx(path)
    np.testing.assert_array_equal(found, images)
    assert found.dtype == np.dtype(code).newbyteorder("=")
    found[0] = 0


def test_damaged_idx_files_are_refused(tmp_path):
    whole = _idx(np.arange(20), "u1")
    path = tmp_path / "labels"
    for data, message in [
        (whole[:-3], "25 bytes, but its header announces 28"),
        (whole + b"x", "29 bytes"),
        (whole[:6], "not an IDX file"),
        (b"", "missing"),
        (b"PK\x03\x04 and more", "not an IDX file"),
        (gzip.compress(whole)[:-9], "damaged"),
        (gzip.compress(whole)[:12] + b"\xff" + gzip.compress(whole)[13:], "damaged"),
    ]:
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            gc.datasets.read_idx(path)
    with pytest.raises(FileNotFoundError):
        gc.datasets.read_idx(tmp_path / "none")


@pytest.mark.parametrize("name", gc.datasets.NAMES)
def test_bundled_data_are_scikit_learns(name):
    from sklearn import datasets

    X, y = gc.datasets.load(name)
    if name == "swiss_roll":
        theirs = datasets.make_swiss_roll(1500, random_state=0)
    else:
        theirs = getattr(datasets, f"load_{name}")(return_X_y=True)
    np.testing.assert_array_equal(X, theirs[0])
    np.testing.assert_array_equal(y, theirs[1])
    assert X.dtype == np.float64


def write_images(folder, name, images, labels):
    (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(_idx(images, "u1")))
    (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(_idx(labels, "u1")))


def test_a_folder_of_idx_files_is_read_training_images_first(tmp_path, rng):
    images, y = rng.integers(0, 255, size=(7, 4, 3)), rng.integers(0, 10, 7)
    write_images(tmp_path, "t10k", images[:3], y[:3])
    write_images(tmp_path, "train", images[3:], y[3:])
    X, labels = gc.datasets.load("fashion_mnist", tmp_path)
    np.testing.assert_array_equal(X, np.concatenate([images[3:], images[:3]]).reshape(7, 12))
    np.testing.assert_array_equal(labels, np.concatenate([y[3:], y[:3]]))
    assert X.dtype == np.float32
    packed = tmp_path / "train-images-idx3-ubyte.gz"
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    np.testing.assert_array_equal(gc.datasets.load("fashion_mnist", tmp_path)[0], X)
    X, labels = gc.datasets.load("mnist", tmp_path / "t10k-images-idx3-ubyte.gz")
    np.testing.assert_array_equal(X, images[:3].reshape(3, 12))
    np.testing.assert_array_equal(labels, y[:3])
    for missing in ("t10k-images-idx3-ubyte", "test-images-idx3-ubyte.gz"):
        with pytest.raises(FileNotFoundError, match=missing):
            gc.datasets.load("mnist", tmp_path / missing)


def test_local_copies_in_other_formats(tmp_path, rng):
    from scipy.io import savemat

    X, y = rng.integers(0, 255, size=(6, 5)), rng.integers(1, 4, 6)
    savemat(tmp_path / "a.mat", {"X": X, "Y": y[:, None]})
    savemat(tmp_path / "b.mat", {"fea": X, "gnd": y})
    np.savez(tmp_path / "c.npz", X=X, y=y)
    np.savetxt(tmp_path / "d.csv", np.column_stack([X, y]), delimiter=",", fmt="%d")
    header = ",".join(["Label", *(f"p{i}" for i in range(5))])
    labelled = np.column_stack([y, X])
    np.savetxt(tmp_path / "e.csv", labelled, delimiter=",", fmt="%d", header=header, comments="")
    np.savez(tmp_path / "f.npz", X=X[:, :4].reshape(6, 2, 2), y=y[:, None])
    np.testing.assert_array_equal(gc.datasets.load("mnist", tmp_path / "f.npz")[0], X[:, :4])
    (tmp_path / "g.csv").write_text((tmp_path / "e.csv").read_text().replace(",", ";"))
    for file in ("a.mat", "b.mat", "c.npz", "d.csv", "e.csv", "g.csv"):
        found, labels = gc.datasets.load("coil20", tmp_path / file)
        np.testing.assert_array_equal(found, X)
        np.testing.assert_array_equal(labels, y)
        assert labels.dtype.kind == "i"


def test_labels_of_local_copies_stay_apart_and_are_found_by_name(tmp_path):
    pl = pytest.importorskip("polars")
    for labels in (["01", "1", "01"], ["1_0", "10", "10"]):
        (tmp_path / "a.csv").write_text("a,b,label\n" + "".join(f"{i},0,{text}\n" for i, text in enumerate(labels)))
        assert gc.datasets.load("mnist", tmp_path / "a.csv")[1].tolist() == labels
    many = [2**53, 2**53 + 1, 2**53 + 2]
    np.savez(tmp_path / "b.npz", X=np.eye(3), y=many)
    assert gc.datasets.load("mnist", tmp_path / "b.npz")[1].tolist() == many
    for y, kind in ((np.arange(3, dtype=np.uint64), np.int64), (np.array([0.5, 1, 2], np.float32), np.float32)):
        np.savez(tmp_path / "b.npz", X=np.eye(3), y=y)
        assert gc.datasets.load("mnist", tmp_path / "b.npz")[1].dtype == kind
    np.savez(tmp_path / "c.npz", X=np.eye(3), y=np.array([b"1", b"10", b"2"]))
    assert gc.datasets.load("mnist", tmp_path / "c.npz")[1].tolist() == [1, 10, 2]
    (tmp_path / "f.csv").write_text("x,y,label\n0,0,5\n0.5,1,6\n1,2,7\n")
    assert gc.datasets.load("mnist", tmp_path / "f.csv")[1].tolist() == [5, 6, 7]
    (tmp_path / "d.tsv").write_text("label\ta\n7\t1\n8\t2\n9\t4\n")
    pl.DataFrame({"Label": [7, 8, 9], "a": [1.0, 2.0, 4.0]}).write_parquet(tmp_path / "e.parquet")
    for file in ("d.tsv", "e.parquet"):
        X, y = gc.datasets.load("mnist", tmp_path / file)
        np.testing.assert_array_equal(X, [[1.0], [2.0], [4.0]])
        assert y.tolist() == [7, 8, 9]


def test_local_copies_that_are_none_are_refused(tmp_path, rng):
    from scipy.io import savemat

    for folder in ("unequal", "alone", "empty"):
        (tmp_path / folder).mkdir()
    write_images(tmp_path / "unequal", "train", rng.integers(0, 9, size=(4, 2, 2)), rng.integers(0, 9, 3))
    write_images(tmp_path / "alone", "train", rng.integers(0, 9, size=(4, 2, 2)), rng.integers(0, 9, 4))
    (tmp_path / "alone" / "train-labels-idx1-ubyte.gz").unlink()
    savemat(tmp_path / "odd.mat", {"points": np.ones((3, 2))})
    (tmp_path / "text.mat").write_text("no matrix at all, but a text that goes on for more than 128 bytes " * 4)
    np.save(tmp_path / "points.npy", np.ones((3, 2)))
    np.savez(tmp_path / "cube.npz", X=np.ones((4, 2, 3)), y=np.eye(4))
    np.savez(tmp_path / "big.npz", X=np.full((4, 2), 1e300), y=np.arange(4))
    np.savez(tmp_path / "flat.npz", X=np.ones(4), y=np.arange(4))
    np.savez(tmp_path / "none.npz", X=np.ones((0, 4)), y=np.arange(0))
    for name, place, error, message in [
        ("mnist", "unequal", ValueError, "4 images, but .* 3 labels"),
        ("mnist", "alone", OSError, "no labels beside"),
        ("mnist", "empty", OSError, "holds no IDX files"),
        ("coil20", "none.mat", OSError, "no such file or folder"),
        ("coil20", "odd.mat", ValueError, "it holds points"),
        ("coil20", "text.mat", ValueError, "not a MATLAB file"),
        ("mnist", "cube.npz", ValueError, r"shape \(4, 4\), but there are 4 points"),
        ("mnist", "big.npz", ValueError, "beyond single precision"),
        ("mnist", "none.npz", ValueError, r"a row for each point, got shape \(0, 4\)"),
        ("mnist", "flat.npz", ValueError, "a row for each point"),
        ("pendigits", "points.npy", ValueError, "no labels for its 3 points"),
        ("iris", "", ValueError, "leave out path"),
    ]:
        with pytest.raises(error, match=message):
            gc.datasets.load(name, tmp_path / place)
    with pytest.raises(ValueError, match="unknown data set 'nothing'; the names are"):
        gc.datasets.load("nothing")


def test_what_openml_has_is_fetched_by_name_and_version(monkeypatch, tmp_path):
    asked = {}

    def fetch(name, **options):
        asked.update(options, name=name)
        return np.arange(32.0).reshape(2, 16), np.array(["3", "7"], dtype=object)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    X, y = gc.datasets.load("pendigits", data_home=tmp_path)
    assert (asked["name"], asked["version"], asked["data_home"]) == ("pendigits", 1, tmp_path)
    np.testing.assert_array_equal(X, np.arange(32.0).reshape(2, 16))
    np.testing.assert_array_equal(y, [3, 7])
    with pytest.raises(ValueError, match="16 columns, not 784"):
        gc.datasets.load("mnist")


@pytest.mark.parametrize("error", ["URLError", "HTTPError", "TimeoutError", "missing"])
def test_offline_the_remedy_is_named(monkeypatch, error):
    from urllib.error import HTTPError, URLError

    errors = {
        "URLError": URLError("Name or service not known"),
        "HTTPError": HTTPError("https://example.org", 503, "Service Unavailable", {}, None),
        "TimeoutError": TimeoutError("timed out"),
        "missing": ValueError("Dataset mnist_784 with version 1 not found."),
    }

    def fetch(*args, **options):
        raise errors[error]

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(
        OSError, match=r"cannot fetch 'mnist' from OpenML \(.+\)\. Without a network, give path= a local"
    ):
        gc.datasets.load("mnist")


def test_hierarchical_mixtures_have_the_spreads_asked_for():
    X, y = gc.datasets.make_hierarchical_mixture(60_000, 40, branching=(30, 20), scales=(9.0, 3.0, 1.0), random_state=0)
    assert y.max(axis=0).tolist() == [29, 599]
    np.testing.assert_array_equal(y[:, 1] // 20, y[:, 0])
    leaf = np.array([X[y[:, 1] == c].mean(axis=0) for c in range(600)])
    top = leaf.reshape(30, 20, 40).mean(axis=1)
    assert np.square(X - leaf[y[:, 1]]).mean() == pytest.approx(1.0, rel=0.02)
    assert np.square(leaf.reshape(30, 20, 40) - top[:, None]).mean() * 20 / 19 == pytest.approx(9.0, rel=0.03)
    assert top.var(ddof=0) == pytest.approx(81.0, rel=0.1)
    assert np.bincount(y[:, 1]).min() > 50
    again = gc.datasets.make_hierarchical_mixture(100, 3, random_state=5)[0]
    np.testing.assert_array_equal(gc.datasets.make_hierarchical_mixture(100, 3, random_state=5)[0], again)


def test_waveforms_have_the_means_and_variances_of_their_law():
    X, y = gc.datasets.make_waveform(200_000, n_noise_features=2, random_state=0)
    assert X.shape == (200_000, 23)
    i = np.arange(1, 22)
    triangle = {c: np.maximum(6.0 - np.abs(i - c), 0.0) for c in (7, 11, 15)}
    for label, (a, b) in enumerate([(7, 15), (7, 11), (15, 11)]):
        mine = X[y == label]
        expected = 0.5 * (triangle[a] + triangle[b])
        np.testing.assert_allclose(mine[:, :21].mean(axis=0), expected, atol=0.03)
        np.testing.assert_allclose(mine[:, 21:].mean(axis=0), 0.0, atol=0.03)
        # u is uniform: Var u = 1/12.
        np.testing.assert_allclose(mine[:, :21].var(axis=0), 1 + np.square(triangle[a] - triangle[b]) / 12, rtol=0.04)
    np.testing.assert_allclose(np.bincount(y) / 200_000, 1 / 3, atol=0.01)


def test_swiss_rolls_are_rolled_sheets():
    X, t = gc.datasets.make_swiss_roll(200, random_state=0)
    np.testing.assert_allclose(np.hypot(X[:, 0], X[:, 2]), t, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gc.datasets.make_hierarchical_mixture(0), "n_samples must be at least 1"),
        (lambda: gc.datasets.make_hierarchical_mixture(branching=()), "scales must hold one number"),
        (lambda: gc.datasets.make_hierarchical_mixture(scales=(1.0, 2.0)), "got 2"),
        (lambda: gc.datasets.make_hierarchical_mixture(scales=(1.0, -2.0, 1.0)), "scales must be"),
        (lambda: gc.datasets.make_waveform(10, n_noise_features=-1), "n_noise_features must be at least 0"),
        (lambda: gc.datasets.make_swiss_roll(-1), "n_samples"),
    ],
)
def test_generators_refuse_what_they_cannot_draw(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_cells_have_the_moments_of_negative_binomial_counts():
    X, y = gc.datasets.make_cells(4000, 40, n_types=1, logarithm=False, depth=2000.0, random_state=0)
    assert set(y) == {0}
    assert (np.floor(X) == X).all()
    assert X.sum(axis=1).mean() == pytest.approx(2000.0 * np.exp(0.3**2 / 2), rel=0.05)
    # With a depth of mean m and variance v: E = m μ, Var = m μ + (m² + v) μ²/θ + v μ².
    mean, variance = X.mean(axis=0), X.var(axis=0)
    relative = np.expm1(0.3**2)
    expected = mean + mean**2 * ((1.0 + relative) / 2.0 + relative)
    frequent = mean > 20
    np.testing.assert_allclose(variance[frequent], expected[frequent], rtol=0.2)
    logs, _ = gc.datasets.make_cells(50, 40, random_state=0)
    assert (logs >= 0).all()


def test_near_types_of_cells_are_near_in_the_tree():
    X, y = gc.datasets.make_cells(3000, 500, n_types=8, random_state=1)
    means = np.array([X[y == k].mean(axis=0) for k in range(8)])
    apart = np.linalg.norm(means[:, None] - means[None], axis=2)
    siblings = [apart[k, k + 1] for k in range(0, 8, 2)]
    assert max(siblings) < apart[:4, 4:].min()


def test_branches_begin_where_others_end():
    X, y = gc.datasets.make_branches(6000, 20, n_branches=6, noise=1e-9, length=10.0, random_state=0)
    nearest = [
        min(np.linalg.norm(X[y == k][:, None] - X[y == j][None], axis=2).min() for j in range(k)) for k in range(1, 6)
    ]
    # A step is a hundredth of the length.
    assert max(nearest) < 0.11
    lengths = [np.linalg.norm(X[y == k].max(axis=0) - X[y == k].min(axis=0)) for k in range(6)]
    assert 3.0 < min(lengths) < max(lengths) <= 10.0 * 20**0.5


def test_rings_have_radius_one_and_are_linked():
    X, y = gc.datasets.make_rings(4000, 7, n_rings=3, noise=1e-9, random_state=0)
    for k in range(3):
        ring = X[y == k]
        np.testing.assert_allclose(np.linalg.norm(ring - ring.mean(axis=0), axis=1), 1.0, atol=0.1)
    centres = np.array([X[y == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(np.linalg.norm(np.diff(centres, axis=0), axis=1), 1.5, atol=0.1)
    assert np.linalg.matrix_rank(X - X.mean(axis=0), tol=1e-3) == 3


def test_blobs_have_the_sizes_and_shares_that_are_said():
    X, y = gc.datasets.make_unequal_blobs(40_000, 10, n_blobs=8, random_state=0)
    deviations = [np.sqrt(X[y == k].var(axis=0).mean()) for k in range(8)]
    np.testing.assert_allclose(deviations, 2.0 ** (2.0 * np.arange(8) / 7 - 1.0), rtol=0.02)
    shares = 2.0 ** -(np.arange(8) % 4)
    np.testing.assert_allclose(np.bincount(y) / 40_000, shares / shares.sum(), rtol=0.06)
    for make in (
        gc.datasets.make_cells,
        gc.datasets.make_branches,
        gc.datasets.make_rings,
        gc.datasets.make_unequal_blobs,
    ):
        np.testing.assert_array_equal(make(100, random_state=3)[0], make(100, random_state=3)[0])
        with pytest.raises((TypeError, ValueError), match="n_samples"):
            make(0)


@pytest.mark.parametrize("name", ["branching", "scales"])
def test_one_number_for_all_levels_is_refused(name):
    with pytest.raises(TypeError, match=f"{name} must be a sequence of numbers, got 3"):
        gc.datasets.make_hierarchical_mixture(20, **{name: 3})
