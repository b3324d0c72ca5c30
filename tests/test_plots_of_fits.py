"""Pictures of what a fit has found and of its way: scores over K, losses, graphs and films."""

import matplotlib
import numpy as np
import pytest
from sklearn.base import clone

import graphcouple as gc


def test_preservation_is_drawn_over_k(rng):
    X, Z = rng.normal(size=(80, 5)), rng.normal(size=(80, 2))
    curves = gc.metrics.neighborhood_curves(X, Z)
    sampled = gc.metrics.neighborhood_curves(X, Z, n_rows=40, random_state=0)
    ax = gc.plotting.plot_preservation({"all": curves, "sample": sampled})
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([curves.K, curves.preservation]))
    assert len(ax.collections) == 1
    assert [text.get_text().split()[0] for text in ax.get_legend().get_texts()] == ["all", "sample"]
    assert gc.plotting.plot_preservation(curves).get_legend() is None
    numbered = gc.plotting.plot_preservation({0: curves}).get_legend()
    assert [text.get_text().split()[0] for text in numbered.get_texts()] == ["0"]
    with pytest.raises(TypeError, match="a result of neighborhood_curves"):
        gc.plotting.plot_preservation(curves.preservation)
    with pytest.raises(ValueError, match="no curves"):
        gc.plotting.plot_preservation({})


def test_loss_is_drawn_over_iterations(rng):
    X = rng.normal(size=(60, 4))
    fitted = gc.TSNE(max_iter=120, perplexity=5, random_state=0).fit(X)
    losses = fitted.loss_history_
    ax = gc.plotting.plot_loss(
        {"fit": fitted, "array": losses, "pair": (2 * np.arange(losses.size), losses)}, title="descent"
    )
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), fitted.loss_iterations_)
    assert fitted.loss_iterations_[-1] == fitted.n_iter_
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), np.arange(losses.size))
    np.testing.assert_array_equal(ax.lines[2].get_xydata(), np.column_stack([2 * np.arange(losses.size), losses]))
    solution = gc.solve(
        gc.CrossEntropy(fitted.posterior_, gc.GraphModel(gc.Student(), "E")), rng.normal(size=(60, 2)), max_iter=30
    )
    np.testing.assert_array_equal(gc.plotting.plot_loss(solution).lines[0].get_ydata(), solution.loss_history)
    with pytest.raises(TypeError, match="fit it first"):
        gc.plotting.plot_loss(gc.TSNE())
    with pytest.raises(ValueError, match="one loss for each iteration"):
        gc.plotting.plot_loss(([1, 2], [3.0]))


def test_the_heaviest_edges_are_drawn(rng):
    Z = rng.normal(size=(20, 2))
    weights = rng.random((20, 20))
    np.fill_diagonal(weights, 9.0)
    both = np.triu(weights + weights.T, 1)
    cut = np.sort(both[both > 0])[-15]
    expected = {(i, j) for i, j in np.argwhere(both >= cut)}
    ax = gc.plotting.plot_graph(Z, weights, n_edges=15)
    place = {tuple(z): i for i, z in enumerate(Z)}
    drawn = {tuple(sorted(place[tuple(end)] for end in segment)) for segment in ax.collections[-1].get_segments()}
    assert drawn == expected
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4)).posterior(rng.normal(size=(20, 3)))
    weights = np.triu(law.mean() + law.mean().T)
    n_drawn = np.count_nonzero(weights > 1e-3 * weights.max())
    assert len(gc.plotting.plot_graph(Z, law, np.arange(20) % 2).collections[-1].get_segments()) == n_drawn < 190
    assert len(gc.plotting.plot_graph(Z, np.zeros((20, 20))).collections[-1].get_segments()) == 0
    for graph, message in [(weights[:5, :5], "20 points"), (-weights, "not negative"), (np.nan * weights, "finite")]:
        with pytest.raises(ValueError, match=message):
            gc.plotting.plot_graph(Z, graph)
    for graph in (None, "graph", object()):
        with pytest.raises(TypeError, match="graph must be a matrix"):
            gc.plotting.plot_graph(Z, graph)
    with pytest.raises(ValueError, match="n_edges must be"):
        gc.plotting.plot_graph(Z, weights, n_edges=0)


def test_a_recorder_keeps_maps_further_apart_in_longer_runs(rng):
    recorder = gc.plotting.Recorder(most=4)
    for i in range(23):
        recorder(10 * i, 1.0 / (1 + i), np.full((3, 2), float(i)))
    assert [iteration for iteration, _, _ in recorder.frames] == [0, 80, 160]
    assert recorder.frames[1][2][0, 0] == 8.0
    recorder(0, 1.0, np.zeros((3, 2)))
    assert [iteration for iteration, _, _ in recorder.frames] == [0]
    assert clone(gc.TSNE(callback=recorder)).callback is recorder


def test_a_film_ends_at_the_end(rng):
    recorder = gc.plotting.Recorder()
    fitted = gc.SNE(perplexity=5, max_iter=27, n_starts=1, callback=recorder, random_state=0).fit(
        rng.normal(size=(30, 3))
    )
    assert recorder.frames[-1][0] == fitted.n_iter_ == 27
    np.testing.assert_array_equal(recorder.frames[-1][2], fitted.embedding_)


