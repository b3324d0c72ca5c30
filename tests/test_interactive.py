"""Interactive maps: the page holds the given rows and texts, as text, and asks nothing of a network."""

import base64
import gzip
import html
import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import graphcouple as gc

pytest.importorskip("bokeh")
NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def document(drawn):
    """The models that the page gives to the browser, by type."""
    (text,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', drawn.html, re.DOTALL)
    (page,) = json.loads(html.unescape(text)).values()
    models = {}

    def collect(node):
        if isinstance(node, dict):
            if node.get("type") == "object":
                models.setdefault(node["name"], []).append(node.get("attributes", {}))
            for value in node.values():
                collect(value)
        elif isinstance(node, list):
            for value in node:
                collect(value)

    collect(page)
    return models


def columns(drawn):
    (source,) = sources_with("row", drawn)
    return source


def sources_with(column, drawn):
    sources = (dict(source["data"]["entries"]) for source in document(drawn)["ColumnDataSource"])
    return [source for source in sources if column in source]


def numbers(column):
    if isinstance(column, list):
        return np.array(column)
    dtype = np.dtype(column["dtype"])
    return np.frombuffer(gzip.decompress(base64.b64decode(column["array"]["data"])), dtype=dtype)


def test_the_page_holds_the_rows_and_asks_nothing_of_a_network(rng, tmp_path):
    Z, W = rng.normal(size=(2, 50, 3))
    y = np.array(["a", NASTY])[np.arange(50) % 2]
    far = {"one": Z, "two": W + 5e6}
    drawn = gc.plotting.interactive(far, y, hover={"size": Z[:, 0], "note": [NASTY] * 50}, title=NASTY)
    data = columns(drawn)
    for k, points in enumerate((Z, W)):
        found = np.column_stack([numbers(data[f"{side}{k}"]) for side in "xy"])
        np.testing.assert_allclose(found, points[:, :2] - points[:, :2].mean(axis=0), atol=1e-6)
    assert data["hover 0"] == y.tolist()
    assert data["hover 1"][3] == f"{Z[3, 0]:.6g}"
    assert data["hover 2"] == [NASTY] * 50
    assert NASTY not in drawn.html
    assert not re.findall(r"<(?:script|link)[^>]*(?:src|href)=", drawn.html)
    drawn.save(tmp_path / "map.html")
    assert (tmp_path / "map.html").read_text(encoding="utf-8") == drawn.html
    assert "<iframe srcdoc=" in drawn._repr_html_()
    with pytest.raises(ValueError, match=r"must end in \.html, got 'map\.png'"):
        drawn.save("map.png")


def test_each_class_has_a_layer_in_each_map_and_a_button(rng):
    Z, y = rng.normal(size=(40, 2)), np.arange(40) % 4
    models = document(gc.plotting.interactive({"a": Z, "b": 2 * Z}, y))
    assert len(models["GlyphRenderer"]) == 8
    assert [part["group"] for part in models["GroupFilter"]] == [*"0123"] * 2
    (buttons,) = models["CheckboxButtonGroup"]
    assert (buttons["labels"], buttons["active"]) == ([*"0123"], [0, 1, 2, 3])
    many = document(gc.plotting.interactive(rng.normal(size=(200, 2)), [f"class {c % 70}" for c in range(200)]))
    assert "CheckboxButtonGroup" not in many
    assert any("70 classes" in each.get("text", "") for each in many["Div"])


def test_numbers_get_a_colour_bar_and_many_points_a_sample_that_says_so(rng):
    Z = rng.normal(size=(500, 1))
    drawn = gc.plotting.interactive(Z, color=Z[:, 0], max_points=100)
    models = document(drawn)
    # Ranks have no unit.
    both = document(gc.plotting.interactive({"line": Z, "plane": Z[:, [0, 0]]}))["Figure"]
    assert [each.get("match_aspect", False) for each in both] == [False, True]
    assert len(models["ColorBar"]) == 1
    assert any("100 of 500 points" in each["text"] for each in models["PreText"])
    rows = numbers(columns(drawn)["row"])
    assert len(np.unique(rows)) == 100
    np.testing.assert_allclose(numbers(columns(drawn)["number"]), Z[rows, 0])
    np.testing.assert_allclose(numbers(columns(drawn)["y0"]), Z[:, 0].argsort().argsort()[rows] - 249.5)


def test_beyond_the_sample_the_density_counts_all_points(rng):
    Z = np.repeat([[0.0, 0.0], [4.0, 0.0], [4.0, 2.0]], [600, 300, 100], axis=0)
    drawn = gc.plotting.interactive(Z, max_points=5)
    (image,) = sources_with("image", drawn)
    place = document(drawn)["ImageRGBA"][0]
    np.testing.assert_allclose([place[side]["value"] for side in ("x", "y", "dw", "dh")], [-1.6, -0.2, 4.0, 2.0])
    opacity = numbers(image["image"][0]).reshape(500, 500) >> 24
    assert opacity[0, 0] > opacity[0, -1] > opacity[-1, -1] > 0
    assert np.count_nonzero(opacity) == 3


def test_an_estimator_tells_of_its_points(rng):
    X = rng.normal(size=(40, 3))
    fitted = gc.SNE(perplexity=5, max_iter=5, random_state=0).fit(X)
    data = columns(gc.plotting.interactive({"sne": fitted, "data": X}, hover=[f"<b>{i}" for i in range(40)]))
    np.testing.assert_allclose([float(text) for text in data["hover 1"]], fitted.point_losses(), rtol=5e-3)
    np.testing.assert_allclose([float(text) for text in data["hover 2"]], fitted.isolation(), rtol=5e-3)
    nearest = np.argsort(-np.asarray(fitted.posterior_.mean()), axis=1)[:, :5]
    assert data["hover 3"] == [", ".join(map(str, row)) for row in nearest.tolist()]
    # Nodes are not rows if equal rows are merged, or some rows are placed.
    merged = gc.SNE(perplexity=5, max_iter=20, unique=True, random_state=0).fit(np.repeat(X, 2, axis=0))
    of_nodes = columns(gc.plotting.interactive(merged))["hover 2"]
    assert of_nodes[::2] == of_nodes[1::2] == [", ".join(str(2 * j) for j in row) for row in nearest.tolist()]
    some = gc.SNE(perplexity=5, max_iter=20, n_landmarks=20, random_state=0).fit(X)
    named = columns(gc.plotting.interactive(some))["hover 2"]
    assert {int(j) for text in named if text for j in text.split(", ")} <= set(some.landmarks_.tolist())
    assert [i for i, text in enumerate(named) if text] == some.landmarks_.tolist()
    spectral = columns(gc.plotting.interactive(gc.LaplacianEigenmaps().fit(X)))
    assert [name for name in spectral if name.startswith("hover")] == ["hover 0"]


def test_names_that_are_taken_are_told_apart(rng):
    fitted = gc.SNE(perplexity=5, max_iter=5, random_state=0).fit(rng.normal(size=(20, 3)))
    table = pd.DataFrame({"loss": [f"mine {i}" for i in range(20)], "label": range(20)})
    drawn = gc.plotting.interactive(fitted, np.arange(20) % 2, hover=table)
    (tool,) = document(drawn)["HoverTool"]
    names = re.findall("<b>(.*?):</b>", tool["tooltips"])
    assert names[:4] == ["row", "label", "loss", "label (hover)"]
    assert "loss (fit)" in names
    (tool,) = document(gc.plotting.interactive(fitted.embedding_, hover={"<i>@row $x": range(20)}))["HoverTool"]
    assert "&lt;i&gt;&#64;row &#36;x:</b> @{hover 0}" in tool["tooltips"]
    assert columns(drawn)["hover 1"][3] == "mine 3"
    series = gc.plotting.interactive(fitted.embedding_, hover=pd.Series(range(20), name="size"))
    assert columns(series)["hover 0"] == [str(i) for i in range(20)]


def test_an_estimator_that_is_not_fitted_says_so():
    with pytest.raises(TypeError, match="Z must be an array, and TSNE has no embedding_: fit"):
        gc.plotting.interactive(gc.TSNE())
    with pytest.raises(TypeError, match=r"Z must be an array; pass pipeline\[-1\].embedding_ rather than"):
        gc.plotting.interactive(make_pipeline(gc.PrecisionCoupling(2)).fit(np.eye(20)[:, :4]))


def test_another_library_gets_the_points_the_numbers_and_the_text(rng, monkeypatch):
    calls = []
    plotly = SimpleNamespace(scatter_3d=lambda frame, **options: calls.append((frame, options)))
    monkeypatch.setitem(sys.modules, "plotly", SimpleNamespace(express=plotly))
    monkeypatch.setitem(sys.modules, "plotly.express", plotly)
    Z = rng.normal(size=(30, 3))
    gc.plotting.interactive(Z, np.arange(30) % 3, hover={"size": range(30)}, backend="plotly", title="t", max_points=10)
    ((frame, options),) = calls
    rows = [int(text.split()[-1]) for text in frame["text"]]
    np.testing.assert_array_equal(frame[["x", "y", "z"]], Z[rows])
    np.testing.assert_array_equal(frame["color"], np.arange(30)[rows] % 3)
    assert frame["text"][0] == f"label: {rows[0] % 3}\nsize: {rows[0]}"
    assert options == {"x": "x", "y": "y", "z": "z", "color": "color", "hover_data": ["text"], "title": "t"}
    monkeypatch.setitem(sys.modules, "jscatter", None)
    with pytest.raises(ModuleNotFoundError, match="needs jupyter-scatter; install it with: pip"):
        gc.plotting.interactive(Z, backend="jscatter")


def test_mistakes_are_named(rng):
    Z = rng.normal(size=(20, 2))
    for call, match in [
        (lambda: gc.plotting.interactive({"a": Z, "b": Z[1:]}), r"same number of rows, got \[19, 20\]"),
        (lambda: gc.plotting.interactive(Z, hover=["a"]), r"hover\['text'\] must have 20 entries"),
        (lambda: gc.plotting.interactive(Z, hover="twenty characters..."), "must have 20 entries"),
        (lambda: gc.plotting.interactive(Z, hover={"a": 5}), r"hover\['a'\] must have 20 entries"),
        (
            lambda: gc.plotting.interactive(Z, hover=pd.DataFrame(np.ones((20, 2)), columns=["a", "a"])),
            "different names",
        ),
        (lambda: gc.plotting.interactive({1: Z, "1": Z}), "the embeddings must have different names"),
        (lambda: gc.plotting.interactive(Z, np.zeros(3)), "labels has 3 entries"),
        (lambda: gc.plotting.interactive(Z, color=[1]), "color has 1 entries"),
        (lambda: gc.plotting.interactive(Z, backend="bokhe"), "backend must be 'auto', 'bokeh', 'datamapplot'"),
        (lambda: gc.plotting.interactive({"a": Z, "b": Z}, backend="plotly"), "draws one embedding, got 2"),
        (lambda: gc.plotting.interactive({}), "Z must name at least one embedding"),
    ]:
        with pytest.raises(ValueError, match=match):
            call()


def test_whole_numbers_with_gaps_are_shown_in_full():
    columns = _columns({"id": [1234567.0, 1234568.0, np.nan, 0.1234567]})
    assert columns["id"] == ["1234567", "1234568", "nan", "0.123457"]
    with pytest.raises(ValueError, match="two columns that read '1'"):
        _columns({1: list("abcd"), "1": list("efgh")})


def _columns(hover):
    from graphcouple.plotting import _interactive

    return _interactive._hover_columns(hover, 4, range(4))
