"""Graph priors B, D, E and S: exponential families over graphs, conjugate to the pairwise Markov random field.

A prior with edge prior π turns a log-kernel into the posterior with natural parameter η = log π + log k, in its own
family (graph-coupling paper, definition 2 and proposition 1):

=====  =========================  =========================  ==============================
prior  support                    log-partition A(η)         mean ∂A/∂η
=====  =========================  =========================  ==============================
B      W_ij ∈ {0, 1}              Σ_ij log(1 + e^η_ij)       e^η_ij / (1 + e^η_ij)
D      W_i+ = 1 for every i       Σ_i log Σ_j e^η_ij         e^η_ij / Σ_l e^η_il
E      W_++ = n                   n log Σ_ij e^η_ij          n e^η_ij / Σ_kl e^η_kl
S      W_i+ = 1, E[W_+j] = 1      −2 Σ_i f_i                 e^(η_ij + f_i + f_j), rows sum to 1
=====  =========================  =========================  ==============================
"""

from graphcouple.laws.priors.base import BINARY, N_EDGES, ONE_EACH, PRIORS, GraphPrior, as_prior, register
from graphcouple.laws.priors.binary import Binary, BinaryPosterior
from graphcouple.laws.priors.confined import confined_partition
from graphcouple.laws.priors.doubly_stochastic import BalancedPosterior, DoublyStochastic
from graphcouple.laws.priors.fixed_edges import FixedEdges, FixedEdgesPosterior
from graphcouple.laws.priors.mixture import MixturePosterior
from graphcouple.laws.priors.posterior import GraphPosterior, draw_by_inversion
from graphcouple.laws.priors.random_graph import RandomGraph
from graphcouple.laws.priors.repeated import RepeatedPosterior
from graphcouple.laws.priors.unit_out_degree import UnitOutDegree, UnitOutDegreePosterior

__all__ = [
    "BINARY", "N_EDGES", "ONE_EACH", "PRIORS", "BalancedPosterior", "Binary", "BinaryPosterior", "DoublyStochastic",
    "FixedEdges", "FixedEdgesPosterior", "GraphPosterior", "GraphPrior", "MixturePosterior", "RandomGraph",
    "RepeatedPosterior", "UnitOutDegree", "UnitOutDegreePosterior", "as_prior", "confined_partition",
    "draw_by_inversion", "register",
]  # fmt: skip
