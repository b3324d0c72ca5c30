"""The methods that a search tries: presets, drawn sentences, a list, or parameters drawn from distributions."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from graphcouple import estimators
from graphcouple._support.registry import METHODS
from graphcouple.couplings import GlobalTerm
from graphcouple.couplings.recipes import COUPLINGS
from graphcouple.estimators.run_control import fingerprint
from graphcouple.graphs import FloatArray
from graphcouple.initializations import STARTS
from graphcouple.kernels import Exponential, Gaussian, Kernel, Odds
from graphcouple.kernels.base import KERNELS
from graphcouple.laws import GraphModel, LocalConnectivity, Perplexity, SelfTuning
from graphcouple.laws.priors import PRIORS
from graphcouple.searches.draws import Draws

# The usual perplexity of t-SNE, and a third and three times of it; then factors of a kernel's numbers, such as degrees
# of freedom. More values would need more fits to compare.
_PERPLEXITIES = (10.0, 30.0, 100.0)
_FACTORS = (0.5, 1.0, 2.0)

_IN_WORDS = "{input prior}, {bandwidth} → {latent prior}, {latent kernel}; {coupling}; {term}; {start}"

# Functions show where they are in memory, which differs from process to process: a store would never find them again.
_ADDRESS = re.compile(" at 0x[0-9a-fA-F]+")

# A drawn sentence is tried on this many rows first. After 500 refusals in a row no more are drawn.
_TRIED_ON, _MOST_REFUSED = 120, 500


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A method to try.

    Attributes
    ----------
    name : str
        The method in words.
    parts : dict of str to str
        The choices it consists of, in words.
    """

    name: str
    estimator: Any
    parts: dict[str, str]


