"""The inlined elementary functions against NumPy's."""

import numba
import numpy as np
import pytest

from graphcouple._numba import elementary


@numba.njit
def _over(function, x, out):
    for i in range(x.size):
        out[i] = function(x[i])


def _compare(name, x, units, smallest=0.0):
    found = np.empty_like(x)
    _over(getattr(elementary, name), x, found)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x)
    kept = np.isfinite(wanted) & (np.abs(wanted) > smallest)
    assert kept.sum() > 0.9 * x.size
    assert (np.abs(found - wanted)[kept] <= units * np.spacing(np.abs(wanted[kept]))).all()


@pytest.fixture
def spread(rng):
    """Both signs, from 1e-300 to 1e300."""
    return np.concatenate(
        [rng.choice([-1, 1], 50_000) * 10.0 ** rng.uniform(-300, 300, 50_000), rng.normal(size=50_000)]
    )


def test_exp(rng, spread):
    x = np.concatenate([rng.uniform(-708, 709, 100_000), rng.normal(size=100_000), spread[np.abs(spread) < 700]])
    _compare("exp", x, units=2)
    _compare("expm1", x, units=3)


def test_log(spread):
    _compare("log", np.abs(spread), units=2)
    _compare("log", 1.0 + 1e-9 * spread[50_000:], units=2)
    _compare("log1p", np.abs(spread), units=3)
    _compare("log1p", -np.exp(-np.abs(spread[50_000:])), units=3)


def test_logaddexp(rng):
    a, b = rng.normal(size=(2, 10_000)) * 10.0 ** rng.uniform(-5, 3, 10_000)
    found = np.array([elementary.logaddexp(u, v) for u, v in zip(a, b, strict=True)])
    np.testing.assert_allclose(found, np.logaddexp(a, b), rtol=1e-14)


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p"])
def test_at_the_edges(name):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, -1.0, 800.0, -800.0])
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x)
    found = np.empty_like(x)
    _over(getattr(elementary, name), x, found)
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
    assert elementary.logaddexp(0.0, -np.inf) == 0.0
    assert elementary.logaddexp(-np.inf, -np.inf) == -np.inf
    assert elementary.logaddexp(0.0, np.inf) == np.inf
