"""What a checkpoint and a store know metrics, kernels and optimizers of one's own by."""

import ast
import subprocess
import sys
import types
from functools import cached_property

import networkx as nx
import numpy as np

import graphcouple as gc
from graphcouple.estimators.run_control import fingerprint

CODE = """
import numba, numpy as np, graphcouple as gc
from graphcouple.estimators.run_control import fingerprint

WIDTH = {width}

def apart(u, v):
    return abs(u - v){power} if "fold" not in {{"cut", "flip", "turn"}} else apart(v, u)

class Own(gc.extend.Kernel):
    def log(self, sq_dist):
        return -{scale} * sq_dist

    def grad_log(self, sq_dist):
        return -{scale}

def made(shift):
    return lambda u, v: WIDTH * apart(u, v).{sum}() + shift

compiled = numba.njit(lambda u, v: np.abs(u - v).{sum}())
PRINTS = [fingerprint(value) for value in (made({shift}), compiled, [Own(), gc.TSNE(metric=compiled)])]
"""


def fingerprints(width=2.0, power="", scale=1.0, sum="sum", shift=0.0):
    """Return the fingerprints of a metric, a compiled metric and laws of one's own."""
    exec(CODE.format(**locals()), space := {"__name__": "__main__"})
    return space["PRINTS"]


def test_metrics_and_kernels_are_known_by_what_they_do_in_every_process():
    usual = fingerprints()
    cases = [({"width": 3.0}, [0]), ({"power": " ** 2"}, [0]), ({"scale": 2.0}, [2]), ({"shift": 1.0}, [0])]
    for changed, differing in [*cases, ({"sum": "max"}, [0, 1, 2])]:
        found = fingerprints(**changed)
        assert [i for i in range(3) if found[i] != usual[i]] == differing, changed
    code = CODE.format(width=2.0, power="", scale=1.0, sum="sum", shift=0.0) + "print(PRINTS)"
    # Sets have another order in each process.
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=300)
    assert ast.literal_eval(done.stdout) == usual


CALLS = 0


def test_a_metric_that_counts_and_remembers_its_calls_is_the_same_metric():
    seen = {}

    def remembering(u, v):
        global CALLS
        CALLS += 1
        return seen.setdefault((u.tobytes(), v.tobytes()), float(abs(u - v).sum()))

    def weighted(weights):
        return lambda u, v: float((np.asarray(weights) * abs(u - v)).sum())

    before = fingerprint(remembering)
    remembering(np.zeros(2), np.ones(2))
    assert (CALLS, fingerprint(remembering)) == (1, before)
    assert fingerprint(weighted((1.0, 2.0))) == fingerprint(weighted((1.0, 2.0))) != fingerprint(weighted((1.0, 3.0)))
    settings = types.ModuleType("settings")
    settings.WIDTH, settings.calls = 1.0, 0

    def of_settings(u, v):
        settings.calls = settings.calls + 1
        return float(abs(u - v).sum() * settings.WIDTH)

    before = fingerprint(of_settings)
    of_settings(np.zeros(2), np.ones(2))
    assert fingerprint(of_settings) == before
    settings.WIDTH = 2.0
    assert fingerprint(of_settings) != before

    def noted(weight):
        def metric(u, v):
            metric.weight = weight
            return weight * float(abs(u - v).sum())

        return metric

    assert fingerprint(noted(1.0)) == fingerprint(noted(1.0)) != fingerprint(noted(2.0))
    steps = [
        type("Own", (gc.MomentumGains,), {"push": push, "__module__": __name__, "__doc__": doc})
        for push, doc in ((1.0, "a"), (1.0, "b"), (2.0, "a"))
    ]
    first, same, other = map(fingerprint, steps)
    assert first == same != other


class Pair(tuple):
    """A tuple with a cached property."""

    @cached_property
    def total(self):
        return sum(self)


class Plain:
    """Nothing but a cached property."""

    @cached_property
    def zero(self):
        return 0


def test_cached_properties_that_were_read_are_no_part_of_a_fingerprint():
    X, graph = np.random.default_rng(0).normal(size=(30, 3)), nx.path_graph(5)
    laws = [gc.GraphModel("gaussian", "D", gc.Perplexity(5)).posterior(rows) for rows in (X, X + X**2)]
    before = [fingerprint(value) for value in (laws[0], graph)]
    pair, plain = Pair((1, 2)), Plain()
    before += [fingerprint(pair), fingerprint(plain)]
    laws[0].entropy(), laws[0].mean(), graph.adj, graph.nodes, pair.total, plain.zero
    assert [fingerprint(value) for value in (laws[0], graph, pair, plain)] == before
    assert fingerprint(Pair((3, 4))) != before[2]
    assert fingerprint(laws[1]) != before[0]
    graph.add_edge(0, 4)
    assert fingerprint(graph) != before[1]
