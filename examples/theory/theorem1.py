"""Theorem 1: a graph's field is normalisable on the centred points, and never on the whole space.

    python examples/theory/theorem1.py [--output theorem1.png]

For a graph of two pairs and a triangle (n = 7, R = 3 components) in the plane (p = 2): the normaliser on the
centred points, and the growth of the integral over a box of side s, which theory says is s^(Rp) = s^6 for every kernel
that theorem 1 admits. Kernels that are not integrable on the plane, among them t-SNE's and UMAP's latent
kernels, have no normaliser.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import graphcouple as gc

KERNELS = {
    "Gaussian": gc.Gaussian(),
    "Exponential": gc.Exponential(),
    "Student(3)": gc.Student(3.0),
    "Student(1), t-SNE's": gc.Student(),
    "UMAP's latent odds": gc.Odds(gc.RationalPower.from_min_dist()),
}
EDGES = [(0, 1), (2, 3), (4, 5), (5, 6), (6, 4)]
SIDES = np.logspace(0, 4, 17)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="theorem1.png")
    output = parser.parse_args().output
    W = np.zeros((7, 7))
    W[tuple(np.array(EDGES).T)] = 1
    ax = Figure(figsize=(7, 5), layout="constrained").add_subplot()
    print(f"{'kernel':22}{'bounded':>9}{'integrable':>12}{'log integral, centred':>24}{'box exponent':>14}")
    for name, kernel in KERNELS.items():
        mrf = gc.PairwiseMRF(kernel)
        assumptions = kernel.assumptions(2)
        centred = mrf.log_normalizer(W, 2, rng=0)
        line = f"{name:22}{assumptions.bounded!s:>9}{assumptions.integrable!s:>12}"
        if np.isinf(centred.value):
            print(f"{line}{'infinite':>24}{'–':>14}")
            continue
        logs = np.array([mrf.log_box_integral(W, 2, side, rng=0, n_samples=40_000).value for side in SIDES])
        slope = np.polyfit(np.log(SIDES[-5:]), logs[-5:], 1)[0]
        print(f"{line}{centred.value:>14.4f} ± {centred.standard_error:7.4f}{slope:>14.3f}")
        ax.plot(SIDES, logs / np.log(10), marker=".", label=f"{name}, exponent {slope:.2f}")
    ax.set(xscale="log", xlabel="side s of the box", ylabel="log₁₀ of the integral over the box")
    ax.set_title("The integral over a box grows like $s^{Rp}$, here $s^6$")
    ax.legend(frameon=False)
    ax.figure.savefig(output, dpi=120)
    print(f"saved {output}")


if __name__ == "__main__":
    main()
