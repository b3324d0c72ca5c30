"""A kernel: exp(−d/w), with a cusp at zero and a length of its own."""

from dataclasses import dataclass

import numpy as np

from graphcouple import extend


@extend.register_kernel("laplace")
@dataclass(frozen=True)
class Laplace(extend.Kernel):
    width: float = 1.0

    def log(self, sq_dist):
        return -np.sqrt(sq_dist) / self.width

    def grad_log(self, sq_dist):
        return -0.5 / (self.width * np.sqrt(np.maximum(sq_dist, 1e-30)))
