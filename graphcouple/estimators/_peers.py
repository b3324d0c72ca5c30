"""Parameters of other libraries, and their names here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MESH = "summation=ParticleMesh(spacing=...)"
_MOMENTUM = "the optimizer of GraphCoupling: GraphCoupling(**sentence.replace(optimizer=MomentumGains(...)))"
_GRAPH = "neighbors, of fit: fit(X, neighbors=(indices, distances))"
_NOT_YET = "there is no equivalent here yet"
_NOTHING = "there is nothing to set"

PEERS: dict[str, str] = {
    # scikit-learn
    "n_iter": "max_iter",
    "n_init": "n_starts",
    "n_iter_without_progress": "patience, of graphcouple.solve; a run ends once it has settled",
    "min_grad_norm": "tol, of graphcouple.solve; a run ends once it has settled",
    "method": "summation: 'exact', 'barnes_hut' or 'particle_mesh'",
    "angle": "summation=BarnesHut(angle=...)",
    "theta": "summation=BarnesHut(angle=...)",
    "initialization": "init",
    "dissimilarity": "metric='precomputed'",
    "affinity": "metric='precomputed' for distances, input for the law of a graph",
    "LocallyLinearEmbedding.method": _NOT_YET + ": modified, Hessian and LTSA embeddings are in sklearn.manifold",
    "MetricMDS.metric_mds": _NOT_YET + ": non-metric scaling is in sklearn.manifold",
    "eigen_solver": _NOTHING + ": the solver is chosen by the size",
    "neighbors_algorithm": _NOTHING + ": the search is chosen by the size",
    "path_method": _NOTHING + ": paths are Dijkstra's",
    "normalized_stress": _NOTHING + ": see normalized_stress_",
    # trimap
    "n_iters": "max_iter",
    # openTSNE
    "early_exaggeration_iter": _MOMENTUM.replace("...", "exaggeration=Exaggeration(factor, n_iter)"),
    "negative_gradient_method": "summation: 'exact', 'barnes_hut' or 'particle_mesh'",
    "n_interpolation_points": _MESH,
    "min_num_intervals": _MESH,
    "ints_in_interval": _MESH,
    "initial_momentum": _MOMENTUM,
    "final_momentum": _MOMENTUM,
    "max_grad_norm": _NOT_YET + ": max_step of MomentumGains bounds a step, not a gradient",
    "max_step_norm": _MOMENTUM,
    "affinities": "input, of GraphCoupling: GraphCoupling(input=posterior, latent=...)",
    "callbacks": "callback",
    "callbacks_every_iters": "callback, which is called every 10 iterations",
    "neighbors": "search, of GraphModel",
    # umap-learn
    "n_epochs": "max_iter",
    "metric_kwds": "metric_params",
    "precomputed_knn": _GRAPH,
    "target_n_neighbors": _NOTHING + ": targets have no neighbors; see target_weight",
    "target_metric": _NOTHING + ": a y with fractions is a number, any other holds classes; see target_weight",
    "target_metric_kwds": _NOTHING + ": targets have no metric; see target_weight",
    "transform_seed": _NOTHING + ": transform is not random",
    "transform_queue_size": _NOTHING + ": transform is not random",
    "low_memory": _NOTHING + ": memory is always linear in the number of neighbours",
    "densmap": "DensMAP(UMAP(...)), or terms=[Density()]",
    "dens_lambda": "DensMAP(weight=...)",
    "output_metric": "the metric of a latent law: GraphModel(..., metric=laws.Hyperbolic()) or laws.Spherical()",
    "force_approximation_algorithm": "search, of GraphModel: search='approximate'",
    "disconnection_distance": "edge_prior, of the prior: it can forbid edges",
}


# Attributes that only fit sets.
_FITTED = ("kl_divergence_",)

# Attributes and methods of fitted estimators of other libraries.
ATTRIBUTES: dict[str, str] = {
    "optimize": "update, or fit with warm_start=True, which continues from the last map",
    "prepare_partial": "transform, or update",
    "affinities": "posterior_",
    "graph_": "posterior_.mean()",
    "kl_divergence": "kl_divergence_",
    "affinity_matrix_": "posterior_.mean()",
    "update_embedding": "update",
}


def why_missing(kind: type, name: str, is_fitted: bool) -> str:
    """Return a message for an attribute that estimators of a kind do not have, with the name it has here."""
    named = ATTRIBUTES.get(name, "").partition(".")[0].partition(",")[0].partition(" ")[0]
    if name in ATTRIBUTES and (hasattr(kind, named) or named in _FITTED):
        return f"{kind.__name__} has no {name}; use {ATTRIBUTES[name]}."
    near = [] if name.startswith("_") else difflib.get_close_matches(name, [*dir(kind), "embedding_"], 1, 0.8)
    if near and near[0] != name:
        return f"{kind.__name__} has no attribute {name!r}; did you mean {near[0]!r}?"
    if name.endswith("_") and not name.startswith("_") and not is_fitted:
        return f"{kind.__name__} has no attribute {name!r}; if it is one that fit sets, call fit first."
    return f"{kind.__name__!r} object has no attribute {name!r}"


def why_unknown(owner: str, unknown: str, known: Iterable[str]) -> str:
    """Return a message for a parameter that an estimator does not have, with the name it has here."""
    known = list(known)
    hint = PEERS.get(f"{owner}.{unknown}", PEERS.get(unknown, ""))
    if hint.startswith((_NOTHING, _NOT_YET)):
        return f"{owner} has no parameter {unknown!r}; {hint}."
    # A hint that names a parameter of other estimators would be wrong here.
    named = hint.partition(":")[0].partition("=")[0]
    if hint and (named in known or not named.isidentifier()):
        return f"{owner} has no parameter {unknown!r}; use {hint}."
    near = difflib.get_close_matches(unknown, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}."
    if "estimator" in known and not near:
        hint += f" Parameters of the method go to it, as in {owner}(TSNE(perplexity=10))."
    return f"{owner} has no parameter {unknown!r}; {hint}"
