"""Odd names and texts, files that unfold, machine code and links that are damaged, and data of another kind."""

import os
import runpy
import signal
import subprocess
import sys
import time

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

import graphcouple as gc
from graphcouple._numba.jit import jit
from graphcouple.datasets import _files

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8)) * (RNG.uniform(size=(60, 8)) < 0.5)


NAMES = ("[b]x[", "$bad_{$", "esc\x1b[31m", "[link=a]y", "a$b")


def test_names_and_labels_are_text_wherever_they_are_shown(folder, run):
    points = RNG.normal(size=(60, 4))
    labels = ["[/b]", "$x_{$", "a\x1b[2J"] * 20
    rows = (",".join(map(str, row)) + "," + label for row, label in zip(points, labels, strict=True))
    for name in NAMES:
        np.save(folder / f"{name}.npy", points)
        status, out, err = run("embed", f"{name}.npy", "-m", "pca", "-p", "picture.png")
        assert (status, err) == (0, "")
        assert name.replace("\x1b", "\\x1b") in out
        assert "\x1b" not in out
        assert (folder / f"{name}-pca.npy").exists()
    (folder / "labels.csv").write_text("\n".join(rows))
    for arguments in (["embed", "labels.csv", "-m", "pca"], ["compare", "labels.csv", "-m", "pca,kernel-pca"]):
        status, _, err = run(*arguments, "--labels", "4", "-p", "picture.svg")
        assert status == 0, err
        # A label that is no formula is drawn as it is written.
        assert "$x_{$" in (folder / "picture.svg").read_text()
    status, out, _ = run("evaluate", "labels.csv", "--labels", "4", "[b]x[-pca.npy")
    assert status == 0
    assert "[b]x[-pca.npy" in out


@pytest.mark.parametrize("title", ["$x_{$", "$\\bad$", "100 $", "$\\alpha$", "a\tb\x07"])
def test_pictures_draw_any_text(title):
    names = np.repeat([title, "other"], 10)
    figure = gc.plot(RNG.normal(size=(20, 2)), names, title=title).figure
    figure.canvas.draw()
    gc.plotting.plot_grid({title: RNG.normal(size=(20, 2)), "b": RNG.normal(size=(20, 2))}, names, title=title).flat[
        0
    ].figure.canvas.draw()
    if title == "$\\alpha$":
        assert figure.axes[0].get_title() == title


def test_inputs_are_not_overwritten_and_links_are_written_through(folder, run):
    points = RNG.normal(size=(60, 4))
    np.save(folder / "a.npy", points)
    (folder / "same.npy").symlink_to("a.npy")
    for output in ("a.npy", "same.npy", "./a.npy"):
        status, _, err = run("embed", "a.npy", "-m", "pca", "--no-plot", "-o", output)
        assert status == 2
        assert "is an input" in err
    np.testing.assert_array_equal(np.load(folder / "a.npy"), points)
    (folder / "elsewhere").mkdir()
    (folder / "link.npy").symlink_to("elsewhere/real.npy")
    assert run("embed", "a.npy", "-m", "pca", "--no-plot", "-o", "link.npy")[0] == 0
    assert (folder / "link.npy").is_symlink()
    assert np.load(folder / "elsewhere" / "real.npy").shape == (60, 2)
    assert [path.name for path in (folder / "elsewhere").iterdir()] == ["real.npy"]


def test_finished_work_does_not_fail_for_want_of_a_reader(folder, monkeypatch, run):
    np.save(folder / "a.npy", RNG.normal(size=(60, 4)))
    # As PYTHONIOENCODING=ascii opens it.
    with open(os.dup(1), "w", encoding="ascii") as ascii_only, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", ascii_only)
        status, out, err = run("embed", "a.npy", "-m", "pca", "--no-plot")
    assert (status, err) == (0, "")
    assert "60 \\xd7 4" in out
    (folder / "a-pca.npy").unlink()
    line = f"{sys.executable} -m graphcouple embed a.npy -m pca --no-plot | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "a-pca.npy").exists()


