"""The command with columns of a table, and with parts of one's own."""

import re

import click
import numpy as np
import pytest

from graphcouple import cli
from graphcouple._support.registry import METHODS
from graphcouple.kernels import KERNELS

pytestmark = pytest.mark.usefixtures("folder")


def test_columns_of_a_table_are_points_labels_or_texts(tmp_path, run):
    pl = pytest.importorskip("polars")
    X, kinds = np.random.default_rng(0).normal(size=(40, 3)), np.repeat(["left", "right"], 20)
    columns = {"id": [f"cell {i}" for i in range(40)], "topic": kinds, "vector": X.tolist(), "size": X[:, 0]}
    pl.DataFrame(columns).write_parquet("t.parquet")
    np.savetxt("wanted.csv", X, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    chosen = ("--columns", "vector", "-l", "topic", "--hover", "id,size", "--interactive", "map.html")
    assert run("embed", "t.parquet", "-n", 20, "--no-plot", *chosen)[0] == 0
    assert run("embed", "wanted.csv", "-n", 20, "--no-plot")[0] == 0
    np.testing.assert_array_equal(np.load("t-tsne.npy"), np.load("wanted-tsne.npy"))
    page = (tmp_path / "map.html").read_text()
    assert "cell 17" in page
    numbers = [",".join(f"{value:.17g}" for value in row) for row in X]
    rows = [f"cell {i},{row},{kind}" for i, (row, kind) in enumerate(zip(numbers, kinds, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(['id,"a, first",b,c,kind', *rows]) + "\n")
    assert run("embed", "t.csv", "-n", 20, "--no-plot", "--columns", '"a, first",b,3')[0] == 0
    np.testing.assert_array_equal(np.load("t-tsne.npy"), np.load("wanted-tsne.npy"))
    code, out, _ = run(
        "embed", "t.csv", "-n", 20, "--no-plot", "-l", "kind", "--hover", "id", "--interactive", "map.html"
    )
    assert code == 0
    assert out.count("(replaced)") == 2
    np.testing.assert_array_equal(np.load("t-tsne.npy"), np.load("wanted-tsne.npy"))
    assert "cell 17" in (tmp_path / "map.html").read_text()


def test_texts_of_odd_tables_end_in_one_line_before_the_fit(tmp_path, run):
    pl = pytest.importorskip("polars")
    (tmp_path / "short.csv").write_text("a,b,text\n" + "1.0,2.0\n2.0,1.0,x\n" * 15)
    shown = ("--hover", "text", "--interactive", "map.html", "-n", 5, "--perplexity", 3, "--no-plot")
    assert run("embed", "short.csv", "--columns", "a,b", *shown)[0] == 0
    (tmp_path / "long.csv").write_text("a,b,text\n1,2," + "x" * 200_000 + "\n")
    pl.DataFrame({"a": [1.0, 2.0], "text": [["x"], ["y", "z"]]}).write_parquet("lists.parquet")
    for arguments, word in (
        (("long.csv", *shown), "field larger than field limit"),
        (("lists.parquet", *shown), "text cannot be shown as text"),
        (("lists.parquet", "-l", "text"), "labels holds lists"),
        (("short.csv", "--columns", "a,b", "-l", "b"), "named by both --columns and --labels"),
    ):
        code, out, err = run("embed", *arguments)
        assert (code, out) == (2, "")
        assert word in err
        assert err.count("\n") == 1


def test_a_header_may_have_a_number_among_its_names(tmp_path, run):
    (tmp_path / "t.csv").write_text("a,2020,kind\n" + "".join(f"{i}.5,{i % 7},k{i % 2}\n" for i in range(30)))
    assert run("embed", "t.csv", "-l", "kind", "-n", 5, "--perplexity", 3, "--no-plot")[0] == 0
    assert np.load("t-tsne.npy").shape == (30, 2)
    (tmp_path / "t.csv").write_text("NA,1\n" + "".join(f"{i}.5,{i % 7}\n" for i in range(30)))
    assert "no number in line 1, column 0" in run("embed", "t.csv", "-n", 5)[2]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["embed", "wanted.npy", "--columns", "a"], "has no columns to choose"),
        (["embed", "iris", "--columns", "a"], "iris is a data set by name"),
        (["embed", "iris", "--hover", "a"], "shown on the map of --interactive"),
        (["--import", "no_such_module", "embed", "iris"], "--import no_such_module: ModuleNotFoundError"),
        (["--import", "none.py", "embed", "iris"], "--import none.py: no such file"),
        (["--import", "scipy.py", "embed", "iris"], "another module has the name scipy; rename the file"),
    ],
)
def test_columns_and_modules_that_are_not_there_are_named(tmp_path, run, arguments, word):
    np.save("wanted.npy", np.ones((5, 2)))
    (tmp_path / "scipy.py").write_text("")
    code, _, err = run(*arguments)
    assert code == 2
    assert word in err


def test_a_kernel_from_a_file_can_be_named(tmp_path, run):
    (tmp_path / "my_kernels.py").write_text(
        "from dataclasses import dataclass\n"
        "import graphcouple as gc\n"
        "@gc.extend.register_kernel('quartic-of-mine')\n"
        "@dataclass(frozen=True)\n"
        "class Quartic(gc.extend.Kernel):\n"
        "    def log(self, sq_dist):\n        return -(sq_dist**2)\n"
        "    def grad_log(self, sq_dist):\n        return -2.0 * sq_dist\n"
    )
    try:
        for module in ("my_kernels", "my_kernels.py"):
            arguments = ("--no-plot", "--latent-kernel", "quartic-of-mine")
            code, out, err = run("--import", module, "embed", "iris", "-n", 20, *arguments)
            assert code == 0, err
            assert "Quartic()" in out
    finally:
        from graphcouple.kernels import KERNELS

        KERNELS.remove("quartic-of-mine")


@pytest.mark.parametrize("name", sorted(cli.cli.commands))
def test_help_names_every_option_once(name, capsys):
    """Groups leave out nothing, whatever they name."""
    command = cli.cli.commands[name]
    with pytest.raises(SystemExit):
        command.main([name, "--help"][1:], prog_name=name)
    shown = capsys.readouterr().out.partition("Examples:")[0]
    for part in command.params:
        assert isinstance(part, click.Argument) or len(re.findall(rf"^ .*{part.opts[-1]}\b", shown, re.M)) >= 1, (
            part.name
        )
    first_words = [line.split()[0].rstrip(",") for line in shown.splitlines() if line.startswith("  -")]
    assert len(set(first_words)) == len(first_words)


def test_registered_parts_are_listed(capsys):
    for name, found in (("methods", METHODS), ("kernels", KERNELS.names()), ("priors", "BDES")):
        cli.cli.commands[name].main([], prog_name=name, standalone_mode=False)
        lines = capsys.readouterr().out.splitlines()
        assert {line.split()[0] for line in lines} >= set(found)
        assert all(len(line.split()) > 3 for line in lines)
