"""The commands compare and evaluate."""

import csv
import re

import numpy as np
import pytest

import graphcouple as gc

pytestmark = pytest.mark.usefixtures("folder")


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_evaluate_prints_and_writes_the_scores_of_evaluate(run, tmp_path):
    X, y = gc.datasets.load("iris")
    np.save("petals.npy", X[:, 2:])
    np.savetxt("sepals.csv", X[:, :2], delimiter=",")
    code, out, err = run("evaluate", "iris", "petals.npy", "sepals.csv", "-o", "scores.csv")
    assert (code, err) == (0, "")
    expected = gc.metrics.evaluate(X, {"petals.npy": X[:, 2:], "sepals.csv": X[:, :2]}, y)
    for row, (name, scores) in zip(read("scores.csv"), expected.iterrows(), strict=True):
        assert row.pop("embedding") == name
        assert {key: float(value) for key, value in row.items()} == pytest.approx(dict(scores))
    for score in expected.columns:
        line = next(line for line in out.splitlines() if line.startswith(score))
        assert [float(cell) for cell in line.removeprefix(score).split()] == pytest.approx(
            expected[score].tolist(), abs=1e-4
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["petals.npy", "scores.csv", "sepals.csv"]
    np.savetxt("table.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d,kind", comments="")
    arguments = ("table.csv", "petals.npy", "--columns", "a,b,c,d", "-l", "kind")
    again = run("evaluate", *arguments, "-o", "again.csv")
    assert (again[0], again[2]) == (0, "")
    assert {key: float(value) for key, value in read("again.csv")[0].items() if key != "embedding"} == pytest.approx(
        dict(expected.loc["petals.npy"])
    )


def test_evaluate_from_a_sample_with_sizes_and_without_classes(run):
    X, t = gc.datasets.load("swiss_roll")
    np.save("flat.npy", np.column_stack([t, X[:, 1]]))
    code, out, err = run("evaluate", "swiss_roll", "flat.npy", "-k", 5, "-k", 40, "--rows", 200)
    assert code == 0
    assert "scores of classes are left out" in err
    assert "NMI" not in out
    line = next(line for line in out.splitlines() if line.startswith("R(40)"))
    value, error = map(float, re.findall(r"\d\.\d+", line))
    assert abs(value - gc.metrics.k_ary_preservation(X, np.load("flat.npy"), 40)) < 5 * error


def test_compare_fits_every_method_start_and_seed(run, tmp_path):
    code, out, _ = run("compare", "iris", "-m", "tsne,ccpca", "-i", "pca,random", "--seeds", 2, "-n", 60)
    assert code == 0
    lines = read("iris-compare.csv")
    found = [(line["method"], line["init"], line["seed"]) for line in lines]
    assert found == [
        ("tsne", "pca", "0"),
        ("tsne", "pca", "1"),
        ("tsne", "random", "0"),
        ("tsne", "random", "1"),
        ("ccpca", "default", "0"),
        ("ccpca", "default", "1"),
    ]
    X, y = gc.datasets.load("iris")
    Z = gc.TSNE(init="random", max_iter=60, random_state=1).fit_transform(X)
    expected = gc.metrics.evaluate(X, Z, y)
    for score in ("R(10)", "R(n/2)", "10-NN accuracy", "NMI"):
        assert float(lines[3][score]) == pytest.approx(expected[score], abs=1e-12)
    maps = [gc.TSNE(init="random", max_iter=60, random_state=seed).fit_transform(X) for seed in (0, 1)]
    row = next(line for line in out.splitlines() if line.split()[:2] == ["tsne", "random"])
    assert f" {100 * gc.metrics.seed_stability(maps):.1f} " in row
    assert (tmp_path / "iris-compare.png").read_bytes()[:4] == b"\x89PNG"
    assert "iris-compare.png" in out


def test_compare_with_own_starts_and_no_picture(run, tmp_path):
    code, out, _ = run("compare", "iris", "-n", 30, "--no-plot", "-o", "out.csv")
    assert code == 0
    assert [line["method"] for line in read("out.csv")] == ["tsne", "umap"]
    assert "stability" not in out
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_scores_of_some_maps_only_are_shown(tmp_path, run):
    for name in ("a", "b"):
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(len(name)).normal(size=(150, 2)))
    seen = []

    @gc.metrics.register("only once")
    def once(X, Z, y):
        seen.append(0)
        return None if len(seen) == 1 else 0.5

    try:
        _, out, _ = run("evaluate", "iris", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"))
    finally:
        gc.metrics.unregister("only once")
    assert [line.split() for line in out.splitlines() if "only once" in line] == [["only", "once", "0.5000"]]


def test_missing_labels_are_refused_before_the_fit(tmp_path, run):
    rows = "\n".join(f"{i},{i % 7},{'nan' if i == 5 else 1}" for i in range(40))
    (tmp_path / "d.csv").write_text(f"a,b,l\n{rows}\n")
    code, _, err = run("embed", str(tmp_path / "d.csv"), "-l", "l", "-n", "100000")
    assert code == 2
    assert "d.csv has no label in row 5 (counted from 0) but 'nan'" in err
    assert list(tmp_path.glob("*.npy")) == []


def test_warnings_of_every_command_are_shown(run, tmp_path):
    code, out, err = run("compare", "iris", "-m", "pca,tsne", "--perplexity", 0.5, "-n", 20, "--no-plot")
    assert (code, "pca" in out) == (0, True)
    assert "graphcouple: warning: tsne, default failed, and is left out: ValueError: perplexity" in err
    counted = "\n".join(f"{i},{i % 7},{i % 5}" for i in range(60))
    (tmp_path / "map.csv").write_text(f"t,x,y\n{counted}\n")
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(60, 4)))
    _, _, err = run("evaluate", tmp_path / "X.npy", tmp_path / "map.csv", "-k", 5)
    assert "graphcouple: warning: the first column of map.csv, 't', is left out as an index" in err
