"""Parameters of other libraries, and their names here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MESH = "summation=ParticleMesh(spacing=...)"
_MOMENTUM = "the optimizer of GraphCoupling: GraphCoupling(**sentence.replace(optimizer=MomentumGains(...)))"
_SCHEDULE = _MOMENTUM.replace("...", "exaggeration=Exaggeration(factor, n_iter)")
_GRAPH = "neighbors, of fit: fit(X, neighbors=(indices, distances))"
_OWN = "input, of GraphCoupling: GraphCoupling(**sentence.replace(input=graph))"
_SEARCH = "search, of GraphModel: search='exact' or 'approximate'"
_PIPELINE = "a pipeline, as make_pipeline(PCA(50), method)"
_SPACE = "the metric of a latent law: GraphModel(..., metric=laws.Hyperbolic()) or laws.Spherical()"
_NOT_YET = "there is no equivalent here yet"
_NOTHING = "there is nothing to set"

PEERS: dict[str, str] = {
    # scikit-learn
    "n_iter": "max_iter",
    "n_init": "n_starts",
    "n_iter_without_progress": "patience, of graphcouple.solve; a run ends once it has settled",
    "min_grad_norm": "tol, of graphcouple.solve; a run ends once it has settled",
    "method": "summation: 'exact', 'barnes_hut' or 'particle_mesh'",
    **dict.fromkeys(("angle", "theta"), "summation=BarnesHut(angle=...)"),
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
    "early_exaggeration_iter": _SCHEDULE,
    "knn_kwargs": _SEARCH,
    "negative_gradient_method": "summation: 'exact', 'barnes_hut' or 'particle_mesh'",
    **dict.fromkeys(("n_interpolation_points", "min_num_intervals", "ints_in_interval"), _MESH),
    **dict.fromkeys(("initial_momentum", "final_momentum", "max_step_norm"), _MOMENTUM),
    "max_grad_norm": _NOT_YET + ": max_step of MomentumGains bounds a step, not a gradient",
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
    **dict.fromkeys(("transform_seed", "transform_queue_size"), _NOTHING + ": transform is not random"),
    "low_memory": _NOTHING + ": memory is always linear in the number of neighbours",
    "densmap": "DensMAP(UMAP(...)), or terms=[Density()]",
    "dens_lambda": "DensMAP(weight=...)",
    "dens_frac": _NOTHING + ": the density joins when exaggeration has ended",
    "dens_var_shift": _NOTHING + ": radii are matched by least squares, which divide by no variance",
    "output_dens": "metrics.density_match(X, embedding_), which compares the radii",
    **dict.fromkeys(("output_metric", "output_metric_kwds"), _SPACE),
    "tqdm_kwds": "verbose",
    "angular_rp_forest": _NOTHING + ": the search is chosen by the metric and the size",
    "ParametricCoupling.dims": _NOTHING + ": the columns of X are the network's inputs",
    "transform_mode": _NOT_YET + ": transform gives places; posterior_.mean() is the graph of the fitted points",
    "alignment_regularisation": "AlignedMaps(weight=...)",
    "alignment_window_size": _NOT_YET + ": each data set is tied to the next one",
    "force_approximation_algorithm": "search, of GraphModel: search='approximate'",
    "disconnection_distance": "edge_prior, of the prior: it can forbid edges",
    # Rtsne, FIt-SNE and cuML
    **dict.fromkeys(("pca", "initial_dims", "pca_center", "pca_scale", "partial_pca", "n_pca", "apply_pca"), _PIPELINE),
    **dict.fromkeys(("momentum", "mom_switch_iter", "pre_momentum", "post_momentum"), _MOMENTUM),
    **dict.fromkeys(("stop_lying_iter", "exaggeration_iter"), _SCHEDULE),
    "exaggeration_factor": "early_exaggeration",
    "dims": "n_components",
    "Y_init": "init",
    "is_distance": "metric='precomputed'",
    "eta": "learning_rate",
    "num_threads": "n_jobs",
    "seed": "random_state",
    "TSNE.normalize": _NOTHING + ": a common factor of X changes nothing",
    "check_duplicates": _NOTHING + ": equal rows may stay; unique=True fits each of them once",
    # uwot
    "nn_method": _GRAPH,
    "nn_args": _SEARCH,
    **dict.fromkeys(("n_threads", "n_sgd_threads"), "n_jobs"),
    "alpha": "learning_rate",
    "gamma": "repulsion_strength",
    "UMAP.bandwidth": _NOT_YET + ": LocalConnectivity sets the bandwidths, from n_neighbors",
    "binary_edge_weights": _OWN,
    "init_sdev": _NOTHING + ": the start gets the size of least loss",
    "epoch_callback": "callback",
    "ret_model": _NOTHING + ": the fitted estimator is the model; see transform and save",
    **dict.fromkeys(("ret_nn", "ret_extra"), "posterior_ of the fitted estimator, for the graph"),
    # scanpy
    **{name: f"graphcouple.scverse.embed(adata, method, {name}=...)" for name in ("neighbors_key", "use_rep", "n_pcs")},
    # PaCMAP
    "FP_ratio": "far_ratio",
    "MN_ratio": "mid_ratio",
    "num_iters": "max_iter",
    "lr": "learning_rate",
    "distance": "metric",
    # PHATE and diffusion maps
    "PHATE.knn": "perplexity",
    "knn": "n_neighbors",
    "PHATE.decay": _NOTHING + ": the kernel is Gaussian; input=GraphModel(...) takes another",
    "knn_dist": "metric",
    "PHATE.mds_solver": _NOTHING + ": MetricMDS makes the map",
    **dict.fromkeys(("n_evecs", "n_comps"), "n_components"),
    "k": "n_neighbors",
    "epsilon": "input=GraphModel(Gaussian(), 'E', ConstantBandwidth(scale))",
}

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
    # Only fit sets the divergence.
    if name in ATTRIBUTES and (hasattr(kind, named) or named == "kl_divergence_"):
        return f"{kind.__name__} has no {name}; use {ATTRIBUTES[name]}."
    near = [] if name.startswith("_") else difflib.get_close_matches(name, [*dir(kind), "embedding_"], 1, 0.8)
    if near and near[0] != name:
        return f"{kind.__name__} has no attribute {name!r}; did you mean {near[0]!r}?"
    if name.endswith("_") and not name.startswith("_") and not is_fitted:
        return f"{kind.__name__} has no attribute {name!r}; if it is one that fit sets, call fit first."
    return f"{kind.__name__!r} object has no attribute {name!r}"


def _of_method(owner: str, unknown: str, hint: str) -> str:
    """Return a call of a method that has this parameter, or the one of the hint; empty if none has."""
    from graphcouple import estimators

    own = getattr(getattr(estimators, owner, None), "plain_method", estimators.TSNE)
    for kind in (own, estimators.UMAP, estimators.TSNE):
        known = kind()._flat_params()
        if unknown in known:
            return f"{kind.__name__}({unknown}=...)"
        if (named := hint.partition(":")[0].partition("=")[0]) in known:
            return f"{kind.__name__}({hint if '=' in hint else f'{named}=...'})"
    return ""


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
    if "estimator" in known and (call := _of_method(owner, unknown, hint)):
        return f"{owner} has no parameter {unknown!r}; give it to the method, as in {owner}({call})."
    near = difflib.get_close_matches(unknown, known, 1, 0.8)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}."
    if "estimator" in known and not near:
        hint += f" Parameters of the method go to it, as in {owner}(UMAP(n_neighbors=10))."
    return f"{owner} has no parameter {unknown!r}; {hint}"