def test_a_run_is_saved_as_a_moving_picture(rng, tmp_path):
    from PIL import Image

    recorder = gc.plotting.Recorder(most=5)
    gc.SNE(perplexity=5, max_iter=30, callback=recorder, random_state=0).fit(rng.normal(size=(30, 3)))
    recorder.save(tmp_path / "fit.gif", np.arange(30) % 3, title="sne")
    with Image.open(tmp_path / "fit.gif") as picture:
        assert picture.n_frames == len(recorder.frames) == 4
    with matplotlib.rc_context({"animation.embed_limit": 0.01}):
        recorder.save(tmp_path / "fit.html")
    assert (tmp_path / "fit.html").read_text().count("data:image/png;base64") == 4
    with pytest.raises(ValueError, match=r"path must end in .gif, .mp4, .html, got 'fit.avi'"):
        recorder.save("fit.avi")
    with pytest.raises(ValueError, match="y has 20 entries, but there are 30 points"):
        recorder.save("fit.gif", np.arange(20) % 3)
    with pytest.raises(ValueError, match="nothing was recorded"):
        gc.plotting.Recorder().save("fit.gif")


def test_all_frames_of_a_film_have_axes_of_one_size(rng, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(gc.plotting._animation, "plot", lambda *a, **k: drawn.append(gc.plot(*a, **k)) or drawn[-1])
    recorder = gc.plotting.Recorder()
    for i in range(4):
        recorder(i, 10.0**i, rng.normal(size=(60, 2)))
    numbers, names = np.linspace(0, 1, 60), np.array([f"{i % 30} is the number of this class" * 2 for i in range(60)])
    for y, n_axes in ((numbers, 2), (names, 1)):
        recorder.save(tmp_path / "fit.gif", y)
        last = drawn[-1]
        assert len(last.figure.axes) == n_axes
        for frame in drawn[-4:]:
            np.testing.assert_allclose(frame.get_position().bounds, last.get_position().bounds)
        assert last.get_window_extent().width > 400
    legend = last.get_legend().get_window_extent()
    assert last.get_window_extent().x1 < legend.x0 < legend.x1 <= last.figure.bbox.x1
    # Ranks have no unit: a map of one component fills the axes.
    line = gc.plotting.Recorder()
    line(0, 1.0, (1e-3 * np.arange(60.0)[:, None]).tolist())
    line.save(tmp_path / "fit.gif")
    np.testing.assert_allclose(np.diff(drawn[-1].get_xlim()), 1e-3 * np.diff(drawn[-1].get_ylim()))
    assert (drawn[-1].get_xlabel(), drawn[-1].get_ylabel()) == ("component 1", "rank")


def test_long_names_keep_their_beginning_and_end():
    names = np.array([f"k__Bacteria;p__Firmicutes;c__Clostridia;o__Clostridiales;f__Family_{i % 3}" for i in range(60)])
    Z = np.random.default_rng(0).normal(size=(60, 2))
    shown = [text.get_text() for text in gc.plot(Z, names).get_legend().get_texts()]
    assert len(set(shown)) == 3
    assert all(len(text) <= 60 and text.startswith("k__Bacteria") for text in shown)
    scores = {name: ([0.5, 0.2], [0.01, 0.02]) for name in ("cost $x^$ y", "m" * 120 + "1", "m" * 120 + "2")}
    maps = dict.fromkeys(scores, Z)
    ax = gc.plotting.plot_front(scores, list(scores), maps, axes=("a", "b"), ax=gc.plot(Z))
    assert len({text.get_text() for text in ax.texts}) == 3
    figure = gc.plotting.plot_front(scores, list(scores), maps, axes=("a", "b")).figure
    assert len({panel.get_title(loc="left") for panel in figure.axes if panel.get_title(loc="left")}) == 3


def test_prices_are_no_formulas():
    Z = np.random.default_rng(0).normal(size=(60, 2))
    names = np.array(["$10-$20", "low_$10-$20", "$n$ = 5", r"$\alpha$", "$3^n$"])
    texts = {text.get_text() for text in gc.plot(Z, names[np.arange(60) % 5]).get_legend().get_texts()}
    assert texts == {r"\$10-\$20", r"low_\$10-\$20", "$n$ = 5", r"$\alpha$", "$3^n$"}


def test_a_legend_of_densities_has_no_markers(monkeypatch):
    Z, classes = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 15
    for most, markers in ((1000, 2), (50, 1)):
        monkeypatch.setattr("graphcouple.plotting._scatter.SCATTER_POINTS", most)
        monkeypatch.setattr("graphcouple.plotting._grid.SCATTER_POINTS", most)
        figure = gc.plotting.plot_grid({"one": Z, "two": Z}, classes).flat[0].figure
        handles = figure.legends[0].legend_handles
        assert len({handle.get_marker() for handle in handles}) == markers
