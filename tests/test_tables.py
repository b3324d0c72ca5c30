"""Tables on disk: Parquet and text separated by tabs."""

import gzip
import sys
import warnings
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import graphcouple as gc
from graphcouple.datasets import _columns
from graphcouple.datasets._files import read_labels, read_points, read_texts

pl = pytest.importorskip("polars")

X = np.random.default_rng(0).normal(size=(12, 3))
KINDS = np.repeat(["left", "right"], 6)


@pytest.fixture
def table():
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": KINDS, "c": X[:, 2]})


@pytest.mark.parametrize(("mark", "name"), [(";", "t.csv"), ("\t", "t.csv.gz"), (",", "t.tsv")])
def test_columns_are_separated_as_the_first_line_says(table, tmp_path, mark, name):
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wt") as file:
        file.write(table.write_csv(separator=mark))
    points, y = read_points(tmp_path / name, "kind")
    np.testing.assert_array_equal(points, X)
    np.testing.assert_array_equal(y, KINDS)
    # A name and a number of one column count once.
    np.testing.assert_array_equal(read_points(tmp_path / name, None, ["a", "0", "c"])[0], X[:, [0, 2]])


@pytest.mark.parametrize("labels", ["kind", "2", "-2"])
def test_parquet_is_read_to_the_bit(table, tmp_path, labels):
    table.write_parquet(tmp_path / "t.parquet")
    points, y = read_points(tmp_path / "t.parquet", labels)
    np.testing.assert_array_equal(points, X)
    np.testing.assert_array_equal(y, KINDS)


def test_columns_of_other_kinds_are_named(table, tmp_path):
    table.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"non-numeric column\(s\): kind; name labels with --labels"):
        read_points(tmp_path / "t.parquet", None)
    with pytest.raises(ValueError, match="no column 'sort'; its 4 columns are a, b, kind, c"):
        read_points(tmp_path / "t.parquet", "sort")
    table.select("kind").write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="no columns of points besides the labels"):
        read_points(tmp_path / "t.parquet", "kind")


def test_numbers_of_any_type_and_missing_ones(tmp_path):
    whole = pl.DataFrame(
        {"i": np.arange(4, dtype=np.int16), "b": [True, False, True, True], "m": [1.0, None, 3.0, 4.0]}
    )
    whole.write_parquet(tmp_path / "t.parquet")
    points, y = read_points(tmp_path / "t.parquet", "i")
    np.testing.assert_array_equal(points, [[1.0, 1.0], [0.0, np.nan], [1.0, 3.0], [1.0, 4.0]])
    np.testing.assert_array_equal(y, np.arange(4))
    pl.DataFrame(X.astype(np.float32)).write_parquet(tmp_path / "t.parquet")
    assert read_points(tmp_path / "t.parquet", None)[0].dtype == np.float32


@pytest.mark.parametrize("cell", [b"\xff", timedelta(1)])
def test_labels_are_texts_or_numbers(tmp_path, cell):
    table, path = pl.DataFrame({"a": [1.0, 2.0], "money": [Decimal("2.5"), Decimal(1)]}), tmp_path / "t.parquet"
    table.with_columns(b=pl.Series([cell, cell])).write_parquet(path)
    assert repr(read_points(path, "money", ["a"])[1]) == "array([2.5, 1. ])"
    long = [Decimal(10**20 + 1), Decimal(10**20 + 2)]
    table.with_columns(b=pl.Series(long)).write_parquet(tmp_path / "long.parquet")
    assert read_points(tmp_path / "long.parquet", "b", ["a"])[1].tolist() == [str(number) for number in long]
    with pytest.raises(ValueError, match=r"t\.parquet: the column 'b' of .* cannot be labels; write it as text"):
        read_points(path, "b")


