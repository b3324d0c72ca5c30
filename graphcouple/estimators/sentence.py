"""A method in one sentence: two laws, a coupling, terms, an optimizer and a start. `carry_out` runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from graphcouple._support.html import html_table
from graphcouple.couplings import Problem, Term
from graphcouple.couplings.recipes import as_coupling
from graphcouple.estimators._progress import Progress
from graphcouple.laws import GraphModel, Space
from graphcouple.optimize import Descent, MiniBatches, Optimizer

_LONG_NUMBER = re.compile(r"\d+\.\d{5,}")
_NOT_SHOWN = ("random_state", "n_jobs", "verbose", "callback", "checkpoint", "on_interrupt", "warm_start")


class Sentence(Mapping[str, Any]):
    """The parameters of `GraphCoupling` that make a method, by name; ``GraphCoupling(**sentence)`` is the method.

    Each part is also an attribute. Options of a run, such as `random_state` and `n_jobs`, are
    included only if they were set. `print` shows one part per line.

    Examples
    --------
    >>> import graphcouple as gc
    >>> print(gc.TSNE(perplexity=20).sentence)
    input         prior D, Gaussian(), Perplexity(perplexity=20), nearest neighbors
    latent        prior E, Student(dof=1.0)
    coupling      cross-entropy
    optimizer     Descent(learning_rate='auto', early_exaggeration='auto', confinement=1.0)
    init          pca
    max_iter      auto
    n_components  2
    >>> X, y = gc.datasets.load("iris")
    >>> named, stated = gc.UMAP(random_state=0), gc.GraphCoupling(**gc.UMAP(random_state=0).sentence)
    >>> bool((named.fit_transform(X) == stated.fit_transform(X)).all())
    True
    """

    def __init__(self, **parts: Any) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> Any:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._parts:
            raise AttributeError(f"a sentence has no part {name!r}; it has {sorted(self.__dict__.get('_parts', ()))}.")
        return self._parts[name]

    @property
    def names_rows(self) -> bool:
        """Whether a term names rows, as anchors do; the run refuses other objects among the terms."""
        return any(isinstance(term, Term) and term.names_rows for term in self.terms)

    def replace(self, **parts: Any) -> Sentence:
        """Return a copy with these parts replaced."""
        return Sentence(**{**self._parts, **parts})

    def __repr__(self) -> str:
        return f"Sentence({', '.join(f'{name}={value!r}' for name, value in self._parts.items())})"

    def iterations(self, n_points: int | None) -> int | None:
        """Return the maximum number of iterations; None if it depends on a number of points that is not known."""
        if self.max_iter != "auto":
            return int(self.max_iter)
        return None if n_points is None else optimizer_of(self).suited_iterations(n_points)

    def rows(self) -> list[tuple[str, str]]:
        """Return each part as a name and a readable text."""
        rows = []
        for name, value in self._parts.items():
            if name in _NOT_SHOWN or (name == "terms" and not value):
                continue
            values = value if name == "terms" else [value]
            rows += [(name if i == 0 else "", _readable(part)) for i, part in enumerate(values)]
        return rows

    def latex(self) -> str:
        """Return the loss as LaTeX, for w_ij, the means of the input's edges, and k_ij, the latent kernel's values.

        Examples
        --------
        >>> import graphcouple as gc
        >>> print(gc.TSNE().sentence.latex())
        E(Z) = \\sum_{i \\neq j} w_{ij} \\, \\log \\sum_{i \\neq j} k_{ij} - \\sum_{i \\neq j} w_{ij} \\log k_{ij}
        """
        loss = as_coupling(self.coupling).latex(self.latent)
        if isinstance(self.input, GraphModel) and self.input.symmetrize:
            # Each pair of an undirected graph counts once.
            loss = loss.replace(r"i \neq j", "i < j")
        terms = r" + \sum_t \lambda_t E_t(Z)" if self.terms else ""
        return f"E(Z) = {loss}{terms}" if loss else ""

    def _repr_html_(self) -> str:
        return html_table([], self.shown())

    def shown(self) -> list[tuple[str, str]]:
        """Return the rows that a notebook shows: each part, and the loss."""
        loss = self.latex()
        return [*self.rows(), *([("loss", f"${loss}$")] if loss else [])]

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def _readable(part: Any) -> str:
    text = f"array of shape {part.shape}" if hasattr(part, "shape") and hasattr(part, "dtype") else str(part)
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.4g}", text)


def optimizer_of(sentence: Sentence, problem: Problem | None = None) -> Optimizer | Descent:
    """Return the optimizer of a sentence, prepared for a problem if one is given."""
    wanted = Descent() if isinstance(sentence.optimizer, str) else sentence.optimizer
    if problem is None or isinstance(wanted, Descent):
        return wanted
    return wanted.seeded(problem.seed).with_graph(problem.posterior)


def run_options(sentence: Sentence, watch: Progress) -> dict[str, Any]:
    """Return the options of `solve`, with the progress bar and callback of `watch`."""
    options = {name: sentence[name] for name in ("max_iter", "n_jobs", "n_starts", "on_interrupt") if name in sentence}
    return options if watch.idle else options | {"callback": watch, "check_every": watch.every}


def refuse_parts(method: Any, cannot: str, *own: tuple[Any, str]) -> None:
    """Raise `ValueError` if a method cannot be aligned with others, or cannot give points shared places.

    `cannot` completes the message "... cannot be aligned". `own` holds further parts that do not suit, and why.
    """
    sentence = method.sentence
    optimizer = optimizer_of(sentence)
    continues = sentence.get("checkpoint") or sentence.get("warm_start")
    for unfit, why in (
        (sentence.get("features") is not None, "is a function of the points; leave features out"),
        (isinstance(sentence.latent.metric, Space), f"is of {sentence.latent.metric}, and it must be flat"),
        (method.shares_places, "has shared places, which are fitted alone; pass its `estimator`"),
        (sentence.get("n_landmarks") or sentence.get("unique"), "is of a part of the rows; fit them all"),
        (isinstance(optimizer, Optimizer) and optimizer.noisy, "is made by sampled steps; take another method"),
        (isinstance(optimizer, MiniBatches), "is made in batches of one graph's rows; take all rows at once"),
        (continues, "continues another; leave checkpoint and warm_start out"),
        *own,
    ):
        if unfit:
            raise ValueError(f"{type(method).__name__} cannot {cannot}, because its map {why}.")