class RandomMap(BaseEstimator):
    """Random points, which any method should beat.

    Parameters
    ----------
    n_components : int, default=2
    random_state : int, RandomState or None, default=None
    """

    def __init__(self, n_components: int = 2, random_state: Any = None) -> None:
        self.n_components, self.random_state = n_components, random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw a place for each row of `X`."""
        n = check_array(X, accept_sparse=True).shape[0]
        self.embedding_: FloatArray = check_random_state(self.random_state).normal(size=(n, self.n_components))
        return self


def references(metric: str = "euclidean") -> list[Candidate]:
    """Return the reference methods of every search, with this metric if they have one."""
    methods: dict[str, Any] = {
        "PCA": estimators.PrecisionCoupling(),
        "random map": RandomMap(),
        "TSNE": estimators.TSNE(metric=metric),
        "UMAP": estimators.UMAP(metric=metric),
        "TwoScaleCoupling": estimators.TwoScaleCoupling(estimators.TSNE(metric=metric)),
    }
    return [Candidate(name, method, {"method": name}) for name, method in methods.items()]


def candidates(space: Any, draws: Draws, sample: Any) -> Iterator[Candidate]:
    """Yield the methods of a space, as in `search`; they may be endless, and drawn sentences are tried on a sample."""
    if isinstance(space, str):
        if space == "laws":
            return _each_once(draws, lambda: _draw(draws), lambda method: _is_feasible(method, sample))
        if space == "presets":
            return _presets()
        raise ValueError(f'space must be "laws", "presets", estimators or distributions, got {space!r}.')
    if isinstance(space, estimators.Sentence):
        space = [space]
    if isinstance(space, Mapping) and space and all(map(_is_method, space.values())):
        return iter(_unlike([_candidate(method, str(name)) for name, method in space.items()]))
    if isinstance(space, Mapping):
        space = (estimators.TSNE(), space)
    if isinstance(space, tuple) and len(space) == 2 and isinstance(space[1], Mapping) and not _is_method(space[1]):
        base, distributions = space
        if isinstance(base, type) or not hasattr(base, "get_params"):
            raise TypeError(f"space must be a pair of an estimator and a mapping, got {base!r}.")
        return _sampled(base, distributions, draws)
    if isinstance(space, Sequence) and len(space):
        return iter(_unlike([_candidate(method) for method in space]))
    raise TypeError(
        'space must be "laws", "presets", a list of estimators or sentences, or a pair of an estimator and a mapping '
        f"of its parameters to values, got {space!r}."
    )


def _is_method(method: Any) -> bool:
    takes_data = not isinstance(method, type) and hasattr(method, "fit") and hasattr(method, "get_params")
    return isinstance(method, estimators.Sentence) or takes_data


def _candidate(method: Any, name: str | None = None) -> Candidate:
    if not _is_method(method):
        raise TypeError(f"space must hold estimators or sentences, got {method!r}.")
    if isinstance(method, estimators.Sentence):
        method = estimators.GraphCoupling(**method)
    name = name or _ADDRESS.sub("", " ".join(repr(method).split()))
    return Candidate(name, method, {"method": name})


def _unlike(methods: list[Candidate]) -> list[Candidate]:
    """Return methods with distinct names: if long arrays make two names equal, the later one gets a number."""
    compared, unlike = {each.name for each in references()}, dict[str, Candidate]()
    for each in methods:
        if each.name in compared:
            raise ValueError(f"{each.name!r} is the name of a method that is always compared; choose another name.")
        name = _free(each.name, unlike)
        unlike[name] = Candidate(name, each.estimator, {"method": name})
    return list(unlike.values())


def _free(text: str, taken: Container[str]) -> str:
    """Return the text, or if it is taken, the text with the first number from 2 on that is not."""
    numbered = (f"{text} ({count})" for count in itertools.count(2))
    return next(each for each in itertools.chain([text], numbered) if each not in taken)


def _presets() -> Iterator[Candidate]:
    compared = {each.name for each in references()}
    for kind in METHODS.values():
        method = getattr(estimators, kind)
        if method.couples_laws and kind not in compared:
            yield Candidate(f"{kind}()", method(), {"method": kind})


def _sampled(base: Any, distributions: Mapping[str, Any], draws: Draws) -> Iterator[Candidate]:
    """Return copies of an estimator with drawn parameters, each once."""
    known = base.get_params()
    for name, values in distributions.items():
        if name.rpartition("__")[2] == "random_state":
            raise ValueError(f"a search sets seeds itself, {name!r} too; leave it out and set n_seeds.")
        owner, _, option = name.rpartition("__")
        # get_params has the groups of options, and set_params takes each option too.
        if name not in known and option not in getattr(known.get(owner) if owner else base, "_options", ()):
            raise ValueError(f"{type(base).__name__} has no parameter {name!r} to search over.")
        if not hasattr(values, "rvs") and (isinstance(values, str) or not isinstance(values, Sequence) or not values):
            raise ValueError(f"space[{name!r}] must be a list of values or a distribution of scipy, got {values!r}.")
    texts: dict[str, dict[Any, str]] = {name: {} for name in distributions}

    def draw() -> Candidate:
        drawn = {
            name: draws.number(name, values) if hasattr(values, "rvs") else draws.choose(name, values)
            for name, values in sorted(distributions.items())
        }
        parts = {name: _text_of(value, texts[name]) for name, value in drawn.items()}
        name = f"{type(base).__name__}({', '.join(f'{key}={value}' for key, value in parts.items())})"
        return Candidate(name, clone(base).set_params(**drawn), parts)

    # Not a generator, so that the checks above come before the first fit.
    return _each_once(draws, draw, lambda method: True)


def _text_of(value: Any, texts: dict[Any, str]) -> str:
    """Return a short text that no other value of a parameter has, and add it to the texts of its values."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    key = float(value) if is_number else fingerprint(value)
    if key not in texts:
        text = f"{value:.4g}" if isinstance(value, float) else _ADDRESS.sub("", str(value))
        if is_number and text in texts.values():
            text = repr(float(value))
        # Texts leave out parts of long values.
        texts[key] = _free(text, texts.values())
    return texts[key]


