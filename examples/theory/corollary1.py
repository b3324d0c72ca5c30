"""
Corollary 1: component means follow PCA
=======================================

One graph is drawn from the D-posterior of iris. The coupling of its component means X̃ = UᵀX at ε,

    J_ε(Z̃) = ε(ν_X + p)/2 · tr(Z̃ᵀ(I + εX̃X̃ᵀ)⁻¹Z̃) − (ν_Z + q)/2 · log det(I + εZ̃Z̃ᵀ),

is the precision coupling of √ε X̃ at √ε Z̃. Its minimiser is PCA of X̃ for every ε.

Paper: Van Assel, Espinasse, Chiquet and Picard (2022), corollary 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphcouple as gc
from graphcouple.theory import component_indicators

X, _ = gc.datasets.load("iris")
W = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)).posterior(X).sample(rng=0)
means = component_indicators(W).T @ (X - X.mean(0))
left, singular, _ = np.linalg.svd(means, full_matrices=False)
gram = (left[:, :2] * singular[:2] ** 2) @ left[:, :2].T
epsilons, errors = np.logspace(-3, 3, 7), []
for epsilon in epsilons:
    root = np.sqrt(epsilon)
    start = root * np.random.default_rng(1).normal(size=(len(means), 2))
    objective = gc.PrecisionCrossEntropy(root * means)
    to_the_end = {"tol": 1e-12, "settled_within": 0.0}
    found = gc.solve(objective, start, gc.LBFGS(20), max_iter=50_000, rescale=True, **to_the_end).Z / root
    errors.append(np.linalg.norm(found @ found.T - gram) / np.linalg.norm(gram))
    print(f"ε = {epsilon:8.0e}: relative error of Z̃Z̃ᵀ {errors[-1]:.1e}")
_, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.plot(epsilons, errors, marker="o", color="#332288")
ax.set(xscale="log", yscale="log", xlabel="ε", ylabel="relative error of Z̃Z̃ᵀ against PCA of the means")
ax.set_title("The minimiser does not depend on ε")
