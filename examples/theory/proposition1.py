"""Proposition 1: as the model of the component means becomes uninformative, the posterior takes its simple form.

    python examples/theory/proposition1.py [--output proposition1.png]

Total variation distance between the exact posterior at ε and the limit, by enumeration of all graphs, for the
priors B (n = 3), D and E (n = 4) and three kernels. It falls linearly in ε.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import graphcouple as gc

EPSILONS = np.logspace(1, -5, 13)
KERNELS = {"Gaussian": gc.Gaussian(), "Student(1)": gc.Student(), "Exponential": gc.Exponential()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="proposition1.png")
    output = parser.parse_args().output
    X = np.random.default_rng(0).normal(size=(4, 2))
    ax = Figure(figsize=(7, 5), layout="constrained").add_subplot()
    print(
        f"{'prior':7}{'kernel':14}"
        + "".join(f"{'ε = ' + format(e, '.0e'):>12}" for e in EPSILONS[::4])
        + f"{'order':>8}"
    )
    for code, n, style in (("B", 3, "-"), ("D", 4, "--"), ("E", 4, ":")):
        for (name, kernel), color in zip(KERNELS.items(), ("#332288", "#cc6677", "#117733"), strict=True):
            model = gc.GraphModel(kernel, code)
            limit = gc.finite_epsilon_posterior(model, X[:n], 0.0)
            tv = [gc.finite_epsilon_posterior(model, X[:n], e).total_variation(limit) for e in EPSILONS]
            order = np.polyfit(np.log(EPSILONS[-5:]), np.log(tv[-5:]), 1)[0]
            print(f"{code:7}{name:14}" + "".join(f"{value:12.2e}" for value in tv[::4]) + f"{order:8.3f}")
            ax.plot(EPSILONS, tv, style, color=color, label=f"{code}, {name}")
    ax.set(xscale="log", yscale="log", xlabel="ε", ylabel="total variation to the limit posterior")
    ax.legend(frameon=False, ncols=3, fontsize=8)
    ax.figure.savefig(output, dpi=120)
    print(f"saved {output}")


if __name__ == "__main__":
    main()
