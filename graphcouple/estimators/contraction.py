"""LaptSNE: t-SNE with a term that draws clusters together."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sklearn.utils._param_validation import StrOptions

from graphcouple.couplings import SpectralContraction
from graphcouple.couplings.base import parts_of
from graphcouple.couplings.contraction import LaplacianEigenvalues, input_eigenvalues
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_0, AT_LEAST_1
from graphcouple.estimators.carry_out import Result
from graphcouple.estimators.sentence import Sentence
from graphcouple.estimators.sne import TSNE
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Student
from graphcouple.optimize import EXAGGERATION_ITERATIONS, Exaggeration, MiniBatches, MomentumGains


@estimator
class LaptSNE(TSNE):
    """t-SNE with Laplacian contraction: clusters are drawn together, and apart from each other.

    The objective is t-SNE's plus weight · n times the sum of the `n_clusters` smallest eigenvalues of the normalised
    Laplacian of the embedding's Student kernel matrix. It is t-SNE with the term `SpectralContraction`, which any other
    estimator takes as well.

    {parameters}

    {attributes}
    n_clusters_ : int
        The number of eigenvalues in the term.
    eigenvalues_ : ndarray of shape (min(31, n_samples),)
        Computed on access: the smallest eigenvalues of the Laplacian of the *input's* graph, whose gaps suggest
        numbers of clusters; see `graphcouple.plotting.plot_eigenvalues`.

    References
    ----------
    Sun, Han and Fan (2022), Laplacian-based cluster-contractive t-SNE.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> laptsne = gc.LaptSNE(n_clusters=3, random_state=0).fit(X)
    >>> laptsne.embedding_.shape
    (150, 2)
    """

    n_clusters: Any = parameter(
        default="auto",
        kind='int or "auto"',
        doc='Number of eigenvalues, about the number of clusters. "auto": the last large gap of `eigenvalues_`.',
        checks=[AT_LEAST_1, StrOptions({"auto"})],
    )
    weight: float = parameter(default=0.3, kind="float", doc="λ, the weight of the contraction.", checks=[AT_LEAST_0])
    batch_size: int | None = parameter(
        default=None,
        doc="Number of points that move together, with their neighbours; see `MiniBatches`. Their exaggeration is "
        'constant, 12 if it is "auto", for 150 iterations or three quarters of a shorter run. None: all, by L-BFGS.',
        checks=[AT_LEAST_1, None],
    )
    perplexity: Any = parameter(default=25.0)
    init: Any = parameter(default="spectral")

    def _optimizer(self) -> Any:
        if self.batch_size is None:
            return super()._optimizer()
        factor = 12.0 if self.early_exaggeration == "auto" else self.early_exaggeration
        # The contraction waits until exaggeration ends.
        most = EXAGGERATION_ITERATIONS if self.max_iter == "auto" else 3 * self.max_iter // 4
        schedule = Exaggeration(factor, min(most, EXAGGERATION_ITERATIONS))
        return MiniBatches(self.batch_size, descent=MomentumGains(self.learning_rate, exaggeration=schedule))

    @property
    def sentence(self) -> Sentence:
        contraction = SpectralContraction(Student(self.dof), self.n_clusters, self.weight)
        return super().sentence.replace(terms=(*self.terms, contraction))

    def _keep(self, result: Result, dtype: Any) -> None:
        super()._keep(result, dtype)
        parts = (part for _, term in result.part.terms for part in parts_of(term))
        # The method adds its own term after the user's terms.
        *_, contraction = (part for part in parts if isinstance(part, LaplacianEigenvalues))
        self.n_clusters_: int = contraction.n_eigenvalues
        self.__dict__.pop("eigenvalues_", None)

    @cached_property
    def eigenvalues_(self) -> FloatArray:
        """The smallest eigenvalues of the normalised Laplacian of the input's graph."""
        return input_eigenvalues(self.posterior_)