def _each_once(draws: Draws, draw: Callable[[], Candidate], is_feasible: Callable[[Any], bool]) -> Iterator[Candidate]:
    """Yield drawn methods, each once, until too many in a row are repeats or not feasible."""
    seen: set[str] = set()
    refused = 0
    while refused < _MOST_REFUSED:
        draws.begin()
        drawn = draw()
        refused += 1
        if drawn.name in seen:
            draws.skip()
        elif is_feasible(drawn.estimator):
            seen.add(drawn.name)
            refused = 0
            draws.keep(drawn.name)
            yield drawn


def _draw(draws: Draws) -> Candidate:
    """Return a sentence of drawn parts, which may not fit together."""
    terms: list[Any] = [term for term in GlobalTerm.__subclasses__() if _takes_no_arguments(term)]
    # Half of the sentences have the coupling of the papers, and half have no term.
    usual = draws.choose("cross-entropy", (True, False))
    name = "cross-entropy" if usual else draws.choose("coupling", COUPLINGS.names())
    with_term = bool(terms) and draws.choose("with a term", (False, True))
    method = estimators.GraphCoupling(
        input=_input_law(draws),
        latent=_latent_law(draws),
        coupling=COUPLINGS[name](),
        terms=(draws.choose("term", terms)(),) if with_term else (),
        init=draws.choose("start", STARTS.names()),
    )
    parts = {
        "input prior": method.input.prior.code,
        "bandwidth": _words(method.input.bandwidth),
        "latent prior": method.latent.prior.code,
        "latent kernel": _words(method.latent.kernel),
        "coupling": name,
        "term": type(method.terms[0]).__name__ if method.terms else "no term",
        "start": str(method.init),
    }
    return Candidate(_IN_WORDS.format(**parts), method, parts)


def _words(part: Any) -> str:
    """Return a dataclass in words: its name, and its numbers if there is one or they are not the defaults."""
    fields = dataclasses.fields(part)
    values = [
        _words(value) if dataclasses.is_dataclass(value) else f"{value:g}"
        for field in fields
        if (value := getattr(part, field.name)) is not None and (len(fields) == 1 or value != field.default)
    ]
    return f"{type(part).__name__}({', '.join(values)})" if values else type(part).__name__


def _input_law(draws: Draws) -> GraphModel:
    prior = PRIORS[draws.choose("input prior", PRIORS.names())]()
    options: list[Any] = [*map(Perplexity, _PERPLEXITIES), SelfTuning(), LocalConnectivity()]
    bandwidth = draws.choose("bandwidth", options)
    kernel: Kernel = Odds(Exponential()) if isinstance(bandwidth, LocalConnectivity) else Gaussian()
    undirected = "threshold" if prior.independent_edges else None
    return GraphModel(kernel, prior, bandwidth, bandwidth.suited_neighbors, symmetrize=undirected)


def _latent_law(draws: Draws) -> GraphModel:
    prior = PRIORS[draws.choose("latent prior", PRIORS.names())]()
    usable = [name for name in KERNELS.names() if _takes_no_arguments(KERNELS[name])]
    kernel: Any = KERNELS[draws.choose("latent kernel", usable)]()
    for field in dataclasses.fields(kernel):
        if isinstance(value := getattr(kernel, field.name), float):
            kernel = dataclasses.replace(kernel, **{field.name: value * draws.choose(field.name, _FACTORS)})
    as_odds = prior.independent_edges and draws.choose("odds", [False, True])
    return GraphModel(Odds(kernel) if as_odds else kernel, prior)


def _takes_no_arguments(kind: Any) -> bool:
    required = (p for p in inspect.signature(kind).parameters.values() if p.default is inspect.Parameter.empty)
    return not any(p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in required)


def _is_feasible(method: Any, sample: Any) -> bool:
    """Return whether the parts fit together, by two iterations on a few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clone(method).set_params(max_iter=2, random_state=0, n_jobs=1).fit(sample[:_TRIED_ON])
        except Exception:
            # A user's part may raise any exception.
            return False
    return True
