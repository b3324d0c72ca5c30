"""The SNE family: prior D given the input; D (SNE) or E (symmetric SNE, t-SNE) given the embedding."""

from __future__ import annotations

from graphcouple.couplings import Coupling, CrossEntropyCoupling
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.preset import PerplexityPreset
from graphcouple.kernels import Gaussian, Student
from graphcouple.laws import GraphModel
from graphcouple.laws.priors import FixedEdges, UnitOutDegree


@estimator
class SNE(PerplexityPreset):
    """Stochastic neighbor embedding: prior D on both sides, Gaussian kernels.

    Each row of the embedding's law is normalised separately, so repulsion is local to each
    point: S_i = Σ_j k(d²_ij). `kl_divergence_` is the mean divergence of the rows.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    Hinton and Roweis (2002), Stochastic neighbor embedding; graph-coupling paper,
    section 3.1 (the pair D–D).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.SNE(perplexity=20, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    def _latent_law(self) -> GraphModel:
        return GraphModel(Gaussian(), UnitOutDegree())


@estimator
class SymmetricSNE(PerplexityPreset):
    """Symmetric SNE: prior D given the input, E given the embedding, Gaussian kernels.

    The embedding's law is normalised over all pairs at once. With a Student latent
    kernel instead of the Gaussian it is t-SNE. `kl_divergence_` is that of joint probabilities.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    van der Maaten and Hinton (2008), Visualizing data using t-SNE, section 3.1; graph-coupling
    paper, section 3.1 (the pair D–E).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.SymmetricSNE(perplexity=20, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    def _latent_law(self) -> GraphModel:
        return GraphModel(Gaussian(), FixedEdges())


@estimator
class TSNE(PerplexityPreset):
    """t-SNE: prior D given the input, E given the embedding, Gaussian and Student kernels.

    The loss is n times t-SNE's cross-entropy of joint probabilities; `kl_divergence_` is on the usual scale, as
    scikit-learn reports it, and without exaggeration. Other programs always restrict the input's graph to a few
    neighbours; this one uses every pair of up to 2,000 points.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    References
    ----------
    van der Maaten and Hinton (2008), Visualizing data using t-SNE; graph-coupling paper, section 3.1 (the pair D–E).
    Böhm, Berens and Kobak (2022), Attraction-repulsion spectrum in neighbor embeddings, for `exaggeration`.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> tsne = gc.TSNE(perplexity=20, random_state=0).fit(X)
    >>> tsne.embedding_.shape
    (150, 2)
    >>> tsne.kl_divergence_ < 0.25
    True
    """

    dof: float = parameter(default=1.0)
    exaggeration: float = parameter(default=1.0)

    def _latent_law(self) -> GraphModel:
        return GraphModel(Student(self.dof), FixedEdges())

    def _coupling(self) -> Coupling:
        return CrossEntropyCoupling(float(self.exaggeration))
