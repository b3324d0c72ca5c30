"""Corollary 1: the best arrangement of the component means is PCA of the means, whatever ε.

    python examples/theory/corollary1.py [--output corollary1.png]

One graph is drawn from the D-posterior of iris. The coupling of its component means at ε,

    J_ε(Z̃) = ε(ν_X + p)/2 · tr(Z̃ᵀ(I + εX̃X̃ᵀ)⁻¹Z̃) − (ν_Z + q)/2 · log det(I + εZ̃Z̃ᵀ),

is the precision coupling of √ε X̃ at √ε Z̃. It is minimised numerically for ε over six decades, and compared with
PCA of X̃ = UᵀX.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import graphcouple as gc
from graphcouple.theory.field import component_indicators

EPSILONS = np.logspace(-3, 3, 7)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="corollary1.png")
    output = parser.parse_args().output
    X, _ = gc.datasets.load("iris")
    W = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)).posterior(X).sample(rng=0)
    means = component_indicators(W).T @ (X - X.mean(0))
    left, singular, _ = np.linalg.svd(means, full_matrices=False)
    wanted = left[:, :2] * singular[:2]
    print(f"{len(means)} components; singular values of their means {singular[0]:.3f}, {singular[1]:.3f}")
    print(f"{'ε':>8}{'iterations':>12}{'relative error of Z̃Z̃ᵀ':>26}{'singular values found':>26}")
    ax = Figure(figsize=(7, 5), layout="constrained").add_subplot()
    errors = []
    for epsilon in EPSILONS:
        root = np.sqrt(epsilon)
        objective = gc.PrecisionCrossEntropy(root * means)
        start = root * np.random.default_rng(1).normal(size=wanted.shape)
        solution = gc.solve(objective, start, gc.LBFGS(20), max_iter=50_000, tol=1e-14, patience=50_000)
        found = solution.Z / root
        gram = wanted @ wanted.T
        errors.append(np.linalg.norm(found @ found.T - gram) / np.linalg.norm(gram))
        values = np.linalg.svd(found, compute_uv=False)
        print(f"{epsilon:8.0e}{solution.n_iter:12}{errors[-1]:26.1e}{values[0]:18.3f}{values[1]:8.3f}")
    ax.plot(EPSILONS, errors, marker="o", color="#332288")
    ax.set(xscale="log", yscale="log", xlabel="ε", ylabel="relative error of Z̃Z̃ᵀ against PCA of the means")
    ax.set_title("The minimiser does not depend on ε")
    ax.figure.savefig(output, dpi=120)
    print(f"saved {output}")


if __name__ == "__main__":
    main()
