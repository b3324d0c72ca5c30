"""
Theorem 2: precision coupling is PCA
====================================

For each γ = (ν_Z + q)/(ν_X + p), ten random starts descend on the precision coupling alone. Lines are the closed
form, the spectrum max(0, γ(1 + d) − 1), with d the squared singular values of X. At γ = 1 it is PCA's; below, it
shrinks and drops components.

Paper: Van Assel, Espinasse, Chiquet and Picard (2022), theorem 2.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphcouple as gc

N, P, Q = 60, 8, 5


def nus(gamma):
    """Return ν_X and ν_Z, both at least n."""
    if gamma <= (N + Q) / (N + P):
        return (N + Q) / gamma - P, float(N)
    return float(N), gamma * (N + P) - Q


rng = np.random.default_rng(0)
X = rng.normal(size=(N, P)) @ np.diag([0.9, 0.6, 0.35, 0.22, 0.15, 0.1, 0.05, 0.02])
X -= X.mean(0)
_, ax = plt.subplots(figsize=(7, 5), layout="constrained")
components = np.arange(1, Q + 1)
for gamma, color in zip((1.5, 1.0, 0.8, 0.3), ("#332288", "#44aa99", "#cc6677", "#999933"), strict=True):
    nu_x, nu_z = nus(gamma)
    closed = gc.PrecisionCoupling(Q, nu_x=nu_x, nu_z=nu_z).fit(X).eigenvalues_
    objective = gc.PrecisionCrossEntropy(X, nu_x, nu_z)
    worst = 0.0
    for _ in range(10):
        start = rng.normal(size=(N, Q))
        found = gc.solve(objective, start, gc.LBFGS(), max_iter=20_000, tol=1e-10, settled_within=0.0).Z
        spectrum = np.linalg.svd(found, compute_uv=False) ** 2
        worst = max(worst, np.abs(spectrum - closed).max() / closed[0])
        ax.plot(components, spectrum, "o", color=color, alpha=0.4)
    ax.plot(components, closed, color=color, label=f"γ = {gamma}, closed form")
    print(f"γ = {gamma}: rank {np.count_nonzero(closed)}, largest relative error {worst:.1e}")
ax.set(xlabel="component", ylabel="squared singular value of the embedding", xticks=components)
ax.legend(frameon=False)
