import numpy as np
import pytest
import scipy.sparse as sp

import graphcouple as gc
from graphcouple.metrics import k_ary_preservation


def _literal(X, Z, K):
    """Q and R from the definition, nearer indices first among ties."""
    n = len(X)

    def nearest(A, i):
        order = np.lexsort((np.arange(n), ((A - A[i]) ** 2).sum(1)))
        return set(order[order != i][:K].tolist())

    Q = sum(len(nearest(X, i) & nearest(Z, i)) for i in range(n)) / (n * K)
    return ((n - 1) * Q - K) / (n - 1 - K)


@pytest.mark.parametrize("K", [1, 7, 30, 58])
def test_is_the_definition(rng, K):
    X, Z = rng.normal(size=(60, 5)), rng.normal(size=(60, 2))
    assert k_ary_preservation(X, Z, K) == pytest.approx(_literal(X, Z, K), abs=1e-12)
    X, Z = rng.integers(0, 3, size=(60, 3)), rng.integers(0, 4, size=(60, 2))
    assert k_ary_preservation(X, Z, K) == pytest.approx(_literal(X, Z, K), abs=1e-12)


def test_several_sizes_at_once_and_any_metric(rng):
    X, Z = rng.normal(size=(60, 5)), rng.normal(size=(60, 2))
    many = k_ary_preservation(X, Z, [3, 10])
    np.testing.assert_array_equal(many, [k_ary_preservation(X, Z, 3), k_ary_preservation(X, Z, 10)])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert k_ary_preservation(X, Z, 5, metric="cosine") == pytest.approx(_literal(unit, Z, 5), abs=1e-12)
    assert k_ary_preservation(sp.csr_matrix(X), Z, 5) == pytest.approx(_literal(X, Z, 5), abs=1e-12)


def test_blocks_do_not_show(rng, monkeypatch):
    X, Z = rng.normal(size=(80, 5)), rng.normal(size=(80, 2))
    whole = k_ary_preservation(X, Z, [3, 20])
    monkeypatch.setattr("graphcouple.metrics._BLOCK_ENTRIES", 700)
    np.testing.assert_array_equal(k_ary_preservation(X, Z, [3, 20]), whole)


def test_one_for_a_copy_and_zero_for_chance(rng):
    X = rng.normal(size=(300, 5))
    np.testing.assert_array_equal(k_ary_preservation(X, 7.0 * X + 1.0, [1, 40, 298]), 1.0)
    found = np.array([k_ary_preservation(X, rng.normal(size=(300, 2)), [20, 100]) for _ in range(40)])
    assert (np.abs(found.mean(axis=0)) <= 3.0 * found.std(axis=0, ddof=1) / np.sqrt(40)).all()


def test_precomputed_distances_and_far_data_are_left_alone(rng):
    X, Z = rng.normal(size=(60, 5)), rng.normal(size=(60, 2))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
    D.flags.writeable = False
    assert k_ary_preservation(D, Z, 5, metric="precomputed") == pytest.approx(_literal(X, Z, 5), abs=1e-12)
    assert k_ary_preservation(X, X + 1e7, 5) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("Z", "K", "error", "message"),
    [
        (np.ones((9, 2)), 3, ValueError, "9 rows, but X has 10"),
        (np.full((10, 2), np.nan), 3, ValueError, "Z holds NaN"),
        (np.ones((10, 2)), 0, ValueError, "K must be at least 1"),
        (np.ones((10, 2)), 9, ValueError, "K=9 must be at most"),
        (np.ones((10, 2)), 2.5, TypeError, "K must be an integer"),
        (np.ones((10, 2)), [], ValueError, "at least one"),
    ],
)
def test_refuses_what_it_cannot_compare(rng, Z, K, error, message):
    with pytest.raises(error, match=message):
        gc.metrics.k_ary_preservation(rng.normal(size=(10, 3)), Z, K)
