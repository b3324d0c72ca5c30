"""Estimates of the cost of a fit: memory beside a real process, and warnings before a fit that exceeds it."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import graphcouple as gc
from graphcouple.estimators import cost, memory

MAX_ITER = {gc.TSNE: "max_iter", gc.UMAP: "max_iter", gc.HierarchicalCoupling: "estimator__max_iter"}

FIT = """
import json, resource, sys
from pathlib import Path
import numpy as np
import graphcouple as gc

n, p = 40_000, 60
rng = np.random.default_rng(0)
X = rng.normal(size=(20, p)).astype(np.float32)[rng.integers(20, size=n)]
X += rng.normal(size=(n, p)).astype(np.float32)
method = getattr(gc, sys.argv[1])(random_state=0, max_iter=10)
method.fit(X)
status = Path("/proc/self/status")
if status.exists():
    # ru_maxrss would begin with the memory of the parent process.
    peak = 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps(peak))
"""


@pytest.mark.nightly
def test_memory_is_within_a_quarter_of_a_process():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT, "TSNE"], capture_output=True, text=True, check=True
    )
    expected = max(memory.memory_of(gc.TSNE().sentence, 40_000, 60, 4).values())
    assert json.loads(run.stdout) == pytest.approx(expected, rel=0.25)


def test_memory_grows_as_the_arrays_do():
    def descent(method, n, p=50):
        return memory.memory_of(method.sentence, n, p, 4)["descent"]

    # Points and, up to 512 MB, their lists; 90 edges with a weight in both directions; the maps of L-BFGS.
    for first, copies in ((1_000_000, 2), (4_000_000, 1)):
        growth = (descent(gc.TSNE(), 2 * first) - descent(gc.TSNE(), first)) / first
        assert growth == pytest.approx(copies * 200 + 1.6 * 90 * 8 + 36 * 2 * 4)
    kept = gc.TSNE(terms=[gc.LargeScale()])
    assert descent(kept, 2_000_000) - descent(gc.TSNE(), 2_000_000) == pytest.approx(2_000_000 * 90 * 4)
    assert descent(gc.TSNE(perplexity=(30, 100)), 10**6) > 2.5 * descent(gc.TSNE(), 10**6)
    assert descent(gc.UMAP(), 10**6) < descent(gc.TSNE(), 10**6)


def test_an_estimate_states_its_stages_and_whether_it_fits(monkeypatch):
    answer = gc.estimate(gc.TSNE(max_iter=20, random_state=0), 4000, 10, np.float32)
    assert [stage.name for stage in answer.stages] == ["neighbors and law", "start", "descent"]
    assert answer.seconds == sum(stage.seconds for stage in answer.stages)
    assert answer.n_bytes == max(stage.n_bytes for stage in answer.stages)
    assert 0.0 < answer.seconds < 600.0
    assert answer.fits
    # Integers become double precision, and a method that needs classes gets some.
    supervised = gc.UMAP(max_iter=2, target_weight=0.5)
    sizes = {dtype: gc.estimate(supervised, 60, 30, dtype).stages[0].n_bytes for dtype in (np.uint8, np.float64)}
    assert len(set(sizes.values())) == 1
    assert str(answer).splitlines()[-1].startswith("in all")
    monkeypatch.setattr("graphcouple.estimators.cost.free_memory", lambda: 1e6)
    monkeypatch.setattr(cost, "_seconds", lambda *trial: (1.0, 1.0, 1.0))
    answer = gc.estimate(gc.TSNE(max_iter=20, random_state=0), 4000, 10)
    assert not answer.fits
    assert "lower the perplexity or n_neighbors" in str(answer)


@pytest.mark.parametrize(
    ("method", "quadratic"),
    [
        (gc.TSNE(), False),
        (gc.TSNE(n_components=4), True),
        (gc.TSNE(summation="exact"), True),
        (gc.UMAP(n_components=4), False),
        (gc.UMAP(n_components=4, repulsion="full"), True),
        (gc.HierarchicalCoupling(gc.TSNE(n_components=4)), True),
    ],
)
def test_seconds_grow_with_the_pairs_that_an_iteration_compares(method, quadratic, monkeypatch):
    trials = []
    monkeypatch.setattr(cost, "_seconds", lambda model, n, *rest: trials.append(n) or (1.0, 1.0, 1.0))
    stages = gc.estimate(method.set_params(**{MAX_ITER[type(method)]: 50}), 1_000_000, 10).stages
    assert trials == [3000 if quadratic else 10_000]
    assert stages[-1].seconds == pytest.approx((1e6 / 3000) ** 2 if quadratic else 100.0**1.05)


def test_a_trial_that_takes_too_long_ends_and_counts_the_other_iterations(monkeypatch):
    model = gc.TSNE(max_iter=200, summation="exact", random_state=0)
    whole, fitted = gc.estimate(model, 300, 5).stages[-1].seconds, []
    monkeypatch.setattr(cost, "_LONGEST_TRIAL", 0.0)
    monkeypatch.setattr(cost, "clone", lambda model: fitted.append(clone(model)) or fitted[-1])
    assert whole / 10 < gc.estimate(model, 300, 5).stages[-1].seconds < 10 * whole
    assert fitted[0].n_iter_ < 100


def test_a_fit_that_cannot_fit_says_so_before_it_starts(monkeypatch, rng):
    method = gc.TSNE(perplexity=5, max_iter=5, random_state=0)
    X = np.repeat(rng.normal(size=(60, 5)), 40, axis=0) + 1e-3 * rng.normal(size=(2400, 5))
    needed = max(memory.memory_of(method.sentence, 2400, 5, 8).values()) - memory._BASE - X.nbytes
    monkeypatch.setattr(memory, "free_memory", lambda: 0.6 * needed)
    message = r"the fit needs about .* GB are free: lower the perplexity"
    with pytest.warns(UserWarning, match=message) as messages:
        method.fit(X)
    assert messages[0].filename == __file__
    monkeypatch.setattr(memory, "free_memory", lambda: 0.4 * needed)
    with pytest.raises(MemoryError, match=message):
        method.fit(X)
    # No dense copies are made of sparse points, and UserWarnings are errors here.
    gc.TSNE(perplexity=5, n_neighbors=15, random_state=0).fit(
        sp.random_array((100, 5000), density=0.01, rng=rng, format="csr")
    )


@pytest.mark.parametrize(
    ("estimator", "n", "p", "error", "message"),
    [
        (gc.Isomap(), 1000, 5, TypeError, "two laws, and points among which"),
        (gc.TSNE(metric="precomputed"), 1000, 1000, TypeError, "two laws, and points among which"),
        (gc.GraphCoupling(np.eye(5), gc.GraphModel(gc.Student(), "E")), 1000, 5, TypeError, "two laws, and points"),
        (gc.TSNE(n_landmarks=100), 1000, 5, ValueError, "n_landmarks=100 fits some of the 1000 rows"),
        (gc.TSNE(init=np.zeros((99, 2))), 1000, 5, ValueError, "init is an array of places"),
        (gc.TSNE(), 10, 5, ValueError, "n must be at least 50"),
        (gc.TSNE(), 1000, 0, ValueError, "p must be at least 1"),
    ],
)
def test_an_estimate_of_something_else_is_refused(estimator, n, p, error, message):
    with pytest.raises(error, match=message):
        gc.estimate(estimator, n, p)
