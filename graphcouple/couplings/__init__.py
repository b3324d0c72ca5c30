"""Objectives on an embedding: how well two graph laws agree."""

from graphcouple.couplings._base import Objective
from graphcouple.couplings.cross_entropy import CrossEntropy
from graphcouple.couplings.effective import EffectiveCrossEntropy
from graphcouple.couplings.hierarchical import ComponentCrossEntropy
from graphcouple.couplings.precision import PrecisionCrossEntropy

__all__ = ["ComponentCrossEntropy", "CrossEntropy", "EffectiveCrossEntropy", "Objective", "PrecisionCrossEntropy"]
