import gzip
import os
import runpy
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from graphcouple import cli


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 6]), np.repeat(["left", "right"], 20)


def write_csv(path, X, y=None, header=True):
    names = [f"x{i}" for i in range(X.shape[1])] + (["kind"] if y is not None else [])
    rows = [
        ",".join([*(f"{v:.17g}" for v in row), *([str(label)] if y is not None else [])])
        for row, label in zip(X, y if y is not None else [None] * len(X), strict=True)
    ]
    text = "\n".join(([",".join(names)] if header else []) + rows) + "\n"
    if path.name.endswith(".gz"):
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        path.write_text(text)
    return path


def test_default_run_writes_an_embedding_and_a_picture(folder, run):
    code, out, err = run("embed", "iris", "-n", 60)
    assert code == 0
    assert err == "" or (err.count("\n") == 1 and "has not settled" in err)
    assert np.load("iris-tsne.npy").shape == (150, 2)
    assert (folder / "iris-tsne.png").read_bytes()[:4] == b"\x89PNG"
    for word in ("TSNE", "D, Gaussian", "E, Student", "loss", "KL", "iris-tsne.npy", "iris-tsne.png"):
        assert word in out
    assert sorted(p.name for p in folder.iterdir()) == ["iris-tsne.npy", "iris-tsne.png"]


