"""What the command refuses: one line, status 2, and nothing written."""

import gzip
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from graphcouple import plotting


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write what no command can use; as failures write nothing, one folder serves all of them."""
    folder, rng = tmp_path_factory.mktemp("failures"), np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    texts = {
        "words.csv": "a,b\n1,x\n2,y\n",
        "ragged.csv": "1,2\n3\n",
        "empty.csv": "",
        "gap.csv": "a,b\n1,2\n1,\n3,4\n",
        "nan.csv": "1,2\nnan,4\n5,6\n",
        "wide.csv": "a,b,kind\n1,2,x\n1,050,3,x\n4,5,y\n",
        "one.csv": "1,2\n",
        "mixed.csv": "NA,1,2\n" + "1,2,3\n" * 50,
        "index.csv": "a,,b\n1,x,2\n3,y,4\n",
        "few.txt": "a\nb\n",
        "broken.npy": "not numpy",
        "broken.mtx": "not a matrix",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    arrays = {
        "objects": np.array([{"a": 1}], dtype=object),
        "line": np.arange(5.0),
        "scalar": np.array(3.0),
        "huge": 1e200 * X,
        "short": np.ones((3, 2)),
        "nan": np.full((150, 2), np.nan),
        "good": rng.normal(size=(150, 2)),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "odd.npz", a=np.ones(3), b=np.ones(3))
    np.savez(folder / "whole.npz", X=X)
    packed = gzip.compress("\n".join(",".join(map(str, row)) for row in X).encode())
    for ending, whole in (("npz", (folder / "whole.npz").read_bytes()), ("csv.gz", packed)):
        half, flipped = len(whole) // 2, bytearray(whole)
        flipped[half] ^= 0xFF
        (folder / f"cut.{ending}").write_bytes(whole[:half])
        (folder / f"flipped.{ending}").write_bytes(bytes(flipped))
    # Sparse matrices whose indices lead out of their arrays.
    matrix = sp.random(60, 8, density=0.5, random_state=0, format="csr")
    parts = {"shape": [60, 8], "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    damage = {"shape": [60, 3], "indices": 1_000_003 * matrix.indices, "indptr": 1_000_003 * matrix.indptr}
    for name, wrong in damage.items():
        np.savez(folder / f"{name}.npz", format=np.array(b"csr"), **{**parts, name: wrong})
    (folder / "folder.csv").mkdir()
    return folder


EMBED = [
    ([], "DATA"),
    (["missing.csv"], "no such file"),
    (["unheard_of"], "neither a file"),
    (["words.csv"], "b"),
    (["ragged.csv"], "ragged.csv"),
    (["empty.csv"], "empty"),
    (["nan.csv"], "no finite number in line 2, column 0"),
    (["gap.csv"], "no number in line 3, column b"),
    (["wide.csv", "--labels", "kind"], "4 cells in line 3, but 3 in its first row"),
    (["one.csv"], "1 sample"),
    (["broken.npy"], "NumPy"),
    (["broken.mtx"], "Matrix Market"),
    (["odd.npz"], "call the points X"),
    (["objects.npy"], "NumPy"),
    (["line.npy"], "2D array"),
    (["few.txt"], "ending"),
    (["iris", "--labels", "few.txt"], "2 labels"),
    (["nan.csv", "--labels", "colour"], "colour"),
    (["iris", "--labels", "nan.csv"], "several columns"),
    (["iris", "--labels", "odd.npz"], r"labels are read from \.npy, \.txt"),
    (["index.csv"], r"Non-numeric column\(s\): 1 \(without a name\)"),
    (["index.csv", "--labels", "aa"], "did you mean 'a'"),
    (["iris", "--perplexity", "many"], "many"),
    (["iris", "--perplexity", "5,many"], "5,many"),
    (["iris", "--n-neighbors", "150"], "n_neighbors=150"),
    (["iris", "-m", "umap", "--perplexity", "5"], "does not apply"),
    (["iris", "-m", "magic"], "magic"),
    (["iris", "-m", "ccpca", "--init", "pca"], "does not apply"),
    (["iris", "-m", "ccpca", "-n", "10"], "--iterations does not apply"),
    (["iris", "-m", "ccpca", "--latent-prior", "D"], "does not apply"),
    (["iris", "-m", "ccpca", "--component-weight", "1"], "does not apply"),
    (["iris", "-m", "ccpca", "-c", "5"], "n_components=5"),
    (["iris", "--component-weight", "-1"], "weight"),
    (["iris", "--component-weight", "much"], "neither a number"),
    (["iris", "--large-scale", "-1"], "weight"),
    (["iris", "--density", "-1"], "--density: weight"),
    (["iris", "-m", "isomap", "--large-scale", "1"], "--large-scale does not apply"),
    (["iris", "-m", "pca", "--prototypes", "5"], "--prototypes does not apply"),
    (["iris", "--init", "magic"], "magic"),
    (["iris", "-c", "0"], "n_components"),
    (["iris", "-n", "0"], "max_iter"),
    (["iris", "-s", "-1"], "seed|random_state"),
    (["iris", "--latent-kernel", "cosine"], "cosine"),
    (["iris", "--latent-kernel", "rational"], "rational"),
    (["iris", "--latent-kernel", "student:x"], "student:x"),
    (["iris", "--input-prior", "B"], "undefined"),
    (["iris", "--metric", "nearness"], "nearness"),
    (["iris", "-o", "out.xlsx"], "ending"),
    (["iris", "-o", "nowhere/out.npy"], "folder"),
    (["iris", "-p", "out.bmp"], "ending"),
    (["iris", "--unknown"], "unknown"),
    (["iris", "--set", "exaggeration"], "'exaggeration' has no '='"),
    (["iris", "--set", "exageration=2"], "did you mean 'exaggeration'"),
    (["iris", "--set", "exaggeration=much"], "exaggeration"),
    (["iris", "-c", "3", "--set", "n_components=2"], "--components and --set n_components give one parameter"),
    (["iris", "--n-neighbors", "9", "--set", "n_neighbors=5"], "--n-neighbors and --set n_neighbors give one"),
    (["iris", "--set", "exaggeration=2", "--set", "exaggeration=3"], "exaggeration is given twice"),
    (["iris", "--labels", "nosuch"], "nosuch"),
    (["iris", "--no-plot", "-p", "x.png"], "--no-plot"),
    *(([f"{part}.npz"], f"{part}.npz") for part in ("shape", "indices", "indptr")),
    *(([name], "") for name in ("cut.npz", "flipped.npz", "cut.csv.gz", "flipped.csv.gz")),
    *(([name], "") for name in ("scalar.npy", "huge.npy", "mixed.csv")),
]
OTHERS = [
    (["compare", "iris", "-m", "tsne,ivis"], "--methods 'ivis' must be one of"),
    (["compare", "iris", "-m", ","], "--methods must name at least one"),
    (["compare", "iris", "-i", "zero"], "--inits 'zero' must be one of"),
    (["compare", "iris", "--seeds", 0], "--seeds"),
    (["compare", "iris", "-o", "out.txt"], "the ending must be one of .csv"),
    (["compare", "iris", "--rows", 1], "n_rows must be at least 2"),
    (["compare", "short.npy"], "n_samples = 3"),
    (["evaluate", "iris", "good.npy", "good.npy"], "named twice"),
    (["evaluate", "iris", "good.npy", "-o", "folder.csv"], "is a folder"),
    (["compare", "none"], "unknown data 'none'"),
    (["evaluate", "iris"], "EMBEDDINGS"),
    (["evaluate", "iris", "none.npy"], "no such file"),
    (["evaluate", "iris", "short.npy"], r"Z\['short.npy'\] has 3 rows, but X has 150"),
    (["evaluate", "iris", "nan.npy"], r"Z\['nan.npy'\] holds NaN"),
    (["evaluate", "iris", "good.npy", "-k", 149], "K=149 must be at most"),
    (["evaluate", "iris", "good.npy", "-o", "out.txt"], "the ending must be one of .csv"),
    (["evaluate", "iris", "good.npy", "-o", "no/out.csv"], "folder no does not exist"),
    (["evaluate", "iris", "good.npy", "--metric", "fast"], "metric"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), [*((["embed", *arguments], message) for arguments, message in EMBED), *OTHERS]
)
def test_failures_are_one_line_status_two_and_write_nothing(files, monkeypatch, run, arguments, message):
    monkeypatch.chdir(files)
    before = sorted(files.rglob("*"))
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("graphcouple: error: ")
    assert err.count("\n") == 1
    assert re.search(message, err)
    assert sorted(files.rglob("*")) == before


def test_an_existing_output_survives_a_failure(folder, run, monkeypatch):
    (folder / "out.npy").write_text("precious")
    (folder / "out.png").write_text("precious")

    def fail(*args, **kwargs):
        raise ValueError("no picture today")

    monkeypatch.setattr(plotting, "plot", fail)
    code, _, err = run("embed", "iris", "-n", 3, "-o", "out.npy")
    assert code == 2
    assert "no picture today" in err
    assert (folder / "out.npy").read_text() == (folder / "out.png").read_text() == "precious"
    assert sorted(p.name for p in folder.iterdir()) == ["out.npy", "out.png"]


def test_missing_matplotlib_is_said_before_any_work(folder, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run("embed", "iris", "-p", "iris.png")
    assert code == 2
    assert "python -m pip install '.[plot]'" in err
    assert not list(folder.iterdir())
    # Without a picture asked for by name, there is still an embedding.
    code, _, err = run("embed", "iris", "-m", "pca")
    assert code == 0
    assert "no picture, as plotting needs matplotlib; install the extra 'plot'" in err
    assert err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["iris-pca.npy"]
