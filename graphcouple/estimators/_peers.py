"""Parameters of other libraries, and what they are called here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MESH = "summation=ParticleMesh(spacing=...)"
_MOMENTUM = "the optimizer of GraphCoupling: GraphCoupling(**sentence.replace(optimizer=MomentumGains(...)))"
_GRAPH = "neighbors, of fit: fit(X, neighbors=(indices, distances))"
_NOT_YET = "nothing here yet"

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
    "eigen_solver": "nothing: the solver is chosen by the size",
    "path_method": "nothing: paths are Dijkstra's",
    "normalized_stress": "nothing: see normalized_stress_",
    # openTSNE
    "early_exaggeration_iter": _MOMENTUM.replace("...", "exaggeration=Exaggeration(factor, n_iter)"),
    "exaggeration": _MOMENTUM.replace("...", "exaggeration=Exaggeration(factor, n_iter)") + " keeps it for n_iter",
    "negative_gradient_method": "summation: 'exact', 'barnes_hut' or 'particle_mesh'",
    "n_interpolation_points": _MESH,
    "min_num_intervals": _MESH,
    "ints_in_interval": _MESH,
    "initial_momentum": _MOMENTUM,
    "final_momentum": _MOMENTUM,
    "max_grad_norm": _MOMENTUM,
    "max_step_norm": _MOMENTUM,
    "affinities": "input, of GraphCoupling: GraphCoupling(input=posterior, latent=...)",
    "callbacks": "callback",
    "callbacks_every_iters": "callback, which is called every 10 iterations",
    "neighbors": "search, of GraphModel",
    # umap-learn
    "n_epochs": "max_iter",
    "metric_kwds": "metric_params",
    "precomputed_knn": _GRAPH,
    "target_n_neighbors": "nothing: classes have no neighbors; see target_weight",
    "target_metric": _NOT_YET + ": targets are classes, whose weight is target_weight",
    "target_metric_kwds": _NOT_YET + ": targets are classes, whose weight is target_weight",
    "transform_seed": "nothing: transform is not random",
    "transform_queue_size": "nothing: transform is not random",
    "low_memory": "nothing: memory is always linear in the number of neighbours",
    "densmap": _NOT_YET,
    "output_metric": _NOT_YET + ": embeddings are Euclidean",
    "force_approximation_algorithm": "search='approximate', of GraphModel",
    "disconnection_distance": "edge_prior, of the prior: it can forbid edges",
}


# Attributes and methods of fitted estimators of other libraries.
ATTRIBUTES: dict[str, str] = {
    "optimize": "fit with warm_start=True, which goes on from the last map",
    "prepare_partial": "transform, or update",
    "prepare_initial": "GraphModel.posterior and CrossEntropy, and graphcouple.solve",
    "affinities": "posterior_",
    "graph_": "posterior_.mean()",
    "kl_divergence": "kl_divergence_",
    "dissimilarity_matrix_": "the distances that you passed, or scipy.spatial.distance.cdist",
    "affinity_matrix_": "posterior_.mean()",
    "update_embedding": "update",
}


def why_missing(owner: str, name: str, is_fitted: bool) -> str:
    """Return a message for an attribute that an estimator does not have."""
    if name in ATTRIBUTES:
        return f"{owner} has no {name}; use {ATTRIBUTES[name]}."
    if name.endswith("_") and not name.startswith("_") and not is_fitted:
        return f"{owner} has no attribute {name!r}; it may need fit first."
    return f"{owner!r} object has no attribute {name!r}"


def why_unknown(owner: str, unknown: str, known: Iterable[str]) -> str:
    """Return a message for a parameter that an estimator does not have, with the name it has here."""
    known = list(known)
    # A hint that names a parameter of other estimators would be wrong here.
    named = PEERS.get(unknown, "").partition(":")[0].partition("=")[0]
    if unknown in PEERS and (named in known or not named.isidentifier()):
        return f"{owner} has no parameter {unknown!r}; use {PEERS[unknown]}."
    near = difflib.get_close_matches(unknown, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}."
    return f"{owner} has no parameter {unknown!r}; {hint}"
