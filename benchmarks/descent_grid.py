"""The grid of `descent.py`: data sets, compositions of two laws, and the objective of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

import graphcouple as gc
from graphcouple.couplings import Objective
from graphcouple.datasets._files import read_points


@dataclass(frozen=True)
class PowerLaw(gc.kernels.Kernel):
    """(1 + d)^−4, with a cusp at zero: a kernel that a user might write."""

    def log(self, sq_dist):
        return -4.0 * np.log1p(np.sqrt(sq_dist))

    def grad_log(self, sq_dist):
        d = np.sqrt(np.maximum(sq_dist, 1e-37))
        return -2.0 / (d * (1.0 + d))


KERNELS = {
    "Gaussian": gc.Gaussian(),
    "Exponential": gc.Exponential(),
    "Student(.5)": gc.Student(0.5),
    "Student(1)": gc.Student(),
    "Student(5)": gc.Student(5.0),
    "RationalPower": gc.RationalPower.from_min_dist(0.1),
    "RationalPower(1,2)": gc.RationalPower(1.0, 2.0),
    "Odds(Student)": gc.Odds(gc.Student()),
    "Odds(RationalPower)": gc.Odds(gc.RationalPower.from_min_dist(0.1)),
    "PowerLaw": PowerLaw(),
    "10 m": gc.RationalPower(0.01, 1.0),
}


def _sample(X: Any, n: int, seed: int = 0) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    return X[np.sort(np.random.default_rng(seed).permutation(len(X))[:n])]


def _blobs() -> np.ndarray:
    rng = np.random.default_rng(1)
    sizes = (200, 80, 40, 30, 20, 15, 10, 5)
    means = 10.0 * rng.normal(size=(len(sizes), 20))
    return np.concatenate([mean + rng.normal(size=(size, 20)) for mean, size in zip(means, sizes, strict=True)])


def _pieces(sizes: tuple[int, ...], gap: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    means = gap * rng.normal(size=(len(sizes), 10))
    return np.concatenate([mean + rng.normal(size=(size, 10)) for mean, size in zip(means, sizes, strict=True)])


def _chain(n_links: int) -> np.ndarray:
    X = 0.5 * np.random.default_rng(4).normal(size=(30 * n_links, 5))
    X[:, 0] += 3.2 * np.repeat(np.arange(n_links), 30)
    return X


def _rings() -> np.ndarray:
    rng = np.random.default_rng(2)
    angle = rng.uniform(0, 2 * np.pi, 300)
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(300)])
    ring[150:] = ring[150:, [2, 0, 1]] + np.array([0.0, 1.0, 0.0])
    return ring + 0.02 * rng.normal(size=ring.shape)


def _bundled(name: str) -> np.ndarray:
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(getattr(datasets, f"load_{name}")().data)


DATA: dict[str, Callable[[], np.ndarray]] = {
    "digits-500": lambda: _sample(gc.datasets.load("digits")[0], 500),
    "digits-1797": lambda: _sample(gc.datasets.load("digits")[0], 1797),
    "noise-300x5": lambda: np.random.default_rng(0).normal(size=(300, 5)),
    "noise-1000x10": lambda: np.random.default_rng(0).normal(size=(1000, 10)),
    "iris": lambda: _sample(gc.datasets.load("iris")[0], 150),
    "wine": lambda: _bundled("wine"),
    "cancer": lambda: _bundled("breast_cancer"),
    "blobs-400": _blobs,
    "rings-300": _rings,
    "roll-1500": lambda: gc.datasets.make_swiss_roll(1500, random_state=0)[0],
    "waveform-600": lambda: gc.datasets.make_waveform(600, random_state=0)[0],
    "tree-400": lambda: gc.datasets.make_hierarchical_mixture(400, random_state=0)[0],
}

BUNDLED = tuple(DATA)

# Graphs in pieces, and the number of points of each piece.
PIECES: dict[str, tuple[int, ...]] = {
    "12 equal": (30,) * 12,
    "8 unequal": (150, 80, 50, 30, 20, 15, 10, 5),
    "2 far": (200, 100),
    "chain of 12": (30,) * 12,
}
DATA |= {
    "12 equal": partial(_pieces, PIECES["12 equal"], 6.0),
    "8 unequal": partial(_pieces, PIECES["8 unequal"], 6.0),
    "2 far": partial(_pieces, PIECES["2 far"], 200.0),
    "chain of 12": partial(_chain, 12),
}


@dataclass(frozen=True)
class Composition:
    """One cell of the grid."""

    data: str
    law: str
    prior: str
    kernel: str
    q: int = 2
    coupling: str = "cross-entropy"
    added: str = ""

    def __str__(self) -> str:
        extra = "".join(f", {part}" for part in (f"q={self.q}" if self.q != 2 else "", self.added) if part)
        how = "" if self.coupling == "cross-entropy" else f" {self.coupling}"
        return f"{self.data}: {self.law} → {self.prior} {self.kernel}{how}{extra}"

    @property
    def points(self) -> np.ndarray:
        return points(self.data)

    def input(self) -> gc.GraphModel:
        return input_law(self.law, len(self.points))

    def latent(self) -> gc.GraphModel:
        return gc.GraphModel(KERNELS[self.kernel], self.prior)

    def terms(self) -> list[Any]:
        if not self.added:
            return []
        if self.added == "means":
            return [gc.ComponentMeans(weight=1.0)]
        return [SecondLaw(0.5, self.added)]

    def estimator(self, **options: Any) -> gc.GraphCoupling:
        return gc.GraphCoupling(
            self.input(), self.latent(), coupling=self.coupling, n_components=self.q, terms=self.terms(), **options
        )

    def objective(self) -> Objective:
        """Return the objective with exact sums."""
        posterior = posterior_of(self.data, self.law)
        bind = gc.CrossEntropy if self.coupling == "cross-entropy" else gc.EffectiveCrossEntropy
        total: Objective = bind(posterior, self.latent(), summation="exact")
        if self.added == "means":
            total = total + gc.ComponentCrossEntropy(self.points, posterior, n_components=self.q)
        elif self.added:
            total = total + 0.5 * bind(posterior_of(self.data, self.added), self.latent(), summation="exact")
        return total


@dataclass(frozen=True)
class SecondLaw(gc.couplings.Term):
    """The cross-entropy from another law of the input's graph, as a term."""

    weight: float
    law: str

    def bind(self, problem):
        posterior = input_law(self.law, problem.posterior.n_nodes).posterior(problem.X)
        return gc.CrossEntropy(posterior, problem.latent, problem.summation)


