"""A prior: exactly two edges out of every node, drawn with replacement; W_i+ = 2."""

from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom

import graphcouple as gc
from graphcouple import extend

K = 2


class TwoOutPosterior(extend.GraphPosterior):
    """Each row multinomial(2): A = 2 Σ_i log Σ_j e^η_ij, h = Π_i 2!/Π_j W_ij!."""

    def _row_log_sums(self):
        return np.logaddexp.reduceat(self.natural_parameters, self.support.indptr[:-1])

    def log_partition(self):
        return K * float(self._row_log_sums().sum())

    @property
    def edge_means(self):
        return K * np.exp(self.natural_parameters - self._row_log_sums()[self.support.rows])

    def entropy(self):
        p = self.edge_means / K
        surprise = -float((self.edge_means * np.log(p)).sum())
        log_base = self.n_nodes * gammaln(K + 1.0) - sum(gammaln(w + 1.0) * binom.pmf(w, K, p).sum() for w in (2,))
        return surprise - log_base

    def _draw(self, rng):
        cumulative = np.cumsum(self.edge_means) / K
        drawn = np.repeat(np.arange(self.n_nodes), K) + rng.random(K * self.n_nodes)
        ends = extend.draw_by_inversion(cumulative, drawn)
        return np.unique(ends, return_counts=True)

    def _log_base_measure(self, rows, counts):
        if (np.bincount(rows, weights=counts, minlength=self.n_nodes) != K).any():
            return -np.inf
        return float(self.n_nodes * gammaln(K + 1.0) - gammaln(counts + 1.0).sum())


@extend.register_prior
@dataclass(frozen=True, eq=False, repr=False)
class TwoOut(extend.GraphPrior):
    code = "TwoOut"
    constraints = frozenset({"two edges out of every node"})
    posterior_class = TwoOutPosterior
    drawn_by, draws = "row", K

    def log_partition_and_grad(self, kernel, Z, summation, **wanted):
        value, gradient = gc.UnitOutDegree().log_partition_and_grad(kernel, Z, summation, **wanted)
        return K * value, None if gradient is None else K * gradient

    @classmethod
    def enumerate(cls, n_nodes):
        ends = [list(combinations_with_replacement([j for j in range(n_nodes) if j != i], K)) for i in range(n_nodes)]
        graphs = np.zeros((np.prod([len(e) for e in ends]), n_nodes, n_nodes), dtype=np.int64)
        for g, chosen in enumerate(product(*ends)):
            for i, pair in enumerate(chosen):
                np.add.at(graphs[g, i], list(pair), 1)
        return graphs, n_nodes * gammaln(K + 1.0) - gammaln(graphs + 1.0).sum(axis=(1, 2))
