"""Compose methods from laws: how the latent prior and the tail of the latent kernel shape an embedding.

    python examples/compose.py [--data digits] [--output compose.png]

One law of the input's graph (prior D, Gaussian kernel, perplexity 30) is coupled with six laws of the
embedding's: prior D or E, and Student kernels of 0.5, 1 and infinitely many (Gaussian) degrees of freedom.
"""

import argparse

from matplotlib.figure import Figure

import graphcouple as gc


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", choices=gc.datasets.NAMES)
    parser.add_argument("--output", default="compose.png")
    options = parser.parse_args()
    X, y = gc.datasets.load(options.data)
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30), n_neighbors=90).posterior(X)
    kernels = {"Student(0.5)": gc.Student(0.5), "Student(1)": gc.Student(), "Gaussian": gc.Gaussian()}
    figure = Figure(figsize=(14, 8), layout="constrained")
    axes = figure.subplots(2, 3)
    print(f"{'latent prior':14}{'latent kernel':16}{'loss':>10}{'KL':>8}")
    for row, prior in zip(axes, ("D", "E"), strict=True):
        for ax, (name, kernel) in zip(row, kernels.items(), strict=True):
            method = gc.GraphCoupling(posterior, gc.GraphModel(kernel, prior), random_state=0)
            Z = method.fit_transform(X)
            gc.plot(Z, y, ax=ax, title=f"{name}, prior {prior}", legend=ax is row[-1])
            print(f"{prior:14}{name:16}{method.loss_:10.1f}{method.kl_divergence_:8.3f}", flush=True)
    figure.savefig(options.output, dpi=110)
    print(f"saved {options.output}")


if __name__ == "__main__":
    main()