def test_vectors_in_one_column(tmp_path):
    for dtype in (pl.List(pl.Float32), pl.Array(pl.Float64, 3)):
        vectors = pl.DataFrame({"vector": pl.Series(X.tolist(), dtype=dtype), "kind": KINDS})
        vectors.write_parquet(tmp_path / "t.parquet")
        points, y = read_points(tmp_path / "t.parquet", "kind")
        np.testing.assert_allclose(points, X, rtol=1e-6)
        np.testing.assert_array_equal(y, KINDS)
    pl.DataFrame({"vector": [{"a": 1.0}]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"non-numeric column\(s\): vector; .* one column of lists"):
        read_points(tmp_path / "t.parquet", None)
    pl.DataFrame({"vector": [[1.0], [1.0, 2.0]]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="must all have the same length, got 1 to 2"):
        read_points(tmp_path / "t.parquet", None)


def test_an_index_of_pandas_is_no_column(tmp_path):
    pl.DataFrame({"a": X[:, 0], "__index_level_0__": np.arange(12)}).write_parquet(tmp_path / "t.parquet")
    assert read_points(tmp_path / "t.parquet", None)[0].shape == (12, 1)
    assert read_texts(tmp_path / "t.parquet", ["-1"]) == {"-1": [str(x) for x in X[:, 0]]}


def test_damaged_and_large_files_are_refused_in_words(table, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 no more")
    with pytest.raises(ValueError, match=r"t\.parquet is not a Parquet file"):
        read_points(path, None)
    table.write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"t\.parquet is not a Parquet file"):
        read_points(path, None)
    table.with_columns(kind=pl.lit("x" * 5000)).write_parquet(path)
    with pytest.raises(ValueError, match="a label of 5000 characters"):
        read_points(path, "kind")
    # A constant column takes a few bytes, however long.
    pl.DataFrame({"a": np.zeros(10**6)}).write_parquet(path)
    assert path.stat().st_size < 10**5
    monkeypatch.setattr(_columns, "MOST_BYTES", 10**6)
    with pytest.raises(ValueError, match="GRAPHCOUPLE_MOST_BYTES"):
        read_points(path, None)


def test_the_command_reads_tables(table, folder, run, monkeypatch):
    table.write_parquet("t.parquet")
    table.write_csv("t.tsv", separator="\t")
    for name in ("t.parquet", "t.tsv"):
        code, _, err = run("embed", name, "-l", "kind", "--method", "pca", "-o", f"{name}.npy", "--no-plot")
        assert code == 0, err
    np.testing.assert_allclose(np.load("t.parquet.npy"), np.load("t.tsv.npy"))
    monkeypatch.setitem(sys.modules, "polars", None)
    code, _, err = run("embed", "t.parquet", "-l", "kind", "--method", "pca", "--no-plot")
    assert code == 2
    assert "pip install '.[parquet]'" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("ending", [".tsv", ".tsv.gz"])
def test_tabs_separate_cells_and_commas_do_not(tmp_path, ending):
    text = "a\tkind\tb\n" + "".join(
        f"{x[0]!r}\t{kind}, one\t{x[1]!r}\n" for x, kind in zip(X.tolist(), KINDS, strict=True)
    )
    path = tmp_path / f"t{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    points, y = read_points(path, "kind")
    np.testing.assert_array_equal(points, X[:, :2])
    assert set(y) == {"left, one", "right, one"}


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("columns", [None, list("abc")])
def test_tables_of_pandas_lose_neither_rows_nor_columns(tmp_path, index, columns):
    """pandas numbers nameless columns from 0, and its index is a first column without a name."""
    path = tmp_path / "t.csv"
    pd.DataFrame(X, columns=columns, index=[f"cell {i}" for i in range(len(X))]).to_csv(path, index=index)
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        points, _ = read_points(path, None)
    np.testing.assert_allclose(points, X)
    expected = [("the first row of t.csv, 0, 1, 2,", columns is None and not index)]
    expected.append(("the first column of t.csv has no", index))
    assert [str(message.message)[:32] for message in messages] == [text for text, is_told in expected if is_told]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.filterwarnings("ignore:the first row of")
def test_an_index_is_left_out_and_years_are_names(tmp_path, kind):
    rows, path = np.random.default_rng(0).normal(size=(12, 3)), tmp_path / f"t.{kind}"
    table = pd.DataFrame(rows, columns=list("abc"))

    def read(table, **options):
        if kind == "csv":
            table.to_csv(path, index=False)
        else:
            pl.DataFrame({name: table[name].to_numpy() for name in table}).write_parquet(path)
        return read_points(path, None, **options)[0]

    for name, counter in (
        ("id", np.arange(12)),
        ("row", np.arange(1, 13)),
        ("User_ID", np.arange(12) + 1000),
        ("Unnamed: 0", np.arange(12)[::-1]),
    ):
        counted = pd.concat([pd.Series(counter, name=name), table], axis=1)
        with pytest.warns(UserWarning, match=f"the first column of t.{kind}, '{name}', is left out as an index"):
            np.testing.assert_allclose(read(counted), rows)
        np.testing.assert_allclose(read(counted, columns=[name, "b"]), np.c_[counter, rows[:, 1]])
    for name, counter in (("age", np.arange(12) + 30), ("grid", np.arange(12) + 30)):
        assert read(pd.concat([pd.Series(counter, name=name), table], axis=1)).shape == (12, 4)
    assert read(table.iloc[:0].assign(id=[])).shape == (0, 4) if kind == "parquet" else True
    for names in (["2001", "2002", "2003"], ["1", "2", "3"]):
        np.testing.assert_allclose(read(table.set_axis(names, axis=1)), rows)


def test_a_blank_line_after_the_names_and_rows_that_only_count(tmp_path):
    path = tmp_path / "t.csv"
    for text, shape in (("a,b\n\n1,2\n3,4\n", (2, 2)), ("1,2,3\n2,3,4\n5,5,5\n", (3, 3)), ("1,2\n7,9\n", (2, 2))):
        path.write_text(text)
        assert read_points(path, None)[0].shape == shape
    path.write_text("1,2,3\n4,0,7\n9,9,9\n")
    with pytest.warns(UserWarning, match=r"first row of t\.csv, 1, 2, 3, is taken for names of the columns"):
        read_points(path, None)


def test_a_first_row_of_numbers_and_a_name_is_not_dropped_silently(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0.1,0.2,A\n0.3,0.4,7\n0.5,0.6,B\n")
    with pytest.warns(UserWarning, match=r"first row of t\.csv, 0\.1, 0\.2, A, is taken for names of the columns"):
        read_points(path, "2")
    for row, taken, shape in (
        ("5,6,7,8\n", "names of the columns", (2, 4)),
        ("900,902,904,906\n", "a point; if it numbers the columns, put a letter", (3, 4)),
    ):
        path.write_text(row + "7,9,2,4\n1,3,9,9\n")
        with pytest.warns(UserWarning, match=f"is taken for {taken}"):
            assert read_points(path, None)[0].shape == shape
    path.write_text("label,0,1,2\n7,0.3,0.4,5\n8,0.5,0.6,6\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.DataFrame(np.ones((3, 4))).to_csv(tmp_path / "pandas.csv", index=False)
        assert read_points(tmp_path / "pandas.csv", None)[0].shape == (3, 4)
        assert read_points(path, "label")[1].tolist() == [7, 8]
        for text in (
            "0,1,2,kind\n1,.5,3,a\n",
            ",0,1,kind\n0,5,3,a\n",
            "kind,1990,1991,1992\na,.5,3,1\n",
            '"a\n,b";kind\n1;a\n',
        ):
            path.write_text(text)
            assert read_texts(path, ["kind"]) == {"kind": ["a"]}
        path.write_text("0,1,cat\n1,5,dog\n")
        assert read_points(path, "2")[0].tolist() == [[0, 1], [1, 5]]
        for index in ("0.0", "-1"):
            path.write_text(f",0,1,kind\n{index},.5,3,a\n")
            assert read_texts(path, ["kind"]) == {"kind": ["a"]}
    path.write_text(",0,1,a\n.5,.2,3,b\n.6,6,7,c\n")
    with pytest.raises(ValueError, match="no number in line 1, column 0"):
        read_points(path, "3")
    for row in ("0.25,3,blue,small", "-1,2.5,blue,small"):
        path.write_text(f"0,1,red,big\n{row}\n")
        with pytest.warns(UserWarning, match="is taken for names of the columns"):
            assert len(read_points(path, "3", ["0", "1"])[0]) == 1
    for text in ("country,1990,1992,1994\nFR,9,2.5,4\n", "B,1,2,3\nR,4,4,4\n"):
        path.write_text(text)
        with pytest.warns(UserWarning, match="is taken for a point; if it numbers the columns"):
            assert len(read_points(path, "0")[0]) == 2


def test_files_of_another_kind_than_their_ending(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.eye(3))
    (tmp_path / "b.npy").rename(tmp_path / "b.npz")
    for name in ("a.npy", "b.npz"):
        with pytest.raises(ValueError, match="its ending does not fit its content"):
            read_points(tmp_path / name, None)


def test_labels_that_are_told_apart_stay_apart(tmp_path):
    path = tmp_path / "labels.txt"
    for labels in (["1_0", "10", "1_1", "11"], ["01", "1", "2", "3"]):
        path.write_text("\n".join(labels) + "\n")
        assert read_labels(path, 4).tolist() == labels
    path.write_text("kind\na\n\nb\nc\n")
    with pytest.raises(ValueError, match=r"labels\.txt has no label in row 1 \(counted from 0\) but ''; .*write -1"):
        read_labels(path, 4)


@pytest.mark.parametrize(("name", "mark"), [("l.csv", ","), ("l.TSV.gz", "\t"), ("l.TXT", None)])
def test_files_of_labels_are_read_as_tables_are(tmp_path, name, mark):
    labels = ["new\nline", 'a "b"', f"Smith{mark}J", "c"] if mark else ["a, b", "c"]
    for header in ([], ["kind"]):
        frame = pd.DataFrame([[label] for label in [*header, *labels]])
        frame.to_csv(tmp_path / name, sep=mark or "\t", index=False, header=False)
        assert read_labels(tmp_path / name, len(labels)).tolist() == labels
    with gzip.open(tmp_path / "l.csv.gz", "wt") as file:
        file.write('"a,b"\nc, d\n"e"\n')
    assert read_labels(tmp_path / "l.csv.gz", 3).tolist() == ["a,b", "c, d", "e"]


def test_lines_names_and_spaces_of_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Unnamed: 0,b,c\nnan,2,3\n1,2,inf\n")
    with (
        pytest.warns(UserWarning, match="'Unnamed: 0', is left out as an index"),
        pytest.raises(ValueError, match="no finite number in line 3, column c"),
    ):
        read_points(path, None)
    path.write_text("x,kind,kind\n1,2,2\n3,4,4\n")
    assert read_points(path, "1")[1].tolist() == [2, 4]
    path.write_text('a,b,kind\n1,2,cat\n3,4,"cat "\n5,6, cat\n')
    assert set(read_points(path, "kind")[1]) == {"cat"}
    pl.DataFrame({"a": [1.0, 2.0], "kind": ["cat", "cat "]}).write_parquet(tmp_path / "t.parquet")
    assert set(read_points(tmp_path / "t.parquet", "kind")[1]) == {"cat"}
    path.write_text("Na,Type\n13.6,a\n13.8,b\n")
    assert read_points(path, "Type")[1].tolist() == ["a", "b"]
    path.write_text('a,"the\nkind",²\n1,cat,3\n2,dog,4\n')
    assert read_points(path, "the\nkind")[0].tolist() == [[1, 3], [2, 4]]
    for column in ("--1", "³"):
        with pytest.raises(ValueError, match=f"has no column '{column}'; its 3 columns are"):
            read_points(path, column)


@pytest.mark.parametrize(
    ("text", "labels", "message"),
    [
        ("a,b,y\n1,2,0\n\n\n3,4,1\n5,x,1\n", "y", "no number in line 6, column b"),
        *(
            (f"a,b,y\n1,2,0\n\n3,{cell},1\n", "y", "no finite number in line 4, column b")
            for cell in ("inf", "-Infinity", "nan")
        ),
        ("a,b,y\n1,2,0\n\n3\n", "y", "1 cells in line 4, but 3 in its first row; fill in"),
        ("größe,b\n1,2\n", None, "save it as UTF-8"),
        ("x,kind,kind\n1,2,2\n3,4,4\n", "kind", "2 columns 'kind'; rename one, or give its number"),
        # A first row of missing values is data, which are refused.
        ("NA,NA\n1,2\n3,4\n", None, "no number in line 1, column 0"),
        ("a;b\n1,5;2\n2,5;3\n", None, "decimal points instead of commas"),
        ("\na,b\n1,2\n", None, "is empty, or its first line is"),
        ("a,b\n", None, "has a header, but no rows"),
        ('"a","b"\n"1",5.1,3.5\n"2",4.9,3.0\n', None, r"t\.csv has 2 names and 3 cells in a row; name every column"),
        *(
            (f"a,b,kind\n1,2,x\n3,4,{missing}\n5,6,None\n", "kind", rf"row 1 \(counted from 0\) but '{missing}'")
            for missing in ("", "NA", "nan")
        ),
    ],
)
def test_tables_that_cannot_be_read_are_refused(tmp_path, text, labels, message):
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=message):
        read_points(tmp_path / "t.csv", labels)


def test_identifiers_out_of_order_are_told(tmp_path):
    ids = np.random.default_rng(0).permutation(30)
    rows = "".join(f"{k},{k % 7}.5,{k % 3}.25\n" for k in ids)
    (tmp_path / "table.csv").write_text(f"id,a,b\n{rows}")
    with pytest.warns(UserWarning, match="'id', looks like an identifier"):
        assert read_points(tmp_path / "table.csv", None)[0].shape == (30, 3)
    (tmp_path / "other.csv").write_text(f"width,a,b\n{rows}")
    assert read_points(tmp_path / "other.csv", None)[0].shape == (30, 3)


def test_the_index_that_pandas_names_is_no_feature(tmp_path):
    table = pd.DataFrame({"label": [7, 1, 9], "a": [1.0, 2, 3], "b": [4, 5, 6]}).set_index("label")
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match="pandas' index in t.parquet, label, is left out"):
        np.testing.assert_array_equal(read_points(tmp_path / "t.parquet", None)[0], [[1, 4], [2, 5], [3, 6]])
    for X, y in (read_points(tmp_path / "t.parquet", "label"), gc.datasets.load("mnist", tmp_path / "t.parquet")):
        assert X.shape == (3, 2)
        assert y.tolist() == [7, 1, 9]


def test_a_last_label_that_reads_like_a_name(tmp_path):
    (tmp_path / "table.csv").write_text("1.0,2.0,y\n1.1,2.1,n\n2,3,y\n")
    X, y = gc.datasets.load("pendigits", tmp_path / "table.csv")
    assert X.shape == (3, 2)
    assert y.tolist() == ["y", "n", "y"]
