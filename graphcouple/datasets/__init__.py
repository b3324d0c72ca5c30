"""Data sets by name, a reader of MNIST's file format, and generators."""

from graphcouple.datasets._generators import make_hierarchical_mixture, make_swiss_roll, make_waveform
from graphcouple.datasets._hierarchies import make_branches, make_cells, make_rings, make_unequal_blobs
from graphcouple.datasets._idx import read_idx
from graphcouple.datasets._load import FETCHED, NAMES, load

__all__ = [
    "FETCHED", "NAMES", "load", "make_branches", "make_cells", "make_hierarchical_mixture", "make_rings",
    "make_swiss_roll", "make_unequal_blobs", "make_waveform", "read_idx",
]  # fmt: skip
