"""Parameters of estimators, declared once: default, check, and the words of the documentation.

An estimator is a class of fields. `estimator` makes its constructor of them, as a dataclass has it, so that signatures,
``help`` and type checkers see every parameter in full; it gathers the checks for scikit-learn, and writes the section
"Parameters" of the docstring. What a parameter of some name means as a rule stands in `VOCABULARY`.
"""

from __future__ import annotations

import dataclasses
import textwrap
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from graphcouple.couplings import Coupling
from graphcouple.laws import GraphModel
from graphcouple.laws.priors import GraphPosterior, GraphPrior
from graphcouple.optimize import Descent, Optimizer
from graphcouple.summation import Summation

T = TypeVar("T", bound=type)

if TYPE_CHECKING:

    class ScikitTransformer:
        """What scikit-learn's bases give; to a type checker they are unknown, and would hide every constructor."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
        def get_feature_names_out(self, input_features: Any = None) -> Any: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...

else:

    class ScikitTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
        """A transformer with scikit-learn's conventions, whose features are named after its class."""


_WIDTH = 108
AT_LEAST_1 = Interval(Integral, 1, None, closed="left")
ABOVE_0 = Interval(Real, 0, None, closed="neither")


class Word(NamedTuple):
    """What a parameter is: its type in words, what it does, and what scikit-learn is to accept."""

    kind: str
    doc: str
    checks: Any


