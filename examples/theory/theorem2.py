"""Theorem 2: precision coupling is PCA, reached by descent from random starts; below γ = 1 it shrinks and drops.

    python examples/theory/theorem2.py [--output theorem2.png]

For each γ, ten random starts are descended by L-BFGS on J(Z) alone. The spectra are compared with the closed form
λ = max(0, γ(1 + d) − 1), d the squared singular values of X; at γ = 1 that is PCA.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import graphcouple as gc

N, P, Q = 60, 8, 5
GAMMAS = (1.5, 1.0, 0.8, 0.3)


def nus(gamma):
    """ν_X and ν_Z, both at least n, with (ν_Z + q)/(ν_X + p) = γ."""
    if gamma <= (N + Q) / (N + P):
        return (N + Q) / gamma - P, float(N)
    return float(N), gamma * (N + P) - Q


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="theorem2.png")
    output = parser.parse_args().output
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)) @ np.diag([0.9, 0.6, 0.35, 0.22, 0.15, 0.1, 0.05, 0.02])
    X -= X.mean(0)
    d = np.linalg.svd(X, compute_uv=False)[:Q] ** 2
    ax = Figure(figsize=(7, 5), layout="constrained").add_subplot()
    print("squared singular values of X:", " ".join(f"{value:.3f}" for value in d))
    print(f"{'γ':>5}{'rank predicted':>16}{'rank found':>12}{'largest relative error':>30}")
    for gamma, color in zip(GAMMAS, ("#332288", "#44aa99", "#cc6677", "#999933"), strict=True):
        nu_x, nu_z = nus(gamma)
        closed = gc.PrecisionCoupling(Q, nu_x=nu_x, nu_z=nu_z).fit(X).eigenvalues_
        objective = gc.PrecisionCrossEntropy(X, nu_x, nu_z)
        errors, ranks = [], []
        for _ in range(10):
            start = rng.normal(size=(N, Q))
            found = gc.solve(objective, start, gc.LBFGS(), max_iter=20_000, tol=1e-10, patience=20_000).Z
            spectrum = np.linalg.svd(found, compute_uv=False) ** 2
            errors.append(np.abs(spectrum - closed).max() / closed[0])
            ranks.append(np.count_nonzero(spectrum > 1e-5))
            ax.plot(np.arange(1, Q + 1), spectrum, "o", color=color, alpha=0.4)
        ax.plot(np.arange(1, Q + 1), closed, color=color, label=f"γ = {gamma}, closed form")
        predicted = np.count_nonzero(d > 1 / gamma - 1)
        print(f"{gamma:5}{predicted:16}{'/'.join(map(str, sorted(set(ranks)))):>12}{max(errors):30.1e}")
    ax.set(xlabel="component", ylabel="squared singular value of the embedding", xticks=range(1, Q + 1))
    ax.set_title("Descent from ten random starts (points) and theorem 2 (lines)")
    ax.legend(frameon=False)
    ax.figure.savefig(output, dpi=120)
    print(f"saved {output}")


if __name__ == "__main__":
    main()
