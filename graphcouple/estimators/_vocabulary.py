"""The usual meaning of each parameter name: its type in words, what it does, and the values that are accepted."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, NamedTuple

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from graphcouple.couplings import Coupling
from graphcouple.laws import GraphModel
from graphcouple.laws.priors import GraphPrior
from graphcouple.optimize import Descent, Optimizer
from graphcouple.summation import Summation

AT_LEAST_1 = Interval(Integral, 1, None, closed="left")
AT_LEAST_2 = Interval(Integral, 2, None, closed="left")
AT_LEAST_0 = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="both")
ABOVE_0 = Interval(Real, 0, None, closed="neither")


class Word(NamedTuple):
    """A parameter: its type in words, what it does, and the values scikit-learn should accept."""

    kind: str
    doc: str
    checks: Any


_FEATURES = Word(
    '"linear", "network", transformer or MLPRegressor',
    'Makes the map a function of the points: "linear" in the columns of X, or in the features of a transformer '
    'of scikit-learn, such as `Nystroem`; "network" a network with two hidden layers of 100 units, or one with the '
    "layers, activation and alpha of an `MLPRegressor`.",
    [StrOptions({"linear", "network"}), HasMethods(["fit", "transform"]), HasMethods(["fit", "predict"])],
)

VOCABULARY: dict[str, Word] = {
    "callback": Word(
        "callable, optional",
        "Called as ``callback(iteration, loss, Z)`` every 10 iterations and at the end; a true return value "
        "stops the run.",
        [None, callable],
    ),
    "center": Word("bool", "Subtract the column means first (implicitly, for sparse X).", ["boolean"]),
    "coupling": Word(
        '{"cross-entropy", "effective", "matching", "reconstruction"} or Coupling',
        "How the two laws are compared: `CrossEntropyCoupling`; `EffectiveCoupling`, the loss that UMAP and LargeVis "
        "minimise in expectation; `MatchingCoupling` of means; or `ReconstructionCoupling`.",
        [str, Coupling],
    ),
    "dof": Word(
        "float",
        "Degrees of freedom of the embedding's Student kernel; values below 1 give heavier tails and finer clusters.",
        [ABOVE_0],
    ),
    "exaggeration": Word(
        "float",
        "How many times attraction counts throughout, as in openTSNE. 4 gives maps like UMAP's, more approaches "
        "the leading Laplacian eigenvectors, and at last puts all points in one place.",
        [Interval(Real, 1, None, closed="left")],
    ),
    "early_exaggeration": Word(
        'float or "auto"',
        'Weight of the attraction at first; 1 for none. "auto" is 0.6 of what the graph tolerates. It falls to 1 in '
        "ten steps, within 60 to 300 iterations or the first three quarters of a shorter run. See `Descent`. "
        "`NegativeSampling` ignores it.",
        [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
    ),
    "epsilon": Word('"auto" or float', "ε; see `ComponentCrossEntropy`.", [StrOptions({"auto"}), ABOVE_0]),
    "init": Word(
        '{"auto", "ccpca", "pca", "random", "spectral"}, estimator or array of shape (n_samples, n_components)',
        'The start. "auto": "spectral" or, where that makes dots of weakly linked clusters, principal components whose '
        'points are moved towards their neighbours. "ccpca": principal components of the averaged means of the input '
        'graph\'s connected components (see `CCPCA`). "pca": principal components of X. "random": Gaussian noise, '
        'which the default optimizer smooths along the graph\'s edges. "spectral": Laplacian eigenvectors of the '
        "input's graph, also in place of the first three where there are no points. Or an estimator, such as "
        "``CCPCA()``, of which a clone is fitted to X. Each is scaled to the size at which the objective is least. An "
        "array is used as it is.",
        [str, "array-like", HasMethods(["fit_transform", "get_params"])],
    ),
    "input": Word(
        "GraphModel, GraphMixture, GraphPosterior, or a graph",
        "The law of the input's graph; a posterior computed beforehand; or your own graph (networkx, igraph, a sparse "
        "matrix or a square array of weights). Your own graph is taken as the mean of a law of the latent prior's "
        "family (see `GraphPrior.around`).",
        "no_validation",
    ),
    "latent": Word("GraphModel", "The law of the embedding's graph: kernel and prior.", [GraphModel]),
    "learning_rate": Word(
        'float or "auto"',
        "A number selects gradient descent with momentum at this rate, in scikit-learn's convention (see "
        "`MomentumGains`). For sampled repulsion it is the rate in umap-learn's (see `NegativeSampling`).",
        [StrOptions({"auto"}), ABOVE_0],
    ),
    "local_connectivity": Word(
        "float", "Number of nearest neighbours that count as connected; see `LocalConnectivity`.", [ABOVE_0]
    ),
    "max_iter": Word(
        'int or "auto"',
        'Maximum number of iterations, or of epochs when sampling; a run ends earlier once it has settled. "auto" is '
        "5,000 up to 400 points, then 2,000,000 divided by their number, and at least 100 "
        "(400 for bounded losses; 4,000,000 divided by that number, within 200 and 400, where the graph bounds early "
        "exaggeration); up to three times as many while the last tenth lowers the loss by over 1 % of its height. "
        "If the run ends far from its best size, a second run starts at that size, and may take as many again. "
        'With ``repulsion="sampled"`` it is 500 up to 10,000 points and 200 beyond; where the default optimizer '
        "samples, at most 1,000.",
        [StrOptions({"auto"}), AT_LEAST_1],
    ),
    "metric": Word(
        "str, callable or Blocks",
        "The distance of the points: any metric of `sklearn.metrics.pairwise_distances`, a function of two rows, or "
        '`Blocks` of columns; "precomputed" if X holds distances.',
        [str, callable, HasMethods(["distances"])],
    ),
    "metric_params": Word(
        "dict, optional", 'Further arguments of the metric, as ``{"p": 3}`` for "minkowski".', [dict, None]
    ),
    "min_dist": Word(
        "float", "Distance below which points of the embedding count as connected; at most `spread`.", [AT_LEAST_0]
    ),
    "n_components": Word("int", "Dimension of the embedding.", [AT_LEAST_1]),
    "n_graphs": Word("int", "Number of graphs that J is averaged over.", [AT_LEAST_1]),
    "n_jobs": Word(
        "int or None, optional",
        "Threads, at most; None means every core, or as many as `joblib.parallel_config` sets. The embedding does not "
        "depend on it. `threadpoolctl` limits threads of BLAS.",
        [None, Integral],
    ),
    "n_neighbors": Word(
        'int, None or "auto"',
        "Number of neighbours of each point that can carry its edges, not counting the point itself. None means all "
        'pairs. "auto" means all pairs up to 2,000 points, and three times the perplexity beyond.',
        [StrOptions({"auto"}), None, AT_LEAST_1],
    ),
    "neighbors searched": Word(
        "int",
        "Number of neighbours of each point, not counting the point itself; few points lower it, with a warning.",
        [AT_LEAST_1],
    ),
    "neighbors of umap": Word(
        "int", "Size of the neighbourhoods, counting the point itself, as in umap-learn.", [AT_LEAST_2]
    ),
    "landmarks of pairs": Word(
        'int, None or "auto"',
        "Fit this number of points, the nearest to centres of k-means, and place the others as `transform` does. "
        'None fits all, with a matrix of all pairs. "auto": all of up to 5,000 points, and 1,000 of more. Ignored '
        "where no such matrix is needed. Of precomputed distances, landmarks are random. Isomap takes at least 30 of "
        "each component.",
        [AT_LEAST_2, StrOptions({"auto"}), None],
    ),
    "perplexity of each point": Word(
        "float", "Effective number of neighbours of each point; above 1 and below the number of neighbours.", [ABOVE_0]
    ),
    "residual": Word(
        "float",
        "Residual of the eigenvectors, relative to the largest eigenvalue's bound.",
        [Interval(Real, 0, 1, closed="neither")],
    ),
    "features": _FEATURES,
    "features or none": Word(
        f"{_FEATURES.kind}, optional", f"{_FEATURES.doc} None lets every point move freely.", [*_FEATURES.checks, None]
    ),
    "kernel_params": Word("dict, optional", 'Arguments of the kernel, as ``{"gamma": 0.1}``.', [dict, None]),
    "reg": Word(
        "float", "Regularisation of the weights, relative to the trace of each neighbourhood's Gram matrix.", [ABOVE_0]
    ),
    "n_samples": Word(
        'int or "auto"',
        'Number of graphs drawn. "auto" draws until `relative_error_` is at most `tol`, and at most 2,000.',
        [StrOptions({"auto"}), AT_LEAST_1],
    ),
    "n_landmarks": Word(
        "int, optional",
        "Fit about this number of points, the nearest to centres of k-means, and place the others as `transform` "
        "does. None, or as many as there are points, fits all of them. Weights of the other rows are not added to "
        "the landmarks'. Row numbers in warnings count landmarks only.",
        [AT_LEAST_2, None],
    ),
    "n_starts": Word(
        'int or "auto"',
        "Number of runs, of which the one with the lowest loss is kept: the first from `init`, the second without "
        "exaggeration if it was chosen automatically, the others from `init` plus noise of half its standard "
        "deviation, with less exaggeration. Rough objectives, such as those of unbounded kernels, of few points or of "
        'one dimension, gain most. "auto" is 3 for at most 100 points, with ``max_iter="auto"``; else 1.',
        [StrOptions({"auto"}), AT_LEAST_1],
    ),
    "negative_sample_rate": Word(
        "float",
        'Number of repelling points for each attracting edge; an integer if ``repulsion="sampled"``. Ignored if '
        '``repulsion="full"``.',
        [ABOVE_0],
    ),
    "nu_x": Word("float, optional", "ν_X, at least n; n by default.", [None, ABOVE_0]),
    "nu_z": Word("float, optional", "ν_Z, at least n; ν_X + p − q by default, which makes γ = 1.", [None, ABOVE_0]),
    "optimizer": Word(
        '"auto" or Optimizer',
        '"auto" is `Descent`: L-BFGS, with settings that suit the objective and the start.',
        [StrOptions({"auto"}), Optimizer, Descent],
    ),
    "perplexity": Word(
        "float or sequence of float",
        "Effective number of neighbours of each point; above 1 and below the number of neighbours. Several, as in "
        "(30, 500), give the mixture of their laws, `GraphMixture`: near and far neighbours at once.",
        [ABOVE_0, "array-like"],
    ),
    "prior": Word(
        '{"D", "B", "E", "S"} or GraphPrior',
        "The law's prior. D: one edge out of every node. B: independent edges. E: as many edges as nodes. "
        "S: one edge out of every node, and one into it on average.",
        [str, GraphPrior],
    ),
    "random_state": Word(
        "int, RandomState or None, optional",
        "Seed of the start, and of the random draws of the optimizer and the terms.",
        ["random_state"],
    ),
    "repulsion": Word(
        '{"effective", "full", "sampled"}',
        'Which points repel. "sampled": points drawn at random for each drawn edge, as in the original program '
        "(`NegativeSampling`); UMAP pulls twice for each push, so its `loss_` then has half the repulsion. "
        '"effective": all points, with the weights that sampling gives them in expectation '
        '(`EffectiveCrossEntropy`), so nothing is random. "full": all points with equal weights, the cross-entropy '
        "as the papers state it (`CrossEntropy`), with far stronger repulsion.",
        [StrOptions({"effective", "full", "sampled"})],
    ),
    "repulsion_strength": Word("float", 'Weight γ of the repulsion. Ignored if ``repulsion="full"``.', [ABOVE_0]),
    "run": Word(
        "RunOptions, optional",
        "How the run is computed, watched and continued: `n_starts`, `summation`, `callback`, `checkpoint`, "
        "`on_interrupt` and `warm_start`. Each may also be given on its own, as ``TSNE(n_starts=3)``.",
        "no_validation",
    ),
    "scale": Word(
        '"free" or float',
        'Length in the embedding of one unit of length in X; "free" compares shapes only. See `ComponentCrossEntropy`.',
        [StrOptions({"free"}), ABOVE_0],
    ),
    "spread": Word("float", "Scale of the embedding's distances.", [ABOVE_0]),
    "strategy": Word(
        '{"joint", "sequential"}',
        '"joint" minimises the objective above. "sequential" is the paper\'s: ccPCA finds the global structure, and '
        "the plain method starts from it. It ignores `weight`, `scale`, `epsilon`, `n_graphs` and the "
        "estimator's own start.",
        [StrOptions({"joint", "sequential"})],
    ),
    "summation": Word(
        '{"auto", "barnes_hut", "exact", "particle_mesh"} or Summation',
        'How sums over all pairs of embedded points are computed. "auto" is exact for few points and approximate, but '
        "fast, for many; see `graphcouple.summation.Auto`.",
        [str, Summation],
    ),
    "svd_solver": Word(
        '{"auto", "full", "randomized"}',
        "See `graphcouple.components.component_pca`.",
        [StrOptions({"auto", "full", "randomized"})],
    ),
    "target_weight": Word(
        "float",
        "How much the classes or numbers `y` of `fit` count for the edges, in [0, 1); see `GraphModel`. 0 ignores `y`. "
        "Above 0, classes look separated even if the data do not separate them: judge by points that were held out.",
        [Interval(Real, 0, 1, closed="left")],
    ),
    "checkpoint": Word(
        "path, optional",
        "A file that keeps the state of the run, about once a second. ``fit(X, resume=True)`` continues it after an "
        "interruption, to the same bits. A fit without `resume` begins anew and replaces it.",
        [None, str, os.PathLike],
    ),
    "on_interrupt": Word(
        '{"raise", "return"}',
        "What Ctrl-C does while the loss descends: raise `KeyboardInterrupt`, or end the fit with the best embedding "
        "so far, and a warning.",
        [StrOptions({"raise", "return"})],
    ),
    "warm_start": Word(
        "bool",
        "Start from `embedding_` if the estimator was fitted before, without exaggeration, to continue after "
        "`max_iter` or with other parameters. `X` must have the same number of rows.",
        ["boolean"],
    ),
    "terms": Word(
        "sequence of Term",
        "Objectives added to the coupling, such as `ComponentMeans`; each has its own weight.",
        ["array-like", tuple],
    ),
    "tol": Word("float", 'Error at which ``n_samples="auto"`` stops drawing.', [ABOVE_0]),
    "transform_method": Word(
        '{"law", "mlp"} or regressor',
        'How `transform` places new points. "law": where the embedding\'s law agrees best with their edges. "mlp": by '
        "scikit-learn's `MLPRegressor`, trained to map the fitted points to their places, with four layers of 2/3, "
        "1/2, 1/3 and 1/5 as many units as features (Sun, Han and Fan 2022), and at least 12. Or a regressor, of "
        "which a clone is trained.",
        [StrOptions({"law", "mlp"}), HasMethods(["fit", "predict", "get_params"])],
    ),
    "unique": Word(
        "bool",
        "Merge equal rows into one point, which weighs as much as all of them: the loss is the same, and copies lie in "
        'one place. `posterior_` then has one node for each point. Exceptions are the metrics "seuclidean", '
        '"mahalanobis" and `Blocks` of bandwidth "auto": they take their scales from the merged rows, each once. For '
        'the scales of all rows, pass ``metric_params={"V": ...}``, their variances or covariance, or the bandwidths.',
        ["boolean"],
    ),
    "verbose": Word(
        "int",
        "Above 0, show progress: a bar on a terminal or in a notebook, elsewhere a line every few seconds, on standard "
        "error. 2 draws the curve of the loss beside it.",
        ["verbose"],
    ),
    "weight": Word(
        'float or "auto"',
        "λ. 0 is the plain method; larger values bring the arrangement of the components closer to ccPCA's. "
        '"auto" depends on the range of J on the data; see `ComponentMeans`. Above about 100, the steps that J allows '
        'are small for H: give the estimator ``init="ccpca"`` and more iterations.',
        [AT_LEAST_0, StrOptions({"auto"})],
    ),
}
"""The meaning of each parameter name, unless an estimator says otherwise."""
