import sys
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import graphcouple as gc
from graphcouple.plotting._style import discard, labels_or_none


@pytest.fixture
def Z():
    return np.random.default_rng(0).normal(size=(60, 2))


def test_draws_every_point_in_its_classs_colour(Z):
    y = np.arange(60) % 3
    ax = gc.plot(Z, y)
    drawn = ax.collections[0]
    assert len(drawn.get_offsets()) == 60
    where = {
        tuple(np.round(xy, 12)): tuple(c) for xy, c in zip(drawn.get_offsets(), drawn.get_facecolors(), strict=True)
    }
    colors = [where[tuple(np.round(xy, 12))] for xy in Z]
    for k in range(3):
        assert len({c for c, label in zip(colors, y, strict=True) if label == k}) == 1
    assert len(set(colors)) == 3
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1", "2"]


def test_legend_hides_no_point(Z):
    ax = gc.plot(Z, np.repeat(["a", "b", "c"], 20))
    ax.figure.canvas.draw()
    box = ax.get_legend().get_window_extent()
    for xy in ax.transData.transform(Z):
        assert not box.contains(*xy)


def test_numbers_get_a_colour_bar_and_names_a_legend(Z):
    assert len(gc.plot(Z, np.linspace(0, 1, 60)).figure.axes) == 2
    assert gc.plot(Z, np.linspace(0, 1, 60)).get_legend() is None
    assert gc.plot(Z).get_legend() is None


def test_pyplot_shows_new_figures_where_it_is_in_use(Z, monkeypatch):
    import matplotlib.pyplot as plt

    shown = [
        gc.plot(Z).figure,
        gc.plotting.plot_grid({"a": Z, "b": Z})[0, 0].figure,
        gc.plotting.plot_loss([2, 1]).figure,
    ]
    assert [figure.number in plt.get_fignums() for figure in shown] == [True] * 3
    discard(shown[0])
    assert shown[0].number not in plt.get_fignums()
    plt.close("all")
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    assert not hasattr(gc.plot(Z).figure, "number")


def test_one_component(Z):
    assert len(gc.plot(Z[:, :1]).collections[0].get_offsets()) == 60


@pytest.mark.parametrize(("Z", "y"), [(np.ones(3), None), (np.full((3, 2), np.nan), None), (np.ones((3, 2)), [1, 2])])
def test_bad_arguments_are_refused(Z, y):
    with pytest.raises(ValueError, match=r"Z|y has"):
        gc.plot(Z, y)


def test_from_the_eleventh_class_on_markers_tell_colours_apart():
    Z = np.random.default_rng(0).normal(size=(250, 2))
    y = np.arange(250) % 25
    ax = gc.plot(Z, y)
    assert sum(len(drawn.get_offsets()) for drawn in ax.collections) == 250
    styles = {(handle.get_marker(), tuple(handle.get_color())) for handle in ax.get_legend().legend_handles}
    assert len(styles) == 25


def blend(counts, colors):
    return counts @ colors / counts.sum()


def test_density_counts_the_points_of_each_pixel(rng):
    Z = rng.normal(size=(500, 2)) * [2.0, 1.0]
    y = rng.integers(0, 3, 500)
    ax = gc.plotting.plot_density(Z, y, n_pixels=20)
    image = ax.images[0].get_array()
    height, width = image.shape[:2]
    assert (width, height) == (20, np.ceil(20 * np.ptp(Z[:, 1]) / np.ptp(Z[:, 0])))
    low, span = Z.min(axis=0), np.ptp(Z, axis=0)
    from matplotlib.colors import to_rgba_array

    colors = to_rgba_array(gc.plotting.PALETTE[:3])
    held = np.zeros((height, width, 3))
    for (x, z), label in zip(Z, y, strict=True):
        column = min(int((x - low[0]) / span[0] * width), width - 1)
        row = min(int((z - low[1]) / span[1] * height), height - 1)
        held[row, column, label] += 1
    totals = held.sum(axis=2)
    np.testing.assert_array_equal(image[..., 3] > 0, totals > 0)
    for row, column in np.argwhere(totals > 0):
        np.testing.assert_allclose(image[row, column, :3], blend(held[row, column], colors[:, :3]), atol=1e-12)
        share = (totals[totals > 0] <= totals[row, column]).mean()
        assert image[row, column, 3] == pytest.approx(0.25 + 0.75 * share)
    np.testing.assert_allclose(ax.images[0].get_extent(), [low[0], low[0] + span[0], low[1], low[1] + span[1]])


