"""Laws of hidden graphs: a kernel, a prior and a bandwidth."""

from graphcouple.laws.bandwidths import (
    Bandwidth,
    ConstantBandwidth,
    LeaveOneOut,
    LocalConnectivity,
    Perplexity,
    SelfTuning,
)
from graphcouple.laws.community import Communities, CommunityLaw, communities
from graphcouple.laws.diffused import DiffusedLaw
from graphcouple.laws.given import ConditionedLaw, GraphLaw, NewEdges
from graphcouple.laws.mixture import GraphMixture
from graphcouple.laws.model import GraphModel
from graphcouple.laws.quadratic import QuadraticTransport
from graphcouple.laws.symmetric_entropic import SymmetricEntropic
from graphcouple.summation.curved import Hyperbolic, Space, Spherical

__all__ = [
    "Bandwidth", "Communities", "CommunityLaw", "ConditionedLaw", "ConstantBandwidth", "DiffusedLaw", "GraphLaw",
    "GraphMixture", "GraphModel", "Hyperbolic", "LeaveOneOut", "LocalConnectivity", "NewEdges", "Perplexity",
    "QuadraticTransport", "SelfTuning", "Space", "Spherical", "SymmetricEntropic", "communities",
]  # fmt: skip
