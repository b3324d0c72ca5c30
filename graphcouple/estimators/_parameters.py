"""Parameters of estimators, declared once: default, check and documentation.

An estimator is a class whose fields are its parameters. `estimator` turns it into a dataclass, so signatures, ``help``
and type checkers show every parameter. It also collects the checks for scikit-learn and writes the "Parameters" section
of the docstring. `graphcouple.estimators._vocabulary.VOCABULARY` holds the usual meaning of each parameter name.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import textwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform

from sklearn import config_context
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._metadata_requests import RequestMethod
from sklearn.utils._param_validation import validate_parameter_constraints

from graphcouple._support.validation import takes_weights
from graphcouple.estimators._peers import why_unknown
from graphcouple.estimators._vocabulary import VOCABULARY, Word

T = TypeVar("T", bound=type)


class _Brief(RequestMethod):
    """A method that chooses metadata, with one line in place of the forty of scikit-learn."""

    def __get__(self, instance: Any, owner: type) -> Any:
        bound = super().__get__(instance, owner)
        bound.__doc__ = "Choose the metadata that a pipeline passes on; see scikit-learn's metadata routing."
        return bound


def _whole(fit: Any) -> Any:
    """Return the method `fit`, which leaves an earlier fit as it was if it fails or is interrupted."""

    def fitted(estimator: Any) -> dict[str, Any]:
        # Other attributes are parameters, or the user's own.
        return {name: value for name, value in vars(estimator).items() if name.startswith("_") or name.endswith("_")}

    weighable = takes_weights(fit)

    @functools.wraps(fit)
    def fit_or_restore(self: Any, *arguments: Any, **options: Any) -> Any:
        if not weighable and options.pop("sample_weight", None) is not None:
            raise TypeError(f"{type(self).__name__} takes no sample weights: it counts each row once. Repeat rows.")
        before = fitted(self)
        try:
            return fit(self, *arguments, **options)
        except BaseException:
            for name in fitted(self).keys() - before.keys():
                del vars(self)[name]
            vars(self).update(before)
            raise

    return fit_or_restore


def _of_arrays(method: Any) -> Any:
    """Return a method in which estimators of other libraries give arrays, whatever output scikit-learn is set to."""
    known = inspect.signature(method).parameters
    takes_others = any(each.kind is each.VAR_KEYWORD for each in known.values())

    @functools.wraps(method)
    def given_arrays(self: Any, *arguments: Any, **options: Any) -> Any:
        if not takes_others and (unknown := [name for name in options if name not in known]):
            name = f"{type(self).__name__}.{method.__name__}"
            raise TypeError(f"{name} has no argument {unknown[0]!r}; it has {', '.join([*known][1:])}.")
        with config_context(transform_output="default"):
            return method(self, *arguments, **options)

    return given_arrays


if TYPE_CHECKING:

    class ScikitTransformer:
        """The methods of scikit-learn's base classes, which are untyped and hide constructors from type checkers."""

        def __init_subclass__(cls, **options: Any) -> None: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
        def get_feature_names_out(self, input_features: Any = None) -> Any: ...
        def _validate_params(self) -> None: ...
        def _flat_params(self) -> dict[str, Any]: ...

        _options: ClassVar[dict[str, Option]]

        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_inner(self) -> str: ...

else:

    class ScikitTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
        """A transformer with scikit-learn's conventions, whose features are named after its class."""

        _options: ClassVar[dict[str, Option]] = {}

        def __init_subclass__(cls, **options: Any) -> None:
            # Only the frame that scikit-learn puts around a result is the user's choice.
            for name in ("fit", "transform", "update"):
                if isinstance(method := vars(cls).get(name), FunctionType):
                    setattr(cls, name, _of_arrays(method))
            super().__init_subclass__(**options)
            for name, method in list(vars(cls).items()):
                if isinstance(method, RequestMethod):
                    setattr(cls, name, _Brief(method.name, method.keys))
            if "fit" in vars(cls):
                cls.fit = _whole(cls.fit)

        def set_params(self, **params: Any) -> Self:
            """Set parameters, and options of a group by their own name or as ``run__callback``."""
            names = [*self._get_param_names(), *self._options]
            for name in params:
                if name.partition("__")[0] not in names:
                    raise ValueError(why_unknown(type(self).__name__, name, names))
            return super().set_params(**_grouped(self, params))

        def _flat_params(self) -> dict[str, Any]:
            """Return the parameters by name, with the options of groups in place of the groups."""
            options = {name: getattr(self, name) for name in self._options}
            groups = {each.group for each in self._options.values()}
            own = {name: value for name, value in self.get_params(deep=False).items() if name not in groups}
            return options | own

        def _validate_params(self) -> None:
            super()._validate_params()
            checks = {name: VOCABULARY[name].checks for name in self._options}
            validate_parameter_constraints(checks, {name: getattr(self, name) for name in checks}, type(self).__name__)