def test_the_module_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["graphcouple", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("graphcouple", run_name="__main__")
    assert not ended.value.code
    assert "embed" in capsys.readouterr().out


def test_seeds_repeat(folder, run):
    arguments = ["embed", "wine", "-n", "30", "-s", "3", "--init", "random", "--no-plot"]
    assert [run(*arguments, "-o", name)[0] for name in ("a.npy", "b.npy")] == [0, 0]
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


@pytest.mark.parametrize("data", ["breast_cancer", "digits", "iris", "swiss_roll", "wine"])
def test_every_bundled_name(folder, run, data):
    assert run("embed", data, "-n", 3, "--no-plot")[0] == 0
    assert np.isfinite(np.load(f"{data}-tsne.npy")).all()


@pytest.mark.parametrize("form", [".npy", ".npz", "sparse.npz", ".csv", ".csv.gz", "bare.csv", ".mtx"])
def test_every_file_form_gives_the_same_embedding(folder, run, points, form):
    X, y = points
    path = folder / f"data{form}"
    if form == ".npy":
        np.save(path, X)
    elif form == ".npz":
        np.savez(path, X=X, y=y)
    elif form == "sparse.npz":
        sp.save_npz(path, sp.csr_matrix(X))
    elif form == ".mtx":
        scipy.io.mmwrite(path, X, precision=17)
    else:
        write_csv(path, X, header=form != "bare.csv")
    np.save("wanted.npy", X)
    for source, target in (("wanted.npy", "a.npy"), (path, "b.npy")):
        code, _, err = run("embed", source, "--perplexity", 5, "-n", 10, "-o", target, "--no-plot")
        assert code == 0
        assert err == "" or (err.count("\n") == 1 and "has not settled" in err)
    np.testing.assert_allclose(np.load("b.npy"), np.load("a.npy"), rtol=1e-6, atol=1e-12)


def test_too_large_a_perplexity_is_lowered_in_one_line(folder, run):
    code, _, err = run("embed", "iris", "--perplexity", 150, "--no-plot")
    assert code == 0
    assert len(err.splitlines()) == 1
    assert "perplexity=150 is lowered to 49.7" in err


@pytest.mark.parametrize("choice", ["kind", "3", "-1", "labels.txt", "labels.npy"])
def test_labels_from_a_column_or_a_file(folder, run, points, choice):
    X, y = points
    separate = choice.startswith("labels")
    write_csv(folder / "data.csv", X, None if separate else y)
    (folder / "labels.txt").write_text("\n".join(y))
    np.save("labels.npy", y)
    code, _, err = run("embed", "data.csv", "--labels", choice, "--perplexity", 5, "-o", "out.csv", "-p", "out.svg")
    assert (code, err) == (0, "")
    assert np.loadtxt("out.csv", delimiter=",", skiprows=1).shape == (40, 2)
    assert "right" in (folder / "out.svg").read_text() or "svg" in (folder / "out.svg").read_text()


@pytest.mark.parametrize("others", [(), ("--prototypes", 12)])
def test_labels_reach_composed_laws_of_several_perplexities(folder, run, points, others):
    X, y = points
    write_csv(folder / "data.csv", X, y)
    maps = []
    for weight in (0.0, 0.5):
        options = (
            "--perplexity",
            "5,15",
            "--set",
            f"target_weight={weight}",
            "--latent-kernel",
            "student:0.5",
            *others,
        )
        code, _, err = run("embed", "data.csv", "--labels", "kind", *options, "-n", 20, "-o", "out.npy", "--no-plot")
        assert (code, err) == (0, "")
        maps.append(np.load("out.npy"))
    assert not np.allclose(maps[0], maps[1])


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_pictures_in_every_form(folder, run, ending):
    assert run("embed", "iris", "-n", 3, "-p", f"out{ending}")[0] == 0
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[ending]
    assert (folder / f"out{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize("method", cli.METHODS)
def test_every_method(folder, run, method):
    import graphcouple as gc

    descends = "max_iter" in getattr(gc, cli.METHODS[method])().get_params()
    iterations = ("-n", 5) if descends else ()
    code, out, err = run("embed", "iris", "-m", method, *iterations, "--no-plot", "-c", 3)
    assert code == 0
    # Five iterations settle nothing, and the graph of iris falls in two.
    said = ("has not settled", "2 connected components", "before the last phase")
    assert err == "" or (err.count("\n") == 1 and any(part in err for part in said))
    assert np.load(f"iris-{method}.npy").shape == (150, 3)
    assert ("KL" in out) == (method in ("tsne", "sne", "symmetric-sne", "laptsne", "snekhorn", "cosne"))


def test_a_composed_pair_is_the_one_python_composes(folder, run, iris):
    import graphcouple as gc

    arguments = ["--latent-prior", "D", "--latent-kernel", "student:0.5", "--input-kernel", "exponential"]
    code, out, _ = run("embed", "iris", *arguments, "-n", 20, "--no-plot")
    assert code == 0
    assert "D, Student(dof=0.5)" in out
    given = gc.GraphModel(gc.Exponential(), "D", gc.Perplexity(30))
    wanted = gc.GraphCoupling(given, gc.GraphModel(gc.Student(0.5), "D"), init="pca", max_iter=20, random_state=0)
    np.testing.assert_array_equal(np.load("iris-composed.npy"), wanted.fit_transform(iris[0]))


def test_several_perplexities(folder, run, iris):
    import graphcouple as gc

    assert run("embed", "iris", "--perplexity", "5,40", "-n", 50, "--no-plot")[0] == 0
    wanted = gc.TSNE(perplexity=(5, 40), max_iter=50, random_state=0).fit_transform(iris[0])
    np.testing.assert_array_equal(np.load("iris-tsne.npy"), wanted)
    assert run("embed", "iris", "--perplexity", "5,40", "--latent-prior", "D", "--input-prior", "D", "-n", 50)[0] == 0
    sentence = gc.TSNE(perplexity=(5, 40), max_iter=50, random_state=0).sentence
    wanted = gc.GraphCoupling(**sentence.replace(latent=gc.GraphModel(gc.Student(), "D"))).fit_transform(iris[0])
    np.testing.assert_array_equal(np.load("iris-composed.npy"), wanted)


def test_any_parameter_can_be_set(folder, run, iris):
    import graphcouple as gc

    settings = ["--set", "min_dist=0.4", "--set", "metric=cosine", "--set", "terms=()"]
    assert run("embed", "iris", "-m", "umap", "-n", 20, "--no-plot", *settings)[0] == 0
    wanted = gc.UMAP(min_dist=0.4, metric="cosine", max_iter=20, random_state=0).fit_transform(iris[0])
    np.testing.assert_array_equal(np.load("iris-umap.npy"), wanted)


def test_global_structure_from_the_command_is_that_of_python(folder, run, iris):
    import graphcouple as gc

    assert run("embed", "iris", "--init", "ccpca", "-n", 20, "--no-plot")[0] == 0
    wanted = gc.TSNE(init="ccpca", max_iter=20, random_state=0).fit_transform(iris[0])
    np.testing.assert_array_equal(np.load("iris-tsne.npy"), wanted)
    code, out, _ = run("embed", "iris", "--prototypes", 12, "-o", "at.npy", "--no-plot")
    assert code == 0
    assert "12, of" in out
    assert len(np.unique(np.load("at.npy"), axis=0)) == 12
    code, out, _ = run("embed", "iris", "--component-weight", 2, "-n", 20, "--no-plot")
    assert code == 0
    assert "component means" in out
    joint = gc.HierarchicalCoupling(gc.TSNE(max_iter=20), weight=2.0, random_state=0)
    np.testing.assert_array_equal(np.load("iris-tsne.npy"), joint.fit_transform(iris[0]))
    code, out, _ = run("embed", "iris", "--component-weight", "auto", "--large-scale", 3, "-n", 20, "--no-plot")
    assert code == 0
    terms = [gc.ComponentMeans(), gc.LargeScale(3.0)]
    both = gc.TSNE(max_iter=20, terms=terms, random_state=0).fit(iris[0])
    np.testing.assert_array_equal(np.load("iris-tsne.npy"), both.embedding_)
    assert f"{both.term_weights_[0]:.3g} × {both.term_losses_[0]:.6g}, 3 × {both.term_losses_[1]:.6g}" in out
    code, out, _ = run("embed", "iris", "-m", "umap", "--density", 2, "-n", 20, "--no-plot")
    assert code == 0
    dense = gc.DensMAP(gc.UMAP(max_iter=20), weight=2.0, random_state=0).fit(iris[0])
    np.testing.assert_array_equal(np.load("iris-umap.npy"), dense.embedding_)
    code, out, _ = run("embed", "iris", "-m", "ccpca", "--perplexity", 10, "--no-plot")
    assert code == 0
    assert "100 drawn" in out
    np.testing.assert_array_equal(
        np.load("iris-ccpca.npy"), gc.CCPCA(perplexity=10, random_state=0).fit_transform(iris[0])
    )


def test_warnings_of_our_own_are_shown(folder, run):
    np.save("few.npy", np.random.default_rng(0).normal(size=(3, 2)))
    code, _, err = run("embed", "few.npy", "-m", "ccpca", "--perplexity", 1.5, "--no-plot")
    assert code == 0
    assert err.startswith("graphcouple: warning: every one of the 100 graphs drawn is connected")
    assert err.count("\n") == 1
    assert run("embed", "iris", "-m", "ccpca", "--input-prior", "E", "--no-plot")[0] == 0


@pytest.mark.parametrize("kernel", ["gaussian", "rational:1.5:0.9", "odds-student", "odds-rational:1:1"])
def test_kernels_can_be_written(folder, run, kernel):
    assert run("embed", "iris", "--latent-prior", "B", "--latent-kernel", kernel, "-n", 3, "--no-plot")[0] == 0


def test_an_existing_output_is_replaced_by_a_finished_one(folder, run):
    (folder / "out.npy").write_text("old")
    assert run("embed", "iris", "-n", 3, "-o", "out.npy")[0] == 0
    assert np.load("out.npy").shape == (150, 2)
    mask = os.umask(0)
    os.umask(mask)
    assert (folder / "out.npy").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["embed", "--help"]])
