"""Registries of names, which users can add to: summations, priors, starts, scores."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Objects by name. A name is looked up when it is used, so late additions work everywhere.

    Error messages name the argument, `parameter`, and what it may hold besides a name, `alternative`.
    """

    def __init__(self, parameter: str, alternative: str) -> None:
        self.parameter, self.alternative = parameter, alternative
        self._entries: dict[str, T] = {}

    def add(self, name: str, thing: T) -> None:
        """Register an object under a name."""
        self._check(name)
        self._entries[name] = thing

    def _check(self, name: Any) -> None:
        if not isinstance(name, str) or not name:
            remedy = '; write @register("a name")' if callable(name) else ""
            raise TypeError(f"the name of a {self.parameter} must be a string that is not empty, got {name!r}{remedy}.")

    def remove(self, name: str) -> None:
        """Remove a name."""
        self[name]
        del self._entries[name]

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers an object under a name."""
        # A decorator without its name is called with the object, and what it returns takes the object's place.
        self._check(name)

        def remember(thing: T) -> T:
            self.add(name, thing)
            return thing

        return remember

    def names(self) -> list[str]:
        """Return the registered names."""
        return sorted(self._entries)

    def __contains__(self, name: Any) -> bool:
        return isinstance(name, str) and name in self._entries

    def __getitem__(self, name: Any) -> T:
        if name not in self:
            error = ValueError if isinstance(name, str) else TypeError
            raise error(f"{self.parameter} must be one of {self.names()} or {self.alternative}, got {name!r}.")
        return self._entries[name]


METHODS = {
    "tsne": "TSNE",
    "sne": "SNE",
    "symmetric-sne": "SymmetricSNE",
    "largevis": "LargeVis",
    "umap": "UMAP",
    "nc-tsne": "NCTSNE",
    "neg-tsne": "NegTSNE",
    "infonc-tsne": "InfoNCTSNE",
    "snekhorn": "SNEkhorn",
    "localmap": "LocalMAP",
    "cosne": "COSNE",
    "pacmap": "PaCMAP",
    "trimap": "TriMap",
    "laptsne": "LaptSNE",
    "two-kernel-pca": "TwoKernelPCA",
    "two-kernel-lle": "TwoKernelLLE",
    "ccpca": "CCPCA",
    "pca": "PrecisionCoupling",
    "classical-mds": "ClassicalMDS",
    "metric-mds": "MetricMDS",
    "isomap": "Isomap",
    "lle": "LocallyLinearEmbedding",
    "eigenmaps": "LaplacianEigenmaps",
    "diffusion-maps": "DiffusionMaps",
    "phate": "PHATE",
    "kernel-pca": "KernelPCA",
    "autoencoder": "LinearAutoencoder",
    "deep-autoencoder": "Autoencoder",
}
"""The estimator of each method that has a name."""