# Columns of a parameter's text: indented twice by `help`, lines end before column 120.
_WIDTH = 108
RUN_OPTIONS = ("terms", "unique", "n_landmarks", "transform_method", "random_state", "n_jobs", "verbose", "run")
"""Parameters that every coupling estimator has."""


class Option:
    """An option of the parameter `group`: it is read, set and passed to the constructor like a parameter.

    The group is a frozen dataclass of the type `kind`; None stands for all its defaults.
    """

    def __init__(self, group: str, kind: type) -> None:
        self.group, self.kind = group, kind

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        return getattr(getattr(estimator, self.group, None) or self.kind, self.name)

    def __set__(self, estimator: Any, value: Any) -> None:
        setattr(estimator, self.group, self.changed(getattr(estimator, self.group), value))

    def changed(self, group: Any, value: Any) -> Any:
        """Return a copy of the group with this option replaced; None if all have their defaults."""
        replaced = dataclasses.replace(self.kind() if group is None else group, **{self.name: value})
        return None if replaced == self.kind() else replaced


def option(group: str, kind: type, *, default: Any) -> Any:
    """Declare an option of a group; see `Option`. Type checkers read the default here."""
    return Option(group, kind)


def _grouped(owner: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of an estimator, or of its class, with options in their groups."""
    params = dict(params)
    for name, each in owner._options.items():
        for key in (name, f"{each.group}__{name}"):
            if key in params:
                params[each.group] = each.changed(params.get(each.group, getattr(owner, each.group)), params.pop(key))
    return params


def parameter(
    *,
    default: Any = dataclasses.MISSING,
    kind: str | None = None,
    doc: str | None = None,
    checks: Any = None,
    like: str | None = None,
    kw_only: bool = True,
) -> Any:
    """Declare a parameter of an estimator: its type in words, what it does, and accepted values as scikit-learn checks.

    Anything left out comes from `VOCABULARY`, by its own name or by `like`. Without a default it is required.
    """
    declared = {"kind": kind, "doc": doc, "checks": checks, "like": like}
    metadata = {name: value for name, value in declared.items() if value is not None}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=metadata)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter, option))
def estimator(cls: T) -> T:
    options = {name: value for name, value in vars(cls).items() if isinstance(value, Option)}
    for name in options:
        # For type checkers alone it is a parameter.
        del cls.__annotations__[name]
    made: Any = dataclasses.dataclass(eq=False, repr=False)(cls)
    made._options = made._options | options
    words = {field.name: _word(field) for field in dataclasses.fields(made)}
    made._parameter_constraints = {name: word.checks for name, word in words.items()}
    made.__doc__ = documented(cls.__doc__ or "", dataclasses.fields(made), words)
    construct, names = made.__init__, [*words, *made._options]

    # The constructor takes options of a group too, and says what a parameter of another library is called here.
    @functools.wraps(construct)
    def __init__(self: Any, *args: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in names:
                raise TypeError(why_unknown(type(self).__name__, name, names))
        construct(self, *args, **_grouped(made, parameters))

    made.__init__ = __init__
    return made


def _word(field: Any) -> Word:
    declared = dict(field.metadata)
    usual = VOCABULARY.get(declared.pop("like", field.name))
    # By default, the annotation gives the type in words.
    plain = field.type.replace(" | None", ", optional")
    return Word(**{"kind": plain, **declared}) if usual is None else usual._replace(**declared)


def documented(template: str, fields: tuple[Any, ...], words: dict[str, Word]) -> str:
    """Return the docstring with its sections {parameters} and {attributes} filled in."""
    entries = ["Parameters\n----------"]
    # Parameters that define the method come first, run options last.
    for field in sorted(fields, key=lambda field: field.name in RUN_OPTIONS):
        kind, doc, _ = words[field.name]
        optional = field.default is dataclasses.MISSING or field.default is None
        default = f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
        head = f"{field.name} : {kind}{'' if optional else f', default={default}'}"
        entries.append(head + "\n" + textwrap.indent(textwrap.fill(doc, _WIDTH), "    "))
    # Python 3.13 takes the indentation off docstrings by itself.
    text = inspect.cleandoc(template).replace("{parameters}", "\n".join(entries))
    return text.replace("{attributes}", _ATTRIBUTES.strip("\n"))


_ATTRIBUTES = """
Attributes
----------
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
    Why the run ended: "settled: ..." or "all ... steps taken" for success, "stopped at max_iter=...", by how
    much the loss still fell, "stopped by the callback ...", "stopped: no lower loss ...", "interrupted ...",
    "collapsed: ...", or "all points are held" after an `update` that moved none.
"""