def test_help_and_version(run, arguments):
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert "graphcouple" in out


def test_laws_of_a_preset_that_chooses_its_own_iterations_can_be_exchanged(run, folder):
    status, _, err = run("embed", "iris", "-m", "umap", "--latent-kernel", "student", "--no-plot", "-o", "out.npy")
    assert (status, err) == (0, "")
    assert np.load("out.npy").shape == (150, 2)


def test_an_estimate_has_seconds_and_memory_or_says_why_not(run):
    code, out, _ = run("estimate", "--rows", 60, "--columns", 3, "--jobs", 1)
    assert code == 0
    assert all(word in out for word in ("neighbors", "descent", "in all", " s ", " GB"))
    assert run("estimate", "--rows", 60, "--columns", 3, "--method", "pacmap", "--jobs", 1)[0] == 0
    for options, word in ((("--rows", 10), "n must be at least 50, got 10"), (("--method", "pca"), "needs two laws")):
        code, out, err = run("estimate", "--rows", 60, "--columns", 3, *options)
        assert (code, out) == (2, "")
        assert word in err


def test_an_interactive_map_is_written_or_refused_before_the_fit(folder, run):
    code, out, _ = run("embed", "iris", "-n", 5, "--no-plot", "--interactive", "map.html")
    assert code == 0
    assert "map.html" in out
    assert "TSNE of iris" in (folder / "map.html").read_text(encoding="utf-8")
    code, out, err = run("embed", "iris", "--interactive", "map.png")
    assert (code, out) == (2, "")
    assert "--interactive map.png: the ending must be one of .html" in err


def test_help_has_every_command():
    assert sorted(" ".join(cli.cli.sections.values()).split()) == sorted(cli.cli.commands)