def test_a_density_of_small_clusters_far_apart_has_large_pixels(rng):
    Z = rng.normal(size=(120_000, 2)) * 0.05 + 30 * (rng.normal(size=(12, 2)))[np.arange(120_000) % 12]
    image = gc.plotting.plot_density(Z).images[0].get_array()
    assert max(image.shape[:2]) == 150
    assert max(gc.plotting.plot_density(rng.normal(size=(120_000, 2))).images[0].get_array().shape[:2]) > 500


def test_a_density_of_one_component_does_not_depend_on_its_unit(rng):
    z = rng.normal(size=(5000, 1))
    ink = [(gc.plotting.plot_density(s * z).images[0].get_array()[..., 3] > 0).sum() for s in (1e-6, 1.0, 1e6)]
    assert len(set(ink)) == 1


def test_names_of_classes_are_whole(Z):
    ax = gc.plot(Z[:6], np.array([20230101.0, 20230102.0, 1e300] * 2))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["20230101", "20230102", "1e+300"]


def test_many_points_are_drawn_as_a_density(rng):
    Z = rng.normal(size=(100_001, 2))
    for y in (None, Z[:, 0] > 0, Z[:, 0]):
        ax = gc.plot(Z, y, title="many")
        assert len(ax.images) == 1
        assert not ax.collections
        assert ax.get_title() == "many"
        x0, x1 = ax.get_xlim()
        assert x0 < Z[:, 0].min()
        assert x1 > Z[:, 0].max()
    assert len(gc.plot(Z[:100_000]).collections) == 1
    for odd in (np.zeros((100_001, 2)), Z * [1.0, 0.0]):
        ax = gc.plot(odd)
        left, right, bottom, top = ax.images[0].get_extent()
        assert min(right - left, top - bottom) >= 0.009 * max(right - left, top - bottom)


