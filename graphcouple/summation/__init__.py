"""Sums over pairs of points: one N-body sum, and several algorithms for it."""

from graphcouple.summation.accuracy import AccuracyWarning
from graphcouple.summation.auto import Auto
from graphcouple.summation.barnes_hut import BarnesHut
from graphcouple.summation.base import SUMMATIONS, Summation, as_summation, names, register
from graphcouple.summation.directions import edge_product
from graphcouple.summation.edges import EdgeSum
from graphcouple.summation.exact import Exact
from graphcouple.summation.fields import ExactField, Field
from graphcouple.summation.particle_mesh import MESH_FROM, ParticleMesh
from graphcouple.summation.radials import (
    EdgeProbability,
    KernelValue,
    LogEdgeProbability,
    LogKernel,
    LogOnePlusKernel,
    RadialFunction,
)

__all__ = [
    "MESH_FROM", "SUMMATIONS", "AccuracyWarning", "Auto", "BarnesHut", "EdgeProbability", "EdgeSum", "Exact",
    "ExactField", "Field", "KernelValue", "LogEdgeProbability", "LogKernel", "LogOnePlusKernel", "ParticleMesh",
    "RadialFunction", "Summation", "as_summation", "edge_product", "names", "register",
]  # fmt: skip
