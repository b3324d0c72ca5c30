"""
Your first method
=================

A kernel takes two formulas. Here a logistic kernel, Gaussian near and exponential far away, replaces the Student
kernel of t-SNE. `check_kernel` says whether the optimizer can use it.

Paper: Van Assel, Espinasse, Chiquet and Picard (2022), section 2 has the conditions on a kernel.
"""

from dataclasses import dataclass

import numpy as np

import graphcouple as gc


@dataclass(frozen=True)
class Logistic(gc.Kernel):
    """sech²(d/2)."""

    def log(self, sq_dist):
        d = np.sqrt(sq_dist)
        return np.log(4.0) - d - 2.0 * np.log1p(np.exp(-d))

    def grad_log(self, sq_dist):
        d = np.sqrt(np.maximum(sq_dist, 1e-30))
        return -np.tanh(d / 2.0) / (2.0 * d)


print(gc.check_kernel(Logistic()))

# %%
# A method couples a law of the input's graph with a law of the embedding's. Everything else follows from the two laws.

X, y = gc.datasets.load("digits")
law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30), n_neighbors="auto")
own = gc.GraphCoupling(law, gc.GraphModel(Logistic(), "E"))
compared = gc.compare({"t-SNE": gc.TSNE(), "logistic kernel": own}, X, y)
compared.plot()
print(compared)