def test_a_terminated_command_leaves_no_draft(folder, monkeypatch, run):
    drafts = []

    # Killed while it writes, when drafts are there.
    def killed(draft, *_):
        assert draft.exists()
        drafts.append(draft)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    monkeypatch.setattr(_files, "write_embedding", killed)
    status, _, err = run("embed", "iris", "-m", "pca")
    assert status == 143, err
    assert drafts
    assert not list(folder.iterdir())


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_degenerate_numbers():
    for constant in (sp.csr_matrix(np.ones((50, 5))), sp.csr_matrix((50, 5))):
        for init in ("pca", "spectral"):
            with pytest.warns(UserWarning, match="all 50 rows of X are equal"):
                Z = gc.TSNE(perplexity=5, init=init, max_iter=20, random_state=0).fit_transform(constant)
            assert np.isfinite(Z).all()
    points = RNG.normal(size=(60, 5))
    usual = gc.TSNE(perplexity=5, max_iter=20, random_state=0).fit_transform(points.astype(np.float32))
    for factor in (2.0**60, 2.0**100):
        large = (points.astype(np.float32) * np.float32(factor)).astype(np.float32)
        Z = gc.TSNE(perplexity=5, max_iter=20, random_state=0).fit_transform(large)
        np.testing.assert_allclose(Z, usual, atol=1e-2 * np.abs(usual).max())
    D = np.abs(points @ points.T)
    with pytest.raises(ValueError, match=r"diagonal of X, must be 0\.$"):
        gc.TSNE(perplexity=5, metric="precomputed").fit(D + 1e-3 * np.eye(60))
    with pytest.raises(ValueError, match="X looks like similarities; pass distances, such as 1 - X"):
        gc.TSNE(perplexity=5, metric="precomputed").fit(np.exp(-cdist(points, points)))
    np.fill_diagonal(D, 0.0)
    for half in (np.tril(D), np.triu(D)):
        with pytest.raises(ValueError, match=r"only one triangle of X; pass X \+ X\.T\."):
            gc.TSNE(perplexity=5, metric="precomputed").fit(half)
    D[3, 4] *= 2
    with pytest.raises(ValueError, match="symmetric"):
        gc.TSNE(perplexity=5, metric="precomputed").fit(D)
    with pytest.raises(ValueError, match="K=40 must be below half"):
        gc.metrics.trustworthiness(points, points[:, :2], 40)
    flat = np.zeros((60, 2))
    flat[:, 0] = np.tile(np.arange(20), 3)
    with pytest.warns(UserWarning, match="class means of Z coincide"):
        scores = gc.metrics.evaluate(points, {"a": points[:, :2], "b": flat}, np.repeat([0, 1, 2], 20))
    assert np.isnan(scores.loc["b", "class-mean disparity"])
    assert scores.loc["a"].notna().all()


@pytest.mark.parametrize(
    ("method", "X", "error", "message"),
    [
        (gc.TSNE(metric="foo"), np.eye(60), ValueError, "metric must be .* got 'foo'\\.$"),
        (
            gc.TSNE(metric="hellinger"),
            np.eye(60),
            ValueError,
            "got 'hellinger'; take 'euclidean' of the roots of shares",
        ),
        (gc.TSNE(metric=lambda a, b: (0.0, a)), np.eye(60), ValueError, "returns 2 values; return the distance alone"),
        (gc.TSNE(), np.array([["a", "b"]] * 60), ValueError, "X must be numeric"),
        (gc.TSNE(), np.full((60, 2), np.nan), ValueError, "^X holds NaN; impute or drop"),
        (
            gc.TSNE(metric="braycurtis", perplexity=5),
            np.vstack([np.zeros((2, 3)), np.abs(RNG.normal(size=(58, 3)))]),
            ValueError,
            "metric='braycurtis' gives no distance, but NaN, to row 0",
        ),
        (
            gc.TSNE(metric="sqeuclidean"),
            1e80 * np.eye(60),
            ValueError,
            "'sqeuclidean' distances has entries of up to 2e\\+160",
        ),
    ],
)
def test_messages_name_the_argument(method, X, error, message):
    with pytest.raises(error, match=message):
        method.fit(X)
    with pytest.raises(TypeError, match="ax must be matplotlib Axes, got 'x'"):
        gc.plot(np.eye(2), ax="x")


