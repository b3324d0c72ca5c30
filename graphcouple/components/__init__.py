"""Connected components of posterior graphs: their averaged projection, and ccPCA, the PCA of their means."""

from graphcouple.components.pca import ComponentPCA, component_pca, identity_projection, sampled_pca
from graphcouple.components.projection import AveragedProjection, component_law, sample_components, weak_components

__all__ = [
    "AveragedProjection", "ComponentPCA", "component_law", "component_pca", "identity_projection",
    "sample_components", "sampled_pca", "weak_components",
]  # fmt: skip
