"""How each point rescales its distances."""

from graphcouple.laws.bandwidths.base import Bandwidth, ConstantBandwidth, DistanceRows
from graphcouple.laws.bandwidths.likelihood import LeaveOneOut
from graphcouple.laws.bandwidths.local import LocalConnectivity, SelfTuning
from graphcouple.laws.bandwidths.perplexity import ENTROPY_TOLERANCE, Perplexity

__all__ = [
    "ENTROPY_TOLERANCE", "Bandwidth", "ConstantBandwidth", "DistanceRows", "LeaveOneOut", "LocalConnectivity",
    "Perplexity", "SelfTuning",
]  # fmt: skip
