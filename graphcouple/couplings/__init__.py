"""Objectives on an embedding: how well two graph laws agree."""

from graphcouple.couplings._base import Objective
from graphcouple.couplings.cross_entropy import CrossEntropy

__all__ = ["CrossEntropy", "Objective"]