def test_class_means_are_where_they_are(Z):
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    ax = gc.plotting.plot_class_means(Z, y, title="means")
    means = [drawn.get_offsets()[0] for drawn in ax.collections[-3:]]
    np.testing.assert_allclose(means, [Z[y == name].mean(axis=0) for name in "abc"])
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]
    other = gc.plot(Z)
    gc.plotting.plot_class_means(Z, y, ax=other)
    assert other.collections[0].get_alpha() == 0.85
    with pytest.raises(ValueError, match="must hold classes"):
        gc.plotting.plot_class_means(Z, np.linspace(0, 1, 60))
    masked = np.ma.masked_array(np.arange(60) % 3, mask=np.arange(60) < 3)
    for bad, message in (
        (masked, "masked"),
        (np.ma.stack([masked, masked], axis=1), "masked"),
        (["a", np.nan] * 30, "missing labels"),
        (["a", 1] * 30, "got int, str"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            gc.plotting.plot_class_means(Z, bad)


def overlaps(ax):
    boxes = np.array([text.get_window_extent().extents for text in ax.texts])
    shared = np.minimum(boxes[:, None, 2:], boxes[:, 2:]) - np.maximum(boxes[:, None, :2], boxes[:, :2])
    return (np.triu((shared > 2).all(axis=2), k=1)).sum()


def test_names_of_several_levels_stand_apart(rng):
    coarse = np.arange(400) // 200
    fine = np.array(["", *(f"a longer name {c}" for c in range(1, 20))])[np.arange(400) // 20]
    Z = 0.1 * rng.normal(size=(400, 2)) + 3 * coarse[:, None] + 0.3 * np.repeat(rng.normal(size=(20, 2)), 20, axis=0)
    ax = gc.plotting.plot_class_means(Z, np.column_stack([np.array(["left", "right"])[coarse], fine]), legend=True)
    ax.figure.draw_without_rendering()
    assert len(ax.texts) == 2 + 19
    assert len({text.get_fontsize() for text in ax.texts}) == 2
    assert all(text.get_visible() for text in ax.texts)
    moved = overlaps(ax)
    for text, place in zip(
        ax.texts[2:], (Z[fine == text.get_text()].mean(axis=0) for text in ax.texts[2:]), strict=True
    ):
        text.set_position(place)
    assert 10 * moved <= overlaps(ax)
    assert [text.get_text() for text in ax.get_legend().texts] == ["left", "right"]


def test_of_many_names_those_of_larger_classes_are_shown(rng):
    codes = np.repeat(np.arange(120), np.arange(120, 0, -1))
    Z = 30 * rng.normal(size=(120, 2))[codes] + rng.normal(size=(codes.size, 2))
    ax = gc.plotting.plot_class_means(Z, np.array([f"class {c:03d}" for c in codes]))
    boxes = [(text.get_visible(), text.set_visible(True), text.get_window_extent()) for text in ax.texts]
    for i, (visible, _, box) in enumerate(boxes):
        assert visible != any(shown and box.overlaps(other) for shown, _, other in boxes[:i])
    assert 20 < sum(visible for visible, _, _ in boxes) < 120


def test_a_figure_grows_with_its_legend(rng):
    widths = []
    for word in ("c", "a rather long name of a class"):
        ax = gc.plot(rng.normal(size=(200, 2)), np.array([f"{word} {i % 100}" for i in range(200)]))
        ax.figure.draw_without_rendering()
        widths.append(ax.get_window_extent().width)
        assert ax.get_legend().get_window_extent().x1 <= ax.figure.bbox.x1
    assert widths[1] > 0.8 * widths[0] > 300


def test_a_legend_lists_a_hundred_classes_and_counts_the_others(rng):
    for n, last in ((64, "64"), (100, "100"), (130, "… and 31 more")):
        y = np.array([f"{1 + i % n:3d}" for i in range(400)])
        legend = gc.plot(rng.normal(size=(400, 2)), y).get_legend()
        assert len(legend.texts) == min(n, 100)
        assert legend.texts[-1].get_text().strip() == last
        colors = [handle.get_color() for handle in legend.legend_handles if handle.get_marker() not in ("None", None)]
        assert len(set(colors)) == len(colors) == min(n, 100) - (n > 100)


def test_grids_have_a_panel_for_each_embedding_and_one_legend(Z):
    y = np.arange(60) % 3
    axes = gc.plotting.plot_grid({"a": Z, "b": 2 * Z, "c": -Z}, y, title="three")
    assert axes.shape == (2, 2)
    assert [ax.get_title() for ax in axes.flat[:3]] == ["a", "b", "c"]
    assert not axes[1, 1].get_visible()
    figure = axes[0, 0].figure
    assert len(figure.legends) == 1
    assert figure.get_suptitle() == "three"
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert not any(legend.overlaps(ax.get_window_extent()) for ax in axes.flat[:3])
    table = gc.plotting.plot_grid({("tsne", "pca"): Z, ("tsne", "random"): Z, ("umap", "pca"): Z}, legend=False)
    assert [ax.get_title() for ax in table[0]] == ["pca", "random"]
    assert [ax.get_ylabel() for ax in table[:, 0]] == ["tsne", "umap"]
    assert not table[1, 1].get_visible()
    ragged = gc.plotting.plot_grid({("tsne", "pca"): Z, ("ccpca", "default"): Z})
    assert (ragged[1, 1].get_title(), ragged[1, 1].get_ylabel()) == ("default", "ccpca")
    numbers = gc.plotting.plot_grid({"a": Z}, np.linspace(0, 1, 60))
    assert len(numbers[0, 0].figure.axes) == 2
    with pytest.raises(ValueError, match="at least one embedding"):
        gc.plotting.plot_grid({})
    with pytest.raises(TypeError, match="mapping of names"):
        gc.plotting.plot_grid([Z, Z])
    with pytest.raises(ValueError, match="ax must hold 1 axes"):
        gc.plotting.plot_grid({"a": Z}, ax=axes)
    with pytest.raises(ValueError, match="n_columns"):
        gc.plotting.plot_grid({"a": Z}, n_columns=0)
    with pytest.raises(TypeError, match=r"pass one of \['X_umap'\] in SimpleNamespace"):
        gc.plot(SimpleNamespace(obsm={"X_umap": Z}))


def test_every_picture_goes_where_it_is_told(Z, rng):
    from matplotlib.figure import Figure

    y = np.arange(60) % 3
    curves = gc.metrics.neighborhood_curves(rng.normal(size=(60, 4)), Z)
    for draw in (
        lambda ax: gc.plot(Z, y, ax=ax),
        lambda ax: gc.plotting.plot_density(Z, y, ax=ax),
        lambda ax: gc.plotting.plot_class_means(Z, y, ax=ax),
        lambda ax: gc.plotting.plot_preservation(curves, ax=ax),
        lambda ax: gc.plotting.plot_loss([2.0, 1.0], ax=ax),
        lambda ax: gc.plotting.plot_graph(Z, np.eye(60), ax=ax),
    ):
        ax = Figure().add_subplot()
        assert draw(ax) is ax
    panels = Figure().subplots(1, 2)
    assert (gc.plotting.plot_grid({"a": Z, "b": Z}, ax=panels) == panels).all()
    wide, tall = [20 * f"{i:02}" for i in range(30)] * 2, [f"{i}" for i in range(60)]
    for parts, labels in (((1, 2), y), ((1, 2), wide), ((3, 1), tall)):
        part = Figure(layout="constrained").subfigures(*parts)[0]
        ax = part.subplots()
        gc.plotting.plot_grid({"a": Z}, labels, ax=[ax])
        ax.figure.get_figure(root=True).draw_without_rendering()
        box = part.legends[0].get_window_extent()
        assert ax.get_window_extent().x1 < box.x0
        assert part.bbox.y0 <= box.y0


def test_colours_differ_for_the_colour_blind():
    """Any two of the palette are well apart (in CIELAB) for full, red-, green- and blue-blind sight."""
    from matplotlib.colors import to_rgb

    # Machado, Oliveira, Fernandes (2009), severity 1, on linear RGB.
    sights = {
        "full": np.eye(3),
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    }
    rgb = np.array([to_rgb(color) for color in gc.plotting.PALETTE])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    for sight in sights.values():
        xyz = np.clip(linear @ np.transpose(sight), 0, 1) @ to_xyz.T / to_xyz.sum(axis=1)
        f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
        lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)
        apart = np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(len(rgb), 1)]
        assert apart.min() > 15.0


@pytest.mark.parametrize("kind", ["datetime64", "dates", "pandas", "column", "zone", "zones"])
def test_dates_get_a_colour_bar_with_dates(kind, tmp_path):
    Z = np.random.default_rng(0).normal(size=(60, 2))
    days = np.datetime64("2020-01-01") + np.arange(60) * np.timedelta64(12, "D")
    table = pd.DataFrame(days)
    zone = table[0].dt.tz_localize("Europe/Berlin")
    zones = [day.tz_localize("UTC").tz_convert(("UTC", "Asia/Tokyo")[i % 2]) for i, day in enumerate(table[0])]
    y = {"datetime64": days, "dates": days.tolist(), "pandas": table[0], "column": table, "zone": zone, "zones": zones}
    y = y[kind]
    ax = gc.plot(Z, y)
    ax.figure.canvas.draw()
    bar = ax.figure.axes[1]
    assert [tick.get_text() for tick in bar.get_yticklabels()][:2] == ["2020", "May"]
    np.testing.assert_allclose(sorted(ax.collections[0].get_array()), 18262.0 + 12.0 * np.arange(60))
    assert len(gc.plotting.plot_density(Z, y).figure.axes) == 2
    page = tmp_path / "map.html"
    gc.plotting.interactive(Z, y).save(page)
    assert "DatetimeTickFormatter" in page.read_text()
    with pytest.raises(ValueError, match="y has 59 entries, but there are 60 points"):
        gc.plot(Z, y[:59])
    with pytest.raises(ValueError, match="y holds missing labels"):
        gc.plot(Z, np.where(np.arange(60) == 3, np.datetime64("NaT"), days))


def test_the_first_date_in_two_zones_and_one_without():
    east = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
    first, second = labels_or_none([east, datetime.min.replace(tzinfo=UTC)], 2)
    assert second - first == np.timedelta64(5, "h")
    with pytest.raises(TypeError, match="y holds dates with and without a time zone"):
        gc.plot(np.eye(2), [east, datetime.min])
