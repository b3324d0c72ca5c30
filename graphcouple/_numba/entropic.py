"""The dual of symmetric entropic affinities: log P_ij = (λ_i + λ_j − 2 C_ij)/(γ_i + γ_j), row by row."""

import numpy as np

from graphcouple._numba.jit import jit

# A trial step may overflow.
_LARGEST_LOG = 100.0


@jit
def affinity_rows(start, stop, indptr, indices, cost, lam, gamma, log_p, sums, mixed):
    """Fill log P, and the row sums of P and of P log P."""
    for i in range(start, stop):
        sums[i] = 0.0
        mixed[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            value = min((lam[i] + lam[j] - 2.0 * cost[e]) / (gamma[i] + gamma[j]), _LARGEST_LOG)
            log_p[e] = value
            p = np.exp(value)
            sums[i] += p
            mixed[i] += p * value


@jit
def log_sum_rows(start, stop, indptr, indices, cost, lam, gamma, log_sums):
    """Fill the logarithms of the row sums of P, which may overflow or underflow."""
    for i in range(start, stop):
        largest, total = -np.inf, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            value = (lam[i] + lam[j] - 2.0 * cost[e]) / (gamma[i] + gamma[j])
            if value > largest:
                total *= np.exp(largest - value)
                largest = value
            total += np.exp(value - largest)
        log_sums[i] = largest + np.log(total)


@jit
def curvature_rows(start, stop, indptr, indices, log_p, gamma, own):
    """Fill the second derivatives of the dual in λ_i and γ_i: in λ twice, in both, in γ twice."""
    for i in range(start, stop):
        own[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            weight = np.exp(log_p[e]) / (gamma[i] + gamma[indices[e]])
            own[i, 0] += weight
            own[i, 1] -= weight * log_p[e]
            own[i, 2] += weight * log_p[e] ** 2


@jit
def multiply_curvature_rows(start, stop, indptr, indices, log_p, gamma, d_lam, d_gamma, product):
    """Fill the product of the dual's second derivatives with a change of λ and γ."""
    for i in range(start, stop):
        product[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            weight = np.exp(log_p[e]) / (gamma[i] + gamma[j])
            change = d_lam[i] + d_lam[j] - log_p[e] * (d_gamma[i] + d_gamma[j])
            product[i, 0] += weight * change
            product[i, 1] -= weight * log_p[e] * change
