"""The SNE family: prior D given the input; D (SNE) or E (t-SNE) given the embedding; SNEkhorn balances both."""

from __future__ import annotations

from graphcouple.couplings import Coupling, CrossEntropyCoupling
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.preset import PerplexityPreset, of_points
from graphcouple.kernels import Gaussian, Kernel, Student
from graphcouple.laws import GraphModel, Perplexity, SymmetricEntropic
from graphcouple.laws.priors import DoublyStochastic, FixedEdges, UnitOutDegree


@estimator
class SNE(PerplexityPreset):
    """Stochastic neighbor embedding: prior D on both sides, Gaussian kernels.

    Each row of the embedding's law is normalised separately, so repulsion is local to each
    point: S_i = Σ_j k(d²_ij). `kl_divergence_` is the mean divergence of the rows.

    {parameters}

    {attributes}

    References
    ----------
    Hinton and Roweis (2002), Stochastic neighbor embedding; graph-coupling paper, section 3.1 (the pair D–D).

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
    kernel instead of the Gaussian it is t-SNE. `kl_divergence_` compares joint probabilities.

    {parameters}

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

    {parameters}

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


@estimator
class SNEkhorn(PerplexityPreset):
    """SNEkhorn: symmetric entropic affinities of the input, a doubly stochastic law of the embedding.

    Every point sends one edge and receives one on average, in the input and in the embedding: no point is a hub, and
    each row of the input has the same perplexity after it is made symmetric, unlike t-SNE's. Each evaluation of the
    loss balances the embedding's law by about eight sums over all pairs, so fits take several times as long as t-SNE's.

    {parameters}

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
        default=30.0, like="perplexity of each point", doc="Perplexity of each row of the input's law."
    )
    latent_kernel: Kernel | None = parameter(
        default=None,
        doc="The embedding's kernel; Gaussian by default. Student() gives t-SNEkhorn.",
        checks=[Kernel, None],
    )

    def _input_law(self) -> GraphModel:
        bandwidth = Perplexity(self.perplexity)
        return SymmetricEntropic(bandwidth=bandwidth, n_neighbors=self.n_neighbors, **of_points(self))

    def _latent_law(self) -> GraphModel:
        return GraphModel(self.latent_kernel or Gaussian(), DoublyStochastic())
