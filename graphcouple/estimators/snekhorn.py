"""SNEkhorn: doubly stochastic laws on both sides."""

from __future__ import annotations

from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import ABOVE_0
from graphcouple.estimators.preset import PerplexityPreset
from graphcouple.kernels import Gaussian, Kernel
from graphcouple.laws import GraphModel, Perplexity, SymmetricEntropic
from graphcouple.laws.priors import DoublyStochastic


@estimator
class SNEkhorn(PerplexityPreset):
    """SNEkhorn: symmetric entropic affinities of the input, a doubly stochastic law of the embedding.

    Every point sends out one edge and receives one on average, in the input and in the embedding: no point is a hub,
    and each row of the input has the same perplexity after it is made symmetric, unlike in t-SNE. Each evaluation of
    the loss balances the embedding's law by some eight sums over all pairs, so a fit takes several times as long as
    t-SNE's.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    Van Assel, Vayer, Flamary and Courty (2023), SNEkhorn: dimension reduction with symmetric entropic affinities.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.SNEkhorn(perplexity=20, max_iter=50, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    perplexity: float = parameter(
        default=30.0, kind="float", doc="Perplexity of each row of the input's law.", checks=[ABOVE_0]
    )
    latent_kernel: Kernel | None = parameter(
        default=None,
        kind="Kernel, optional",
        doc="The embedding's kernel; Gaussian by default. Student() gives t-SNEkhorn.",
        checks=[Kernel, None],
    )

    def _input_law(self) -> GraphModel:
        return SymmetricEntropic(
            bandwidth=Perplexity(self.perplexity),
            n_neighbors=self.n_neighbors,
            metric=self.metric,
            metric_params=self.metric_params,
            target_weight=self.target_weight,
        )

    def _latent_law(self) -> GraphModel:
        return GraphModel(self.latent_kernel or Gaussian(), DoublyStochastic())
