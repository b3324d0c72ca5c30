"""Slow, literal references: enumeration of all graphs, finite differences, transcriptions of losses."""

from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import factorial

import numpy as np
import pytest
from scipy.linalg import subspace_angles

import graphcouple as gc
from graphcouple.couplings.recipes import Problem, as_coupling
from graphcouple.summation import as_summation


@dataclass(frozen=True)
class Parabola(gc.Kernel):
    """1 − d²/w², which is 0 beyond a distance."""

    width: float = 1.0

    def log(self, sq_dist):
        return np.log(np.maximum(0.0, 1.0 - sq_dist / self.width**2))

    def grad_log(self, sq_dist):
        return np.where(sq_dist < self.width**2, -1.0 / (self.width**2 - sq_dist), 0.0)


KERNELS = {
    "gaussian": gc.Gaussian(),
    "exponential": gc.Exponential(),
    "student": gc.Student(),
    "student-2.5": gc.Student(2.5),
    "student-0.5": gc.Student(0.5),
    "rational": gc.RationalPower(1.577, 0.895),
    "odds-student": gc.Odds(gc.Student()),
    "odds-student-3": gc.Odds(gc.Student(3.0)),
    "odds-rational": gc.Odds(gc.RationalPower(1.577, 0.895)),
    "odds-exponential": gc.Odds(gc.Exponential()),
    "odds-gaussian": gc.Odds(gc.Gaussian()),
}


ARCHETYPES = ("gaussian", "exponential", "student-0.5", "odds-rational", "weighted")
"""Of every kind of radial function one: smooth, with a cusp, heavy-tailed, singular, weighted."""


def fast_and_nightly(known, fast=ARCHETYPES):
    """Parameters from a dict: those named in `fast`, and the rest for the nightly set."""
    return [
        pytest.param(thing, id=name, marks=[] if name in fast else pytest.mark.nightly) for name, thing in known.items()
    ]


def thinned(first, second, share):
    """All pairs of two lists: one in `share` for the fast set, so that all values occur, the rest for the nightly."""
    return [
        pytest.param(a, b, marks=[] if (i + j) % share == 0 else pytest.mark.nightly)
        for i, a in enumerate(first)
        for j, b in enumerate(second)
    ]


def pairwise(first, second, third, fast=None):
    """All pairs of the first two, each with one of the third in the fast set, so that all pairs of values occur.

    The rest is nightly, and so is what `fast` does not name of the second.
    """
    cases = []
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            for k, c in enumerate(third):
                chosen = k == (i + j) % len(third) and (fast is None or b in fast)
                marks = [] if chosen else pytest.mark.nightly
                cases.append(pytest.param(a, second[b], c, id=f"{a}-{b}-{c}", marks=marks))
    return cases


def literal_kernel(kernel, d):
    """k at distances d, from the definition."""
    if isinstance(kernel, gc.Odds):
        v = literal_kernel(kernel.kernel, d)
        return v / (1 - v)
    if isinstance(kernel, gc.Gaussian):
        return np.exp(-(d**2) / 2)
    if isinstance(kernel, gc.Exponential):
        return np.exp(-d)
    if isinstance(kernel, gc.Student):
        return (1 + d**2 / kernel.dof) ** (-(kernel.dof + 1) / 2)
    return 1 / (1 + kernel.a * d ** (2 * kernel.b))


def coupling_of(estimator):
    """The coupling a fitted estimator minimised, from what its sentence says."""
    said = estimator.sentence
    problem = gc.Problem(
        X=None,
        y=None,
        posterior=estimator.posterior_,
        latent=said.latent,
        n_components=said.n_components,
        summation=as_summation(said.get("summation", "auto")),
        metric="euclidean",
        rng=np.random.RandomState(0),
        n_jobs=None,
    )
    return as_coupling(said.coupling).bind(problem)


def distances(Z):
    return np.sqrt(((Z[:, None] - Z[None]) ** 2).sum(-1))


def pairs(n):
    return [(i, j) for i in range(n) for j in range(n) if i != j]


def enumerate_graphs(code, n):
    """Every graph of a prior's support with its base measure."""
    edges = pairs(n)
    if code == "B":
        for present in product((0, 1), repeat=len(edges)):
            W = np.zeros((n, n), dtype=int)
            for (i, j), w in zip(edges, present, strict=True):
                W[i, j] = w
            yield W, 1.0
    elif code == "D":
        for ends in product(*[[j for j in range(n) if j != i] for i in range(n)]):
            W = np.zeros((n, n), dtype=int)
            W[np.arange(n), ends] = 1
            yield W, 1.0
    else:
        for drawn in combinations_with_replacement(range(len(edges)), n):
            W = np.zeros((n, n), dtype=int)
            for e in drawn:
                W[edges[e]] += 1
            yield W, factorial(n) / np.prod([factorial(w) for w in W.ravel()])


