import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances
from threadpoolctl import threadpool_limits

import graphcouple as gc
from graphcouple import cli


def pytest_configure():
    """Give each of several workers a core of its own, on which more threads would wait for each other."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker[2:]) % len(cores)]})
        threadpool_limits(1)


class ExactDescent:
    """Stands in for PyNNDescent, which takes a minute to compile; nightly tests use the real one."""

    def __init__(self, X, metric, metric_kwds, n_neighbors, random_state, n_jobs):
        self.X, self.metric, self.params = X, metric, metric_kwds
        self.neighbor_graph = self.query(X, n_neighbors)

    def query(self, X, k):
        A, B = (Y.toarray() if hasattr(Y, "toarray") else Y for Y in (X, self.X))
        if self.metric in ("jaccard", "dice"):
            A, B = A.astype(bool), B.astype(bool)
        dist = pairwise_distances(A, B, metric=self.metric, **self.params).astype(np.float32)
        nearest = np.argsort(dist, axis=1, kind="stable")[:, :k].astype(np.int32)
        return nearest, np.take_along_axis(dist, nearest, axis=1)


@pytest.fixture(autouse=True)
def quick_descent(request, monkeypatch):
    if "nightly" not in request.keywords:
        monkeypatch.setitem(sys.modules, "pynndescent", SimpleNamespace(NNDescent=ExactDescent))


@pytest.fixture(scope="session")
def digits():
    return gc.datasets.load("digits")


@pytest.fixture(scope="session")
def iris():
    return gc.datasets.load("iris")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capfd, monkeypatch):
    """Run the command in this process; return its status, standard output and standard error."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["graphcouple", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capfd.readouterr()
        return stopped.value.code, out, err

    return command