def _bombs(folder, monkeypatch):
    import gzip
    import zipfile

    rows = "\n".join(",".join(map(str, row)) for row in RNG.normal(size=(20, 3)))
    (folder / "wide.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n1000000000 1000000000 1\n1 1 1.0\n"
    )
    (folder / "dense.mtx").write_text("%%MatrixMarket matrix array real general\n100000 100000\n")
    with gzip.open(folder / "long.csv.gz", "wb") as packed:
        packed.write(b"1,2,3\n" * 400_000)
    with zipfile.ZipFile(folder / "packed.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(3_000_000))
    (folder / "first.csv").write_text("a,b," + "c" * 131_073 + "\n" + rows)


@pytest.mark.parametrize("name", ["wide.mtx", "dense.mtx", "long.csv.gz", "packed.npz", "first.csv"])
def test_files_that_unfold_without_end_are_refused_before_they_do(tmp_path, monkeypatch, name):
    from graphcouple.datasets import _columns

    _bombs(tmp_path, monkeypatch)
    monkeypatch.setattr(_columns, "MOST_BYTES", 2**21)
    with pytest.raises(ValueError, match=r"expands to .* GiB|cannot be read") as said:
        _files.read_points(tmp_path / name, None)
    assert "\n" not in str(said.value)


def test_a_label_of_many_characters_takes_no_memory(tmp_path):
    from graphcouple.datasets._files import read_labels, read_points

    rows = [f"{i},{i + 1},a" for i in range(3000)]
    rows[7] = "1,2," + "x" * 5000
    (tmp_path / "long.csv").write_text("\n".join(rows))
    with pytest.raises(ValueError, match="a label of 5000 characters"):
        read_points(tmp_path / "long.csv", "2")
    (tmp_path / "labels.txt").write_text("\n".join(["a"] * 10 + ["x" * 5000]))
    with pytest.raises(ValueError, match="a label of 5000 characters"):
        read_labels(tmp_path / "labels.txt", 11)
    (tmp_path / "short.csv").write_text("\n".join(f"{i},{i + 1},'{i % 2}'" for i in range(30)))
    assert read_points(tmp_path / "short.csv", "2")[1].tolist()[:2] == ["'0'", "'1'"]


@pytest.mark.parametrize("damage", [b"garbage", b"", None, "swapped"])
def test_damaged_machine_code_is_replaced_and_the_rest_is_kept(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    module = tmp_path / "loops.py"
    module.write_text("from graphcouple._numba.jit import jit\n@jit\ndef double(x):\n    return 2 * x\n")

    def loaded_from_disk():
        """Call the loop for three types, as a new process does, and count the loads."""
        double = runpy.run_path(str(module))["double"]
        assert [double(x) for x in (1.5, 2, 3j)] == [3.0, 4, 6j]
        return sum(double.stats.cache_hits.values())

    def spoil(path):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)

    assert [loaded_from_disk(), loaded_from_disk()] == [0, 3]
    first, second, _ = sorted(tmp_path.rglob("*.nbc"))
    if damage == "swapped":
        codes = first.read_bytes(), second.read_bytes()
        first.write_bytes(codes[1])
        second.write_bytes(codes[0])
        assert [loaded_from_disk(), loaded_from_disk()] == [1, 3]
        return
    spoil(first)
    assert [loaded_from_disk(), loaded_from_disk()] == [2, 3]
    (index,) = tmp_path.rglob("*.nbi")
    spoil(index)
    assert [loaded_from_disk(), loaded_from_disk()] == [0, 3]


def test_numba_without_its_compiler_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    with pytest.raises(RuntimeError, match=r"graphcouple needs numba's compiler.* unset NUMBA_DISABLE_JIT"):
        jit(lambda x: x)


def test_a_graph_without_edges_is_refused():
    places = np.repeat(RNG.normal(size=(2, 3)), 15, axis=0)
    with pytest.raises(ValueError, match="no edges, so there is nothing to embed"):
        gc.UMAP(unique=True, n_neighbors=5).fit(places)


def test_distances_passed_as_points_are_told():
    places = RNG.normal(size=(40, 2))
    D = cdist(places, places)
    # Products of rows give distances that are symmetric but for rounding.
    rounded = pairwise_distances(RNG.normal(size=(40, 5)))
    assert (rounded != rounded.T).any()
    with pytest.warns(UserWarning, match="looks like a matrix of distances"):
        gc.PrecisionCoupling().fit(rounded)
    for method in (gc.ClassicalMDS(), gc.TSNE(perplexity=5, max_iter=5, random_state=0)):
        with pytest.warns(UserWarning, match=r"X, of shape \(40, 40\), looks like a matrix of distances"):
            method.fit(D)
        method.set_params(metric="precomputed").fit(D)
    graph = ((D > 0.0) & (np.median(D) > 2.0 * D)).astype(float)
    for points in (graph, D[:, :39], D - 1e-3, D + np.triu(D)):
        gc.ClassicalMDS().fit(points)