@lru_cache
def points(name: str) -> np.ndarray:
    return DATA[name]()


def input_law(law: str, n: int) -> gc.GraphModel:
    if law == "B":
        return gc.UMAP().models(n)[0]
    if law == "E":
        return gc.GraphModel(gc.Gaussian(), "E", gc.SelfTuning(7))
    if law == "D unit":
        return gc.GraphModel(gc.Gaussian(), "D", gc.SelfTuning(7))
    size = law.removeprefix("D ")
    perplexity = n / float(size[2:]) if size.startswith("n/") else float(size)
    return gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(perplexity))


@lru_cache(maxsize=8)
def posterior_of(data: str, law: str) -> Any:
    X = points(data)
    return input_law(law, len(X)).posterior(X)


SMOOTH = ("Gaussian", "Student(.5)", "Student(1)", "Student(5)", "10 m")
HARD = ("Exponential", "PowerLaw", "RationalPower", "RationalPower(1,2)", "Odds(Student)", "Odds(RationalPower)")
FEASIBLE = {"D": ("B", "D", "E"), "E": ("E",), "B": ("B",)}


def grid() -> Iterator[Composition]:
    """Yield the compositions of the published table."""
    for law in ("D 30", "D 100", "E", "B"):
        for prior in FEASIBLE[law[0]]:
            for kernel in KERNELS:
                yield Composition("digits-500", law, prior, kernel)
    for law in ("D 5", "D 30", "D n/3", "E"):
        for prior in FEASIBLE[law[0]]:
            for kernel in ("Gaussian", "Student(1)", "PowerLaw", "Odds(RationalPower)"):
                yield Composition("noise-300x5", law, prior, kernel)
    for law in ("D 5", "D n/3", "B", "D unit"):
        for prior in FEASIBLE[law[0]]:
            for kernel in ("Student(1)", "Gaussian", "Odds(Student)"):
                yield Composition("blobs-400", law, prior, kernel)
    for q in (1, 3):
        for law, prior in (("D 10", "D"), ("D 10", "E"), ("D 10", "B"), ("B", "B"), ("E", "E")):
            for kernel in ("Student(1)", "Gaussian", "RationalPower"):
                yield Composition("iris", law, prior, kernel, q)
    for data in ("wine", "rings-300", "cancer", "waveform-600", "tree-400"):
        for law, prior, kernel in (
            ("D 5", "E", "Student(1)"),
            ("D n/3", "E", "Student(1)"),
            ("D 30", "D", "Gaussian"),
            ("B", "B", "Odds(RationalPower)"),
        ):
            yield Composition(data, law, prior, kernel)
        yield Composition(data, "B", "B", "Odds(RationalPower)", coupling="effective")
    for data in ("noise-1000x10", "roll-1500", "digits-1797"):
        for law, prior, kernel in (
            ("D 30", "E", "Student(1)"),
            ("D n/5", "E", "Student(1)"),
            ("D 30", "D", "Gaussian"),
        ):
            yield Composition(data, law, prior, kernel)
    for data in set(DATA) - set(BUNDLED) - set(PIECES):
        for law in ("D 5", "D 30", "D n/3", "B"):
            for prior in FEASIBLE[law[0]]:
                for kernel in ("Student(1)", "Gaussian", "Odds(RationalPower)"):
                    yield Composition(data, law, prior, kernel)
    for data in ("digits-500", "blobs-400", "noise-300x5"):
        yield Composition(data, "D 10", "E", "Student(1)", added="D n/4")
        yield Composition(data, "D 30", "D", "Gaussian", added="D n/4")
        yield Composition(data, "D 30", "E", "Student(1)", added="means")


def separated() -> Iterator[Composition]:
    """Yield compositions of graphs in pieces."""
    for data, q, law in product(PIECES, (1, 2, 3), ("D 10", "D 30", "E", "B")):
        for prior, kernel in product(FEASIBLE[law[0]], ("Gaussian", "Student(1)", "Student(.5)", "PowerLaw", "10 m")):
            yield Composition(data, law, prior, kernel, q)
        yield Composition(data, law, FEASIBLE[law[0]][0], "Odds(RationalPower)", q)
    for data, law in product(PIECES, ("D 10", "B")):
        yield Composition(data, law, "B", "Odds(RationalPower)", coupling="effective")
        yield Composition(data, law, "B", "Student(1)", added="means")


def add(path: Any) -> str:
    """Add the points of a file to the data sets, and return their name."""

    def points() -> Any:
        by_name = path.suffix == ".mat"
        X = gc.datasets.load(path.stem, path=path)[0] if by_name else read_points(path, None)[0]
        return np.asarray(X, dtype=np.float64)

    DATA[path.stem] = points
    return path.stem
