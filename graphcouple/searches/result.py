"""The result of a search: the table of methods, the front, and the effect of each choice on a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcouple._support.html import html_table
from graphcouple._support.validation import check_integer
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.metrics import seed_stability
from graphcouple.metrics._evaluate import LESS_IS_BETTER, SCORES, as_table
from graphcouple.searches.runs import Fit
from graphcouple.searches.space import Candidate

if TYPE_CHECKING:
    from graphcouple.searches.runs import Runner

# The first rounds have one map of each method.
_OF_ALL_ROWS = ("stability", "half stability")

_OF_CLASSES = ("10-NN accuracy", "NMI", "silhouette", "Davies-Bouldin", "class-mean disparity")

# A difference counts above this many standard errors.
_SURE = 2.0


class SearchResult:
    """The methods that were tried, as `graphcouple.search` returns them; printing it shows the front.

    ``result[name]`` is the method of that name, fitted to all rows except the held-out ones.

    Attributes
    ----------
    objectives : list of str
    methods : dict of str to Candidate
        Every method by its name.
    kept, held_out : ndarray
        The rows of X in the maps, in their order, and the held-out rows.
    """

    def __init__(
        self,
        runner: Runner,
        objectives: list[str],
        methods: dict[str, Candidate],
        n_seeds: int,
        kept: IntArray,
        held_out: IntArray,
    ) -> None:
        self._runner, self.objectives, self.methods, self._n_seeds = runner, objectives, methods, n_seeds
        self.kept, self.held_out = kept, held_out
        self._fitted: dict[str, Any] = {}

    def check_objectives(self) -> None:
        """Raise if an objective is not a score of the fits."""
        if not any(fit.scores for fit in self.fits):
            raise ValueError(f"the data cannot be scored: {self.fits[0].warnings[0]}")
        # A registered score may not apply to the first map.
        scores = {"seconds", *_OF_ALL_ROWS, *SCORES.names()}.union(*(fit.scores for fit in self.fits))
        known = sorted(name for name in scores if not name.startswith("held out ") and name[-1] != "±")
        for name in self.objectives:
            if name not in known:
                raise ValueError(
                    f"objectives holds {name!r}, which is none of {', '.join(known)}"
                    f"{'; scores of classes need y' if name in _OF_CLASSES and self._runner.y is None else ''}."
                )

    @property
    def fits(self) -> list[Fit]:
        """Every fit, in the order in which they were made."""
        return [fit for fit in self._runner.store.fits if fit.name in self.methods]

    def _complete(self) -> dict[str, list[Fit]]:
        """Return the fits to all rows of the methods that have scores for every seed."""
        n, whole = self._runner.X.shape[0], dict[str, list[Fit]]()
        for fit in self.fits:
            if fit.n_points == n and fit.scores:
                whole.setdefault(fit.name, []).append(fit)
        return {name: fits for name, fits in whole.items() if len(fits) >= self._n_seeds}

    def take_seeds_of(self, names: Sequence[str]) -> None:
        """Take as few seeds as one of these methods has, after a search that ended early."""
        counts = Counter(fit.name for fit in self.fits)
        self._n_seeds = min(self._n_seeds, *(counts[name] for name in names))

    def _values(self, name: str, fits: list[Fit]) -> tuple[FloatArray, FloatArray]:
        """Return the mean of each objective over fits, and its standard deviation; NaN where it is unknown."""
        columns = [self._values_of(objective, fits) for objective in self.objectives]
        if "stability" in self.objectives and len(fits) > 1:
            stable = seed_stability([self._map(name, fit.seed) for fit in fits])
            columns[self.objectives.index("stability")] = np.array([stable])
        deviations = [c.std(ddof=1) if c.size > 1 else np.nan for c in columns]
        return np.array([c.mean() for c in columns]), np.array(deviations)

    def _values_of(self, objective: str, fits: Sequence[Fit]) -> FloatArray:
        return np.array([fit.seconds if objective == "seconds" else fit.scores.get(objective, np.nan) for fit in fits])

    @property
    def _signs(self) -> FloatArray:
        return np.array([-1.0 if name in ("seconds", *LESS_IS_BETTER) else 1.0 for name in self.objectives])

    def signed(self, fit: Fit) -> FloatArray | None:
        """Return a fit's scores, negated where lower is better; None if it failed. Stabilities are 0."""
        if not fit.scores:
            return None
        values = self._values(fit.name, [fit])[0] * self._signs
        return np.where([name in _OF_ALL_ROWS for name in self.objectives], 0.0, values)

    def layers(self, fits: Sequence[Fit]) -> list[int]:
        """Return the order of fits to equally many rows: fits that no other surpasses first, failed fits last."""
        values = np.stack([self._values_of(objective, fits) for objective in self.objectives], axis=1) * self._signs
        values = values[:, [name not in _OF_ALL_ROWS for name in self.objectives]]
        failed = np.array([not fit.scores for fit in fits])
        values = np.where(np.isfinite(values) & ~failed[:, None], values, -np.inf)
        ranks = (values[:, None] < values[None]).sum(axis=(1, 2))
        order: list[int] = []
        left = list(range(len(fits)))
        while left:
            free = [i for i in left if not any(_surpasses(values[j], values[i]) for j in left)]
            order += sorted(free, key=lambda i: (failed[i], ranks[i], i))
            left = [i for i in left if i not in free]
        return order

    @property
    def front(self) -> list[str]:
        """The methods, fitted to all rows, that no other surpasses.

        A method surpasses another if it is better in one objective and worse in none. Differences of up to two standard
        errors over the seeds do not count; with one seed, as after an early end, all differences count. If no method
        remains, the front holds the methods that none surpasses in the means.
        """
        moments = {}
        for name, fits in self._complete().items():
            means, deviations = self._values(name, fits)
            known = np.isfinite(means)
            variances = np.nan_to_num(deviations) ** 2 / len(fits)
            moments[name] = np.where(known, self._signs * means, -np.inf), variances

        def unsurpassed(sure: float) -> list[str]:
            return [
                name
                for name, (mean, variance) in moments.items()
                if not any(_surpasses(other, mean, sure * np.sqrt(variance + more)) for other, more in moments.values())
            ]

        return unsurpassed(_SURE) or unsurpassed(0.0)

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the table as a dict of rows by name; see `table`."""
        front, whole, rows = self.front, self._complete(), {}
        for name in self.methods:
            fits = whole.get(name) or [fit for fit in self.fits if fit.name == name]
            if not fits:
                continue
            fits = [fit for fit in fits if fit.n_points == fits[-1].n_points]
            means, deviations = self._values(name, fits)
            row: dict[str, Any] = {}
            for objective, mean, deviation in zip(self.objectives, means, deviations, strict=True):
                row |= {objective: float(mean), f"{objective} ±": float(deviation)}
            held = {f"held out {objective}" for objective in self.objectives} & set(fits[0].scores)
            row |= {key: fits[0].scores[key] for key in sorted(held)}
            seconds = float(np.mean([fit.seconds for fit in fits]))
            row |= {"seconds": seconds, "rows": fits[0].n_points, "seeds": len(fits), "front": name in front}
            noted = dict.fromkeys(text for fit in fits for text in fit.warnings)
            rows[name] = row | {"warnings": "; ".join(noted)}
        return rows

    @property
    def table(self) -> Any:
        """A row for each method, a pandas.DataFrame; without pandas, a dict of dicts.

        For each objective, the mean over seeds, and after it with "±" the standard deviation; the score of the held-out
        rows placed by `transform`; seconds, rows and seeds; whether the method is on the front; and the warnings of its
        fits. Scores of methods that did not reach the last round are on fewer rows, and not comparable.
        """
        return as_table(self.rows(), several=True)

    def explain(self, objective: str | None = None) -> Any:
        """Return the effect of each choice on a score: the mean with it minus the mean without, and a 95 % interval.

        Parameters
        ----------
        objective : str, optional
            A score of the fits; by default the first objective but stabilities.

        Returns
        -------
        pandas.DataFrame with a row for each choice; without pandas, a dict of dicts
            Effects in the first round, in which all methods have the same rows; "low" and "high" are the interval's
            ends by Welch's t. Choices that fewer than two methods have, or fewer than two lack, are left out. Optuna
            draws good choices more often together, so with it intervals are only a guide.

        Raises
        ------
        ValueError
            When no fit has the score.
        """
        of_fits = [name for name in self.objectives if name not in _OF_ALL_ROWS] or self.objectives
        name = of_fits[0] if objective is None else objective
        if name != "seconds" and not any(name in fit.scores for fit in self.fits):
            raise ValueError(f"objective={name!r} is not a score of the fits.")
        return as_table(self._effects(name), several=True)

    def _effects(self, objective: str) -> dict[Any, dict[str, float]]:
        from scipy.stats import ttest_ind

        first: dict[str, Fit] = {}
        for fit in self.fits:
            # The references are fitted to all rows only.
            kinds = self.methods[fit.name].parts
            if fit.scores and not (set(kinds) == {"method"} and kinds["method"] in (fit.name, fit.name[:-2])):
                first.setdefault(fit.name, fit)
        fewest = min((fit.n_points for fit in first.values()), default=0)
        fits = [fit for fit in first.values() if fit.n_points == fewest]
        fits = [fit for fit in fits if np.isfinite(self._values_of(objective, [fit])[0])]
        values = self._values_of(objective, fits)
        effects, parts = {}, [self.methods[fit.name].parts for fit in fits]
        for part in dict.fromkeys(key for each in parts for key in each):
            for choice in sorted({each.get(part, "") for each in parts}):
                with_it = np.array([each.get(part, "") == choice for each in parts])
                if min(with_it.sum(), (~with_it).sum()) < 2:
                    continue
                test = ttest_ind(values[with_it], values[~with_it], equal_var=False)
                low, high = test.confidence_interval(0.95)
                effect = float(values[with_it].mean() - values[~with_it].mean())
                row = {"effect": effect, "low": float(low), "high": float(high), "methods": int(with_it.sum())}
                effects[f"{part}: {choice}"] = row
        return effects

    def __getitem__(self, name: str) -> Any:
        if name not in self.methods:
            raise KeyError(f"{name!r} is not a method of this search; its methods are the rows of the table.")
        if name not in self._fitted:
            self._fitted[name] = self._runner.fitted(self.methods[name])
        return self._fitted[name]

    def _map(self, name: str, seed: int = 0) -> FloatArray:
        maps = self._runner.maps
        if (name, seed) not in maps:
            self._runner.fitted(self.methods[name], seed)
        return maps[name, seed]

    def plot(self, *, most: int = 8, ax: Any = None) -> Any:
        """Draw the first two objectives of all methods, with standard deviations, and maps of the front.

        Parameters
        ----------
        most : int, default=8
            Maps to draw.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from graphcouple.plotting import plot_front

        check_integer("most", most, 1)
        if len(self.objectives) < 2:
            raise ValueError("a front is drawn for two objectives or more; sort the table instead.")
        whole, front = self._complete(), self.front
        values = {name: self._values(name, fits) for name, fits in whole.items()}
        places = {name: (mean[:2], deviation[:2]) for name, (mean, deviation) in values.items()}
        ordered = sorted(front, key=lambda name: values[name][0][0])
        step = max(1, -(-len(ordered) // most))
        maps = {name: self._map(name) for name in ordered[::step]}
        return plot_front(places, front, maps, self._runner.y, axes=self.objectives[:2], ax=ax)

    def to_html(self, path: Any) -> None:
        """Write one file with the picture, the table and the effects, which opens without a network."""
        import base64
        import io

        from graphcouple.plotting._style import discard

        page = ["<!doctype html><meta charset='utf-8'><title>Search</title><body style='font-family: sans-serif'>"]
        if len(self.objectives) > 1:
            picture = io.BytesIO()
            figure = self.plot().figure
            figure.savefig(picture, format="png", dpi=120)
            discard(figure)
            data = base64.b64encode(picture.getvalue()).decode()
            page.append(f"<img style='max-width: 100%' src='data:image/png;base64,{data}'>")
        page += ["<h2>Methods</h2>", _table(self.rows())]
        for objective in self.objectives:
            if objective not in _OF_ALL_ROWS and (effects := self._effects(objective)):
                page += [f"<h2>What moves {objective}</h2>", _table(effects)]
        Path(path).write_text("\n".join(page), encoding="utf-8")

    def __repr__(self) -> str:
        rows, front = self.rows(), self.front
        lines = [f"No method surpasses these {len(front)} of {len(rows)} in {', '.join(self.objectives)}:"]
        for name in front:
            row = rows[name]
            scores = ", ".join(f"{objective} {spread(row, objective)}" for objective in self.objectives)
            lines.append(f"{scores}, {row['seconds']:.1f} s  {name}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _table({name: row for name, row in self.rows().items() if row["front"]})


def spread(row: dict[str, Any], objective: str) -> str:
    """Return a score of a row in words, with its standard deviation if there is one."""
    deviation = row[f"{objective} ±"]
    return f"{row[objective]:.3f}" + (f"±{deviation:.3f}" if np.isfinite(deviation) else "")


def _surpasses(a: FloatArray, b: FloatArray, sure: Any = 0.0) -> bool:
    """Return whether `a` exceeds `b` by more than `sure` in some objective, and `b` never exceeds `a` by that much."""
    with np.errstate(invalid="ignore"):
        # Scores of failed fits are −∞, and count as equal.
        ahead = np.nan_to_num(a - b, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return bool((ahead > sure).any() and not (-ahead > sure).any())


def _table(rows: dict[Any, dict[str, Any]]) -> str:
    header = ["", *dict.fromkeys(key for row in rows.values() for key in row)]
    cells = [[str(name), *(_cell(row.get(key)) for key in header[1:])] for name, row in rows.items()]
    return html_table(header, cells)


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)
