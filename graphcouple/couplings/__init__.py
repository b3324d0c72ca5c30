"""Objectives on an embedding: couplings of two graph laws, and terms that can be added."""

from graphcouple.couplings.anchors import AnchorEnergy, Anchors, Held
from graphcouple.couplings.base import Objective, WeightedSum
from graphcouple.couplings.component_means import ComponentCrossEntropy
from graphcouple.couplings.cross_entropy import CrossEntropy
from graphcouple.couplings.effective import ChargedPartition, EffectiveCrossEntropy
from graphcouple.couplings.pair import EdgeEnergy, LogPartition, PairCoupling
from graphcouple.couplings.precision import PrecisionCrossEntropy
from graphcouple.couplings.recipes import (
    ComponentMeans,
    Coupling,
    CrossEntropyCoupling,
    EffectiveCoupling,
    Problem,
    Term,
)

__all__ = [
    "AnchorEnergy",
    "Anchors",
    "ChargedPartition",
    "ComponentCrossEntropy",
    "ComponentMeans",
    "Coupling",
    "CrossEntropy",
    "CrossEntropyCoupling",
    "EdgeEnergy",
    "EffectiveCoupling",
    "EffectiveCrossEntropy",
    "Held",
    "LogPartition",
    "Objective",
    "PairCoupling",
    "PrecisionCrossEntropy",
    "Problem",
    "Term",
    "WeightedSum",
]
