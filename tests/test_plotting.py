import numpy as np
import pytest

import graphcouple as gc


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


def test_draws_where_it_is_told(Z):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert gc.plot(Z, ax=ax, title="here") is ax
    assert ax.get_title() == "here"


def test_one_component_and_many_classes(Z):
    assert len(gc.plot(Z[:, :1]).collections[0].get_offsets()) == 60
    assert len(gc.plot(Z, [f"class {i}" for i in range(60)]).collections[0].get_offsets()) == 60


@pytest.mark.parametrize(("Z", "y"), [(np.ones(3), None), (np.full((3, 2), np.nan), None), (np.ones((3, 2)), [1, 2])])
def test_bad_arguments_are_refused(Z, y):
    with pytest.raises(ValueError, match=r"Z|y has"):
        gc.plot(Z, y)
