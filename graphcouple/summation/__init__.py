"""How sums over all pairs of points are done: one N-body primitive, several ways to compute it."""

from graphcouple.summation._base import Summation, as_summation, names
from graphcouple.summation.auto import MESH_FROM, Auto
from graphcouple.summation.barnes_hut import BarnesHut
from graphcouple.summation.exact import Exact
from graphcouple.summation.particle_mesh import ParticleMesh

__all__ = ["MESH_FROM", "Auto", "BarnesHut", "Exact", "ParticleMesh", "Summation", "as_summation", "names"]
