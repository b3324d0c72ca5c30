"""Pictures of embeddings by matplotlib (the extra ``plot``), and interactive maps by bokeh."""

from graphcouple.plotting._animation import Recorder
from graphcouple.plotting._diagrams import plot_eigenvalues, plot_front, plot_loss, plot_preservation
from graphcouple.plotting._graph import plot_graph, plot_uncertainty
from graphcouple.plotting._grid import plot_grid
from graphcouple.plotting._interactive import Map, interactive
from graphcouple.plotting._scatter import plot, plot_class_means, plot_density
from graphcouple.plotting._style import PALETTE, require_matplotlib

__all__ = [
    "PALETTE", "Map", "Recorder", "interactive", "plot", "plot_class_means", "plot_density", "plot_eigenvalues",
    "plot_front", "plot_graph", "plot_grid", "plot_loss", "plot_preservation", "plot_uncertainty",
    "require_matplotlib",
]  # fmt: skip
