"""Loops over the connected components of many sampled graphs, held as membership vectors."""

import numpy as np

from graphcouple._numba.jit import jit


@jit
def sum_component_means(start, stop, labels, bounds, V, out):
    """Add to out[b] the component means of V over the graphs bounds[b] to bounds[b + 1], for b from start to stop.

    Row i of a graph's component means is the mean of V over the component that contains i.
    """
    n, width = V.shape
    for b in range(start, stop):
        for s in range(bounds[b], bounds[b + 1]):
            n_components = 0
            for i in range(n):
                n_components = max(n_components, labels[s, i] + 1)
            sums = np.zeros((n_components, width))
            counts = np.zeros(n_components)
            for i in range(n):
                c = labels[s, i]
                counts[c] += 1.0
                for k in range(width):
                    sums[c, k] += V[i, k]
            for c in range(n_components):
                for k in range(width):
                    sums[c, k] /= counts[c]
            for i in range(n):
                c = labels[s, i]
                for k in range(width):
                    out[b, i, k] += sums[c, k]


@jit
def count_together(start, stop, labels, rows, columns, out):
    """Count, for the pairs start to stop, the graphs with both ends in one component."""
    for s in range(labels.shape[0]):
        for e in range(start, stop):
            if labels[s, rows[e]] == labels[s, columns[e]]:
                out[e] += 1
