"""A law whose edges lead to where a random walk on another law's graph ends."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from graphcouple._numba.threads import one_blas_thread
from graphcouple._support.validation import check_integer
from graphcouple.graphs import Support, largest_of_rows
from graphcouple.laws.derived import DerivedConditioned, DerivedLaw
from graphcouple.laws.given import GraphLaw, NewEdges
from graphcouple.laws.priors import ONE_EACH, RandomGraph, UnitOutDegree

# Rows that walk at once: their products hold up to a million entries.
_ROWS = 1000


class _Diffused(DerivedConditioned):
    """A diffused law given its points. `inferred` is M, as a csr array."""

    remembers = "steps"

    def posterior(self, n_jobs: int | None = None) -> RandomGraph:
        one = self.part.posterior(n_jobs)
        self.inferred = one.support.to_csr(np.asarray(one.edge_means, dtype=np.float64))
        if one.support.complete:
            with one_blas_thread():
                walked = sp.csr_array(np.linalg.matrix_power(self.inferred.toarray(), self.derived.n_steps))
        else:
            walked = self._walk(self.inferred)
        ends = sp.csr_array(walked - sp.diags_array(walked.diagonal()))
        # Walks that can only return, as between two points, take one step.
        lost = ends.sum(axis=1) <= 0.0
        ends = ends + sp.diags_array(lost.astype(np.float64)) @ self.inferred if lost.any() else ends
        return UnitOutDegree().around(ends)

    def _walk(self, first: sp.csr_array) -> sp.csr_array:
        """Return where walks with this first step end."""
        n, n_edges = self.inferred.shape[0], np.diff(self.inferred.indptr)
        n_kept = self.derived.n_kept or int(n_edges.max())
        # All ends are kept if M holds all pairs, and where one row sets the number and has all ends but its own.
        if n_edges.min() >= n - 1 or (self.derived.n_kept is None and n_kept >= n - 1):
            n_kept = n
        done = []
        for a in range(0, first.shape[0], _ROWS):
            ends = first[a : a + _ROWS]
            for _ in range(self.derived.n_steps - 1):
                ends = sp.csr_array(ends @ self.inferred)
                reached = Support(ends.indptr, ends.indices)
                keep = largest_of_rows(reached, ends.data, n_kept)
                heaviest = reached.select(keep)
                ends = sp.csr_array((ends.data[keep], heaviest.indices, heaviest.indptr), shape=ends.shape)
            done.append(ends)
        return sp.csr_array(sp.vstack(done))

    def _changed(self, edges: NewEdges) -> NewEdges:
        ends = self._walk(edges.normalized())
        # A point that coincides with others stays there.
        stays = sp.diags_array((edges.coincident >= 0).astype(np.float64))
        goes = sp.diags_array((edges.coincident < 0).astype(np.float64))
        total = sp.csr_array(stays @ edges.normalized() + goes @ ends)
        total.eliminate_zeros()
        total.sort_indices()
        return replace(edges, support=Support(total.indptr, total.indices), means=np.asarray(total.data))


@dataclass(frozen=True)
class DiffusedLaw(DerivedLaw):
    """The law of prior D whose edge from a point leads to the end of a random walk of t steps.

    A step from point i leads to j with the probability M_ij, M the mean of a law of prior D. The mean of the diffused
    law is Mᵗ without its diagonal, each row divided by its sum: a walk that ends where it began gives no edge. With
    many steps, edges lead through the whole cluster. A map then keeps more of the large scale, and fewer of the nearest
    neighbours.

    Parameters
    ----------
    law : GraphModel or GraphMixture
        Its priors must be D.
    n_steps : int, default=2
        t.
    n_kept : int, optional
        Each step keeps this many of the likeliest ends of a walk, if edges lead to near neighbours only. The default is
        the number of edges in the longest row of M: for 10,000 digits, this keeps 79 % of the walks after two steps,
        and 47 % after four. If M holds all pairs, all are kept.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range, or a law has another prior; when points have weights.

    References
    ----------
    Coifman and Lafon (2006), Diffusion maps. Moon et al. (2019), Visualizing structure and transitions in
    high-dimensional biological data.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.laws.DiffusedLaw(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)), n_steps=3)
    >>> gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), max_iter=50, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    law: GraphLaw
    n_steps: int = 2
    n_kept: int | None = None

    _conditioned: ClassVar[type[DerivedConditioned]] = _Diffused

    def __post_init__(self) -> None:
        check_integer("n_steps", self.n_steps, 1)
        if self.n_kept is not None:
            check_integer("n_kept", self.n_kept, 1)
        super().__post_init__()
        if any(ONE_EACH not in part.prior.constraints for part in self.parts):
            raise ValueError(f"law must have prior D, whose means are the steps of a random walk, got {self.law}.")

    def __str__(self) -> str:
        return f"{self.n_steps} steps of {self.law}"
