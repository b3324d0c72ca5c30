"""A grid of compositions between the presets, each against scipy's own minimiser."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize

import graphcouple as gc
from graphcouple.kernels import Kernel
from graphcouple.optimize import Descent, best_scale
from tests.reference import fast_and_nightly


@dataclass(frozen=True)
class PowerLaw(Kernel):
    """(1 + d)^−4, a user's kernel with a cusp."""

    def log(self, sq_dist):
        return -4.0 * np.log1p(np.sqrt(sq_dist))

    def grad_log(self, sq_dist):
        d = np.sqrt(np.maximum(sq_dist, 1e-37))
        return -2.0 / (d * (1.0 + d))


KERNELS = {
    "gaussian": gc.Gaussian(),
    "exponential": gc.Exponential(),
    "student": gc.Student(),
    "heavy": gc.Student(0.5),
    "flat": gc.RationalPower(1.0, 2.0),
    "odds": gc.Odds(gc.Student()),
    "umap": gc.Odds(gc.RationalPower.from_min_dist(0.1)),
    "user": PowerLaw(),
}
LAWS = {
    "D5": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)),
    "D30": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30)),
    "D40": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(40)),
    "E": gc.GraphModel(gc.Gaussian(), "E", gc.SelfTuning(7)),
    "B": gc.UMAP().models(120)[0],
}
GRID = {
    f"{law}-{prior}-{kernel}-{q}": (law, prior, kernel, q)
    for law in LAWS
    for prior in {"D": "BDE", "E": "E", "B": "B"}[law[0]]
    for kernel in KERNELS
    for q in (1, 2, 3)
}
FAST = ("D5-E-student-2", "D40-D-gaussian-2", "B-B-umap-2", "D40-E-flat-3")


@pytest.mark.parametrize("cell", fast_and_nightly(GRID, fast=FAST))
def test_every_composition_ends_well(cell):
    """Without the bound on the size, within 5 % of the least that scipy's L-BFGS finds from three starts."""
    law, prior, kernel, q = cell
    X = np.random.RandomState(0).randn(120, 4)
    free = {"optimizer": Descent(confinement=0.0), "n_components": q, "n_starts": 3, "random_state": 0}
    fitted = gc.GraphCoupling(LAWS[law], gc.GraphModel(KERNELS[kernel], prior), **free).fit(X)
    assert not fitted.stop_reason_.startswith("collapsed")
    objective = gc.CrossEntropy(fitted.posterior_, gc.GraphModel(KERNELS[kernel], prior))
    best = np.inf
    for seed in range(3):
        Z = np.random.default_rng(seed).normal(size=(120, q))
        found = minimize(
            lambda flat: [
                part if np.isscalar(part) else part.ravel() for part in objective.value_and_grad(flat.reshape(120, q))
            ],
            (Z * best_scale(objective, Z)).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 1000, "maxfun": 2000},
        )
        best = min(best, float(found.fun))
    assert fitted.loss_ - objective.lower_bound < 1.05 * (best - objective.lower_bound)
