"""Parameters of estimators, declared once: default, check and documentation.

An estimator is a class whose fields are its parameters. `estimator` turns it into a dataclass, so signatures, ``help``
and type checkers show every parameter. It also collects the checks for scikit-learn and writes the "Parameters" section
of the docstring. `graphcouple.estimators._vocabulary.VOCABULARY` holds the usual meaning of each parameter name.
"""

from __future__ import annotations

import dataclasses
import functools
import textwrap
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from graphcouple.estimators._peers import why_unknown
from graphcouple.estimators._vocabulary import VOCABULARY, Word

T = TypeVar("T", bound=type)

if TYPE_CHECKING:

    class ScikitTransformer:
        """The methods of scikit-learn's bases, which are untyped and hide every constructor from type checkers."""

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
RUN_OPTIONS = (
    "terms",
    "unique",
    "n_landmarks",
    "transform_method",
    "summation",
    "n_starts",
    "random_state",
    "n_jobs",
    "verbose",
    "callback",
    "warm_start",
    "checkpoint",
    "on_interrupt",
)
"""Parameters that every coupling estimator has."""


def parameter(
    *,
    default: Any = dataclasses.MISSING,
    kind: str | None = None,
    doc: str | None = None,
    checks: Any = None,
    kw_only: bool = True,
) -> Any:
    """Declare a parameter of an estimator; anything left out comes from `VOCABULARY`.

    Parameters
    ----------
    default : any, optional
        Without one, the parameter is required.
    kind : str, optional
        Its type in words, as in numpydoc.
    doc : str, optional
        What it does.
    checks : list or "no_validation", optional
        The accepted values, as scikit-learn constraints.
    kw_only : bool, default=True
        Whether it must be given by name.
    """
    declared = {"kind": kind, "doc": doc, "checks": checks}
    return dataclasses.field(
        default=default, kw_only=kw_only, metadata={k: v for k, v in declared.items() if v is not None}
    )


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
def estimator(cls: T) -> T:
    """Turn a class of parameters into an estimator: add constructor, checks and documentation."""
    made: Any = dataclasses.dataclass(eq=False, repr=False)(cls)
    words = {field.name: _word(field) for field in dataclasses.fields(made)}
    made._parameter_constraints = {name: word.checks for name, word in words.items()}
    made.__doc__ = _documented(cls.__doc__ or "", dataclasses.fields(made), words)
    _name_peers(made, words)
    return made


def _name_peers(made: Any, words: dict[str, Word]) -> None:
    """Let the constructor say what a parameter of another library is called here."""
    construct = made.__init__

    @functools.wraps(construct)
    def __init__(self: Any, *args: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in words:
                raise TypeError(why_unknown(type(self).__name__, name, words))
        construct(self, *args, **parameters)

    made.__init__ = __init__


def _word(field: Any) -> Word:
    declared = field.metadata
    return VOCABULARY[field.name]._replace(**declared) if field.name in VOCABULARY else Word(**declared)


def _documented(template: str, fields: tuple[Any, ...], words: dict[str, Word]) -> str:
    """Return the docstring with {parameters} and {attributes} filled in."""
    entries = []
    # What a method is comes first, options of the run last.
    for field in sorted(fields, key=lambda field: field.name in RUN_OPTIONS):
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
posterior_ : RandomGraph
    The law of the input's graph.
loss_ : float
    The final objective, in nats, without its constant: the coupling plus the weighted terms.
coupling_loss_ : float
    The coupling's part of `loss_`.
term_losses_ : list of float
    The unweighted value of each term, in the order given.
term_weights_ : list of float
    The weight of each term; see `ComponentMeans` for "auto".
loss_history_ : ndarray of shape (n_checks,)
    The objective from the start to the end of the run.
loss_iterations_ : ndarray of shape (n_checks,)
    The iterations of `loss_history_`.
kl_divergence_ : float
    KL divergence of edge probabilities, for the pairs of priors D–D, D–E and E–E; see
    `CrossEntropy.kl_divergence`.
n_iter_ : int
    Number of iterations.
start_losses_ : ndarray of shape (n_starts,)
    The loss at which each start ended.
stop_reason_ : str
    Why the run ended: "settled: ..." or "all ... random steps taken" for success, "stopped at max_iter=...", by how
    much the loss still fell, "stopped by the callback ...", "interrupted ..." or "collapsed: ...".
"""
