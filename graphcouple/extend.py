"""Base classes for your own parts, and the decorators that give them names.

A part is one file: a subclass of one of these classes, or a function, with a name for estimators and the command if you
register it. `tests/extensions/` in the repository has an example of most kinds.

| to add | base | to name it |
|---|---|---|
| a kernel | `Kernel` | `register_kernel(name)`; `check_kernel` compares its formulas |
| a bandwidth | `Bandwidth` | |
| a prior | `GraphPrior`, `GraphPosterior` | `register_prior` |
| a coupling | `Objective`, and `Coupling`, which makes one from a `Problem` | `register_coupling(name)` |
| a term | `Objective`, and `Term`, or `GlobalTerm` if it arranges the whole map | |
| early exaggeration of an objective | `Objective.attracting`, an `Attraction` | |
| a loss of pairs | `MatchingLoss` | |
| an optimizer | `Optimizer` | |
| a summation | `Summation` of a `RadialFunction` | `register_summation(name)` |
| a start | a function | `register_start(name)` |
| a score | a function | `register_score(name)` |

Examples
--------
>>> import graphcouple as gc
>>> @gc.extend.register_start("first columns")
... def first_columns(X, posterior, n_components, rng, n_jobs=None):
...     return X[:, :n_components]
>>> gc.TSNE(init="first columns", random_state=0).fit(gc.datasets.load("iris")[0]).embedding_.shape
(150, 2)
"""

from graphcouple.couplings import Attraction, Coupling, GlobalTerm, MatchingLoss, Objective, Problem, Term
from graphcouple.couplings.recipes import register as register_coupling
from graphcouple.initializations import register as register_start
from graphcouple.kernels import Kernel, check_kernel
from graphcouple.kernels import register as register_kernel
from graphcouple.laws import Bandwidth
from graphcouple.laws.priors import GraphPosterior, GraphPrior, draw_by_inversion
from graphcouple.laws.priors import register as register_prior
from graphcouple.metrics import register as register_score
from graphcouple.optimize import Optimizer, Run, Snapshots, Stopping
from graphcouple.summation import RadialFunction, Summation
from graphcouple.summation import register as register_summation

__all__ = [
    "Attraction", "Bandwidth", "Coupling", "GlobalTerm", "GraphPosterior", "GraphPrior", "Kernel", "MatchingLoss",
    "Objective", "Optimizer", "Problem", "RadialFunction", "Run", "Snapshots", "Stopping", "Summation", "Term",
    "check_kernel", "draw_by_inversion", "register_coupling", "register_kernel", "register_prior", "register_score",
    "register_start", "register_summation",
]  # fmt: skip