VOCABULARY: dict[str, Word] = {
    "callback": Word(
        "callable, optional",
        "Called every 10 iterations as ``callback(iteration, loss, Z)``; a true value stops.",
        [None, callable],
    ),
    "center": Word("bool", "Subtract the columns' means first (implicitly, for sparse X).", ["boolean"]),
    "coupling": Word(
        '{"cross-entropy", "effective"} or Coupling',
        "How the two laws are compared: `CrossEntropyCoupling`, or `EffectiveCoupling`, what UMAP and LargeVis "
        "minimise in expectation.",
        [str, Coupling],
    ),
    "dof": Word(
        "float",
        "Degrees of freedom of the embedding's Student kernel; below 1 for heavier tails and finer clusters.",
        [ABOVE_0],
    ),
    "early_exaggeration": Word(
        'float or "auto"',
        "Weight of the attraction in the first 150 iterations (in the first half of a run of fewer than 300); 1 for "
        'none. "auto" is 12 for the cross-entropy and 1 for the effective one. Sampling has none.',
        [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
    ),
    "epsilon": Word('"auto" or float', "ε; see `ComponentCrossEntropy`.", [StrOptions({"auto"}), ABOVE_0]),
    "init": Word(
        '{"ccpca", "pca", "random", "spectral"} or array of shape (n_samples, n_components)',
        "The start: principal components of the averaged means of the input graph's connected components (see "
        "`CCPCA`), principal components of X, Gaussian noise, or Laplacian eigenvectors of the input's graph; scaled "
        "to the standard deviation that suits the latent prior (1e-4 for D and E, 10 for B). An array is used as it "
        "is.",
        [str, "array-like"],
    ),
    "input": Word(
        "GraphModel, GraphPosterior, or a graph",
        "The law of the input's graph; its posterior, made beforehand; or a graph of your own (networkx, igraph, a "
        "sparse matrix or a square array of weights), which stands for the law of the latent prior's kind whose mean "
        "it is (see `GraphPrior.around`).",
        "no_validation",
    ),
    "latent": Word("GraphModel", "The law of the embedding's graph: kernel and prior.", [GraphModel]),
    "learning_rate": Word(
        'float or "auto"',
        "In scikit-learn's convention; see `MomentumGains`. Of sampling, in umap-learn's; see `NegativeSampling`.",
        [StrOptions({"auto"}), ABOVE_0],
    ),
    "local_connectivity": Word(
        "float", "Nearest neighbours that count as connected; see `LocalConnectivity`.", [ABOVE_0]
    ),
    "max_iter": Word(
        'int or "auto"',
        'Iterations, or epochs of sampling, at most; "auto" is 550 for latent priors D and E, and for B 500 up to '
        "10,000 points and 150 beyond.",
        [StrOptions({"auto"}), AT_LEAST_1],
    ),
    "metric": Word("str", 'The distance of the points, or "precomputed".', [str]),
    "min_dist": Word(
        "float",
        "Distance below which points of the embedding count as connected; at most `spread`.",
        [Interval(Real, 0, None, closed="left")],
    ),
    "n_components": Word("int", "Dimension of the embedding.", [AT_LEAST_1]),
    "n_graphs": Word("int", "Graphs that the reported loss is averaged over.", [AT_LEAST_1]),
    "n_jobs": Word(
        "int or None, optional",
        "Threads; None means every core. The embedding does not depend on it.",
        [None, Integral],
    ),
    "n_neighbors": Word(
        'int, None or "auto"',
        "Neighbours of each point that can carry its edge, the point itself not counted; None means all pairs. "
        '"auto" is all pairs up to 2,000 points, and three times the perplexity beyond.',
        [StrOptions({"auto"}), None, AT_LEAST_1],
    ),
    "n_samples": Word(
        'int or "auto"',
        'Graphs drawn. "auto" draws until `relative_error_` is at most `tol`, or 2,000.',
        [StrOptions({"auto"}), AT_LEAST_1],
    ),
    "negative_sample_rate": Word(
        "float",
        'How many points repel for each edge that attracts; a whole number for "sampled". Not used if '
        '``repulsion="full"``.',
        [ABOVE_0],
    ),
    "nu_x": Word("float, optional", "ν_X, at least n; n by default.", [None, ABOVE_0]),
    "nu_z": Word("float, optional", "ν_Z, at least n; ν_X + p − q by default, which makes γ = 1.", [None, ABOVE_0]),
    "optimizer": Word(
        '"auto" or Optimizer',
        '"auto" is `Descent`, gradient descent with momentum whose settings suit the laws and the coupling.',
        [StrOptions({"auto"}), Optimizer, Descent],
    ),
    "perplexity": Word(
        "float",
        "Effective number of neighbours of each point; above 1 and below the number of neighbours.",
        [ABOVE_0],
    ),
    "prior": Word(
        '{"D", "B", "E"} or GraphPrior',
        "The law's prior: one edge out of every node, independent edges, or as many edges as nodes.",
        [str, GraphPrior],
    ),
    "random_state": Word(
        "int, RandomState or None, optional",
        "Seeds the start, and what the optimizer and the terms draw.",
        ["random_state"],
    ),
    "repulsion": Word(
        '{"effective", "full", "sampled"}',
        'What repels. "sampled": points drawn at random for each edge drawn, as in the original program '
        '(`NegativeSampling`). "effective": all points, by the weights that sampling gives them in expectation '
        '(`EffectiveCrossEntropy`); nothing is random. "full": all points with equal weights, the cross-entropy as '
        "the papers state it (`CrossEntropy`), whose repulsion is far stronger.",
        [StrOptions({"effective", "full", "sampled"})],
    ),
    "repulsion_strength": Word("float", 'Weight of their repulsion: γ. Not used if ``repulsion="full"``.', [ABOVE_0]),
    "scale": Word(
        '"free" or float',
        'The embedding\'s length for a unit of length of X; "free" compares shapes only. See `ComponentCrossEntropy`.',
        [StrOptions({"free"}), ABOVE_0],
    ),
    "spread": Word("float", "Scale of the embedding's distances.", [ABOVE_0]),
    "strategy": Word(
        '{"joint", "sequential"}',
        '"sequential" is the paper\'s: global structure first, by ccPCA, then the plain method from there; `weight` '
        "and what follows are then not used.",
        [StrOptions({"joint", "sequential"})],
    ),
    "summation": Word(
        '{"auto", "barnes_hut", "exact", "particle_mesh"} or Summation',
        'How sums over all pairs of the embedding are done; "auto" is exact for few points and fast for many, see '
        "`graphcouple.summation.Auto`.",
        [str, Summation],
    ),
    "svd_solver": Word(
        '{"auto", "full", "randomized"}',
        "See `graphcouple.components.component_pca`.",
        [StrOptions({"auto", "full", "randomized"})],
    ),
    "terms": Word(
        "sequence of Term",
        "What is added to the coupling, such as `ComponentMeans`; each has a weight of its own.",
        ["array-like", tuple],
    ),
    "tol": Word("float", 'For "auto".', [ABOVE_0]),
    "verbose": Word("int", "Above 0, show a progress bar on a terminal.", ["verbose"]),
    "weight": Word(
        "float",
        "λ: 0 is the plain method; the larger, the closer the arrangement of the components is to ccPCA's. Above about "
        '100 the steps that J allows become small ones for H: give the estimator ``init="ccpca"``, and more '
        "iterations.",
        [Interval(Real, 0, None, closed="left")],
    ),
}
"""What parameters of these names mean, where an estimator does not say otherwise."""

POSTERIOR_OR_MODEL = [None, GraphModel, GraphPosterior]


def parameter(
    *,
    default: Any = dataclasses.MISSING,
    kind: str | None = None,
    doc: str | None = None,
    checks: Any = None,
    kw_only: bool = True,
) -> Any:
    """Declare a parameter of an estimator; what is left out is taken from `VOCABULARY`.

    Parameters
    ----------
    default : any, optional
        Required without one.
    kind : str, optional
        Its type in words, as numpydoc has it.
    doc : str, optional
        What it does.
    checks : list or "no_validation", optional
        What it may be, in scikit-learn's terms.
    kw_only : bool, default=True
        Whether it is given by name only.
    """
    said = {"kind": kind, "doc": doc, "checks": checks}
    return dataclasses.field(
        default=default, kw_only=kw_only, metadata={k: v for k, v in said.items() if v is not None}
    )


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
def estimator(cls: T) -> T:
    """Make an estimator of a class of parameters: constructor, checks, and documentation."""
    made: Any = dataclasses.dataclass(eq=False, repr=False)(cls)
    words = {field.name: _word(field) for field in dataclasses.fields(made)}
    made._parameter_constraints = {name: word.checks for name, word in words.items()}
    made.__doc__ = _documented(cls.__doc__ or "", dataclasses.fields(made), words)
    return made


def _word(field: Any) -> Word:
    said = field.metadata
    return VOCABULARY[field.name]._replace(**said) if field.name in VOCABULARY else Word(**said)


def _documented(template: str, fields: tuple[Any, ...], words: dict[str, Word]) -> str:
    """Return the docstring with the parameters in the place of the word {parameters}, and shared attributes."""
    entries = []
    for field in fields:
        kind, doc, _ = words[field.name]
        optional = field.default is dataclasses.MISSING or field.default is None
        head = f"    {field.name} : {kind}{'' if optional else f', default={_shown(field.default)}'}"
        entries.append(head + "\n" + textwrap.indent(textwrap.fill(doc, _WIDTH), "        "))
    text = template.replace("    {parameters}", "\n".join(entries))
    return text.replace("    {attributes}", textwrap.indent(_ATTRIBUTES.strip("\n"), "    "))


def _shown(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


_ATTRIBUTES = """
embedding_ : ndarray of shape (n_samples, n_components)
posterior_ : GraphPosterior
    The law of the input's graph.
loss_ : float
    The objective at the end, in nats, without its constant: the coupling plus its weighted terms.
coupling_loss_ : float
    The coupling's share of it.
term_losses_ : list of float
    The value of each term, not weighted, in the order they were given.
loss_history_ : ndarray of shape (n_checks,)
    The objective over time, from the start to the end.
loss_iterations_ : ndarray of shape (n_checks,)
    The iterations of `loss_history_`.
kl_divergence_ : float
    For the pairs of priors D–D, D–E and E–E, the divergence of edge probabilities; see
    `CrossEntropy.kl_divergence`.
n_iter_ : int
    Iterations done.
stop_reason_ : str
    What ended the run: a convergence test, `max_iter`, or the callback; or that the embedding has collapsed.
"""