def enumerated_law(code, weights):
    """All graphs of a law with edge weights π·k, and their probabilities; the log of the normaliser too."""
    graphs, masses = [], []
    for W, base in enumerate_graphs(code, len(weights)):
        mass = base * np.prod([weights[i, j] ** W[i, j] for i, j in pairs(len(weights))])
        if mass > 0:
            graphs.append(W)
            masses.append(mass)
    masses = np.array(masses)
    return graphs, masses / masses.sum(), np.log(masses.sum())


def numerical_gradient(f, Z, h=1e-4):
    """Fourth-order central differences."""
    gradient = np.empty_like(Z)
    for index in np.ndindex(Z.shape):
        total = 0.0
        for step, weight in ((1, 8.0), (2, -1.0)):
            up, down = Z.copy(), Z.copy()
            up[index] += step * h
            down[index] -= step * h
            total += weight * (f(up) - f(down))
        gradient[index] = total / (12 * h)
    return gradient


def relative_error(found, wanted):
    """|found − wanted| / |wanted|; 0 if both are 0."""
    off = np.linalg.norm(found - wanted)
    return off / np.linalg.norm(wanted) if off else 0.0


@dataclass(frozen=True)
class Fourth(gc.MatchingLoss):
    """A user's loss, not quadratic in e."""

    scale: float = 2.0

    def cost(self, e, p):
        return (self.scale * (e - p)) ** 4

    def grad_cost(self, e, p):
        return 4.0 * self.scale**4 * (p - e) ** 3


@dataclass(frozen=True)
class Pole(gc.Kernel):
    """1/d², infinite at distance 0."""

    def log(self, sq_dist):
        return -np.log(sq_dist)

    def grad_log(self, sq_dist):
        return -1.0 / sq_dist


def angle(A, B):
    """The largest principal angle between the spans of two embeddings."""
    return float(subspace_angles(A - A.mean(axis=0), B - B.mean(axis=0)).max())


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def ranks(A):
    """Ranks of the other points from 1, the smaller index first among ties; the point itself has rank 0."""
    D = distances(np.asarray(A, dtype=float))
    np.fill_diagonal(D, -1.0)
    return np.argsort(np.argsort(D, axis=1, kind="stable"), axis=1)


def literal_neighborhoods(X, Z, K):
    """R, T and M from the definitions."""
    rho, r, n = ranks(X), ranks(Z), len(X)
    near_x, near_z = (rho >= 1) & (rho <= K), (r >= 1) & (r <= K)
    Q = (near_x & near_z).sum() / (n * K)
    most = K * (2 * n - 3 * K - 1) / 2 if n / 2 > K else (n - K) * (n - K - 1) / 2
    T = 1 - (rho - K)[near_z & ~near_x].sum() / (n * most)
    M = 1 - (r - K)[near_x & ~near_z].sum() / (n * most)
    return ((n - 1) * Q - K) / (n - 1 - K), T, M


def bound(sentence, X, coupling=None, seed=0):
    """Return the objective that a sentence's coupling, or another one, makes of points."""
    problem = Problem(
        X=X,
        y=None,
        posterior=sentence.input.posterior(X),
        latent=sentence.latent,
        n_components=2,
        summation=gc.Exact(),
        metric="euclidean",
        rng=np.random.RandomState(seed),
        n_jobs=1,
    )
    return (coupling or sentence.coupling).bind(problem)


def noise(n=300, p=5):
    return np.random.RandomState(0).randn(n, p)


def tsne_of(X, perplexity=30.0, latent=None, n_neighbors=None):
    """Return the objective of t-SNE, or of another latent law, on points."""
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(perplexity), n_neighbors).posterior(X)
    return gc.CrossEntropy(posterior, latent or gc.GraphModel(gc.Student(), "E"))


def random_graph(n, seed=0, density=0.4):
    """Return a matrix of random numbers of edges, without loops."""
    W = np.random.default_rng(seed).integers(0, 3, size=(n, n)) * (
        np.random.default_rng(seed + 1).random((n, n)) < density
    )
    np.fill_diagonal(W, 0)
    return W
