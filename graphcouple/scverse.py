"""Embeddings of annotated data (AnnData) as in scanpy, written to `obsm` and `uns`.

scanpy itself is not needed, but its plots show the results: ``sc.pl.embedding(adata, "X_tsne", color="cell_type")``.
To let ``sc.pp.neighbors`` use this library's search, pass it a `graphcouple.neighbors.NeighborsTransformer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphcouple import estimators
from graphcouple._support.registry import METHODS
from graphcouple._support.validation import check_integer, warn
from graphcouple.datasets._annotated import MOST_COLUMNS, default_representation, in_memory, labels_of, matrix_of
from graphcouple.estimators import GraphCoupling, Sentence
from graphcouple.graphs import FloatArray
from graphcouple.metrics import evaluate

__all__ = ["embed", "score", "transform"]

# Names of one metric; minkowski is the Euclidean distance unless it has parameters.
_SAME = {"l2": "euclidean", "minkowski": "euclidean", "l1": "manhattan", "cityblock": "manhattan"}

# Some of the reference's cells show which mean its principal components left out. If it differs between cells by more
# than this share of a component's deviation, the data have changed.
_SOME_CELLS, _CHANGED = 10_000, 0.01


def embed(
    adata: Any,
    method: Any = "tsne",
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    random_state: Any = 0,
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Embed the observations of annotated data.

    Parameters
    ----------
    adata : AnnData
        Backed files are read where they are needed; sparse points stay sparse.
    method : str, estimator or Sentence, default="tsne"
        A name that ``graphcouple embed --method`` takes; or an estimator, which is fitted and can then place the
        observations of other data by `transform`; or the sentence of a method.
    use_rep : str, optional
        A key of `obsm`, or "X". By default "X_pca", or `X` if it has at most 50 columns.
    n_pcs : int, optional
        Use the first columns of the representation only.
    layer : str, optional
        A layer in place of `X`.
    neighbors_key : str, optional
        Take the neighbours that ``sc.pp.neighbors`` stored under this key ("neighbors" by default there) instead of
        searching for them. t-SNE's perplexity of 30 needs ``n_neighbors=91`` there. Fewer neighbours cut its rows
        short, and a perplexity that is not below their number is lowered, with a warning.
        If only connectivities are stored, they are the mean of the input's graph, and a `GraphCoupling` of the method's
        sentence is fitted, not the estimator itself.
    key_added : str, optional
        The key of `obsm` and `uns`. By default ``"X_"`` and the method's name in `obsm`, and the name in `uns`.
    random_state : int or RandomState, default=0
        For methods by name or sentence; an estimator has its own.
    copy : bool, default=False
        Return a copy with the result instead of writing to `adata`.
    **parameters
        Refused: an estimator takes them, as ``embed(adata, gc.UMAP(min_dist=0.3))``.

    Returns
    -------
    AnnData or None
        The copy, if `copy` is true. The embedding is in ``obsm[key]``; ``uns[key]["params"]`` has the parameters, the
        sentence of the method, its loss and why it stopped, all as text and numbers that files can hold.

    Warns
    -----
    UserWarning
        When the stored neighbours were found by another metric than the estimator's.

    Raises
    ------
    KeyError
        When a representation, a layer or stored neighbours do not exist.
    TypeError, ValueError
        When the method is unknown, the key holds something other than a map, or the data are unusable; see `fit` of the
        estimator.

    Examples
    --------
    >>> import anndata
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> adata = anndata.AnnData(X)
    >>> gc.scverse.embed(adata, "umap")
    >>> adata.obsm["X_umap"].shape, adata.uns["umap"]["params"]["use_rep"]
    ((150, 2), 'X')
    """
    adata = _copied(adata) if copy else adata
    name, estimator = _method(method, random_state)
    if parameters:
        given, kind = next(iter(parameters)), type(estimator).__name__
        remedy = "it is no parameter of the method either"
        if given in estimator.get_params():
            ours = "gc." * type(estimator).__module__.startswith("graphcouple")
            remedy = f"give it to the method: embed(adata, {ours}{kind}({given}=...))"
        raise TypeError(f"embed has no argument {given!r}; {remedy}.")
    points, used = _representation(adata, use_rep, n_pcs, layer)
    options: dict[str, Any] = {}
    if neighbors_key is not None:
        estimator, options = _with_neighbors(adata, neighbors_key, estimator)
        if estimator is method:
            _check_metric(adata.uns[neighbors_key].get("params", {}).get("metric"), estimator)
    in_obsm, in_uns = (f"X_{name}", name) if key_added is None else (key_added, key_added)
    if in_obsm == "X_pca" and (adata.n_vars > MOST_COLUMNS or matrix_of(adata) is None):
        raise ValueError("later calls would take the map in obsm['X_pca'] for the data; pass key_added='X_pca_map'.")
    if in_uns in adata.uns and not _is_replaceable(adata.uns[in_uns]):
        raise ValueError(f"uns[{in_uns!r}] is no record of a map; pass another key_added to keep both.")
    n_components = estimator.get_params().get("n_components")
    if isinstance(n_components, Integral):
        _check_free(adata, in_obsm, int(n_components))
    estimator.fit(points, **options)
    _write(adata, in_obsm, estimator.embedding_)
    stated = {"method": name, "use_rep": used, "n_pcs": n_pcs, "neighbors_key": neighbors_key}
    stated |= {"random_state": estimator.get_params().get("random_state")}
    adata.uns[in_uns] = {"params": _storable(stated | _outcome(estimator))}
    return adata if copy else None


def transform(
    query: Any,
    estimator: Any,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    reference: Any = None,
    key_added: str = "X_map",
    copy: bool = False,
) -> Any:
    """Place the observations of annotated data in the map of others.

    Parameters
    ----------
    query : AnnData
    estimator : fitted estimator
        As fitted by `embed`, or loaded by `graphcouple.load`.
    use_rep, n_pcs, layer : optional
        As for `embed`. The columns must mean the same: principal components that were computed for the query alone do
        not. Give `reference` then.
    reference : AnnData, optional
        The data of the map. The query is projected on its principal components, ``varm["PCs"]``, gene by gene; so
        `use_rep` does not apply.
    key_added : str, default="X_map"
        The key of `obsm`.
    copy : bool, default=False
        Return a copy with the result instead of writing to `query`.

    Returns
    -------
    AnnData or None

    Raises
    ------
    KeyError
        When a representation, a layer, or one of the reference's genes does not exist.
    NotFittedError, TypeError, ValueError
        See `transform` of the estimator.

    Examples
    --------
    >>> import anndata
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> tsne = gc.TSNE(random_state=0)
    >>> gc.scverse.embed(anndata.AnnData(X[::2]), tsne)
    >>> query = anndata.AnnData(X[1::2])
    >>> gc.scverse.transform(query, tsne)
    >>> query.obsm["X_map"].shape
    (75, 2)
    """
    if hasattr(estimator, "obsm"):
        raise TypeError(
            "transform takes a query and a fitted estimator, got annotated data for the estimator: "
            "transform(query, fitted, reference=adata)."
        )
    check_is_fitted(estimator)
    query = _copied(query) if copy else query
    if reference is None:
        points = _representation(query, use_rep, n_pcs, layer)[0]
    elif use_rep not in (None, "X_pca"):
        raise ValueError(
            f"use_rep={use_rep!r} does not apply with a reference, whose principal components are used; give one."
        )
    else:
        points = _on_components_of(reference, query, n_pcs, layer)
    _write(query, key_added, np.asarray(estimator.transform(points)))
    return query if copy else None


def score(
    adata: Any,
    basis: Any = "X_tsne",
    labels: str | None = None,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    **options: Any,
) -> Any:
    """Score one or several embeddings of annotated data by `graphcouple.metrics.evaluate`.

    Parameters
    ----------
    adata : AnnData
    basis : str or sequence of str, default="X_tsne"
        Keys of `obsm`.
    labels : str, optional
        A column of `obs` with classes.
    use_rep, n_pcs, layer : optional
        The representation that the embeddings are compared with; as for `embed`.
    **options
        Options of `evaluate`.

    Returns
    -------
    pandas.Series, or pandas.DataFrame with a row for each of several embeddings

    Raises
    ------
    KeyError
        When a key does not exist.

    Examples
    --------
    >>> import anndata
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> adata = anndata.AnnData(X)
    >>> gc.scverse.embed(adata, "pca")
    >>> bool(gc.scverse.score(adata, "X_pca")["R(10)"] > 0.6)
    True
    """
    points = _representation(adata, use_rep, n_pcs, layer)[0]
    y = None if labels is None else labels_of(_entry(adata.obs, labels, "obs"))
    if isinstance(basis, str):
        return evaluate(points, _entry(adata.obsm, basis, "obsm"), y, **options)
    return evaluate(points, {key: _entry(adata.obsm, key, "obsm") for key in basis}, y, **options)


def _method(method: Any, random_state: Any) -> tuple[str, Any]:
    """Return a method's name and its estimator."""
    if isinstance(method, Sentence):
        return "graphcoupling", GraphCoupling(**method.replace(random_state=random_state))
    if isinstance(method, str):
        name = method.lower().replace("_", "-")
        if name not in METHODS:
            hint = "; scanpy's diffmap is 'diffusion-maps'" if name == "diffmap" else ""
            raise ValueError(f"method must be one of {', '.join(METHODS)}, or an estimator, got {method!r}{hint}.")
        estimator = getattr(estimators, METHODS[name])()
        seeded = "random_state" in estimator.get_params()
        return name, estimator.set_params(random_state=random_state) if seeded else estimator
    if isinstance(method, type) or not hasattr(method, "get_params"):
        raise TypeError(f"method must be a name, an estimator such as gc.TSNE(), or a Sentence, got {method!r}.")
    named = {cls: name for name, cls in METHODS.items()}
    return named.get(type(method).__name__, type(method).__name__.lower()), method


def _representation(adata: Any, use_rep: str | None, n_pcs: int | None, layer: str | None) -> tuple[Any, str]:
    """Return the points, and the name of their representation."""
    if use_rep is not None and layer is not None and use_rep != "X":
        raise ValueError(f"use_rep={use_rep!r} and layer={layer!r} name two representations; give one of them.")
    if not hasattr(adata, "obsm"):
        raise TypeError(f"pass annotated data, such as anndata.AnnData(X), got {type(adata).__name__}.")
    used = use_rep or default_representation(adata)
    if layer is not None:
        points, used = _entry(adata.layers, layer, "layers"), f"layer {layer}"
    else:
        points = matrix_of(adata) if used == "X" else _entry(adata.obsm, used, "obsm")
    if points is None:
        raise KeyError(
            f"adata has no X; pass use_rep, one of {sorted(adata.obsm)}, or layer, one of {sorted(adata.layers)}."
        )
    if use_rep is None and used == "X" and adata.n_vars > MOST_COLUMNS:
        raise KeyError(
            f"adata has {adata.n_vars} columns and no obsm['X_pca']; run sc.pp.pca(adata) first, or pass use_rep='X'."
        )
    return _leading(in_memory(points), n_pcs, used), used


def _leading(points: Any, n_pcs: int | None, name: str) -> Any:
    if n_pcs is not None and check_integer("n_pcs", n_pcs, 1) > points.shape[1]:
        raise ValueError(f"n_pcs={n_pcs}, but {name} has {points.shape[1]} columns.")
    return points[:, :n_pcs]


def _entry(container: Any, key: str, name: str) -> Any:
    if key not in container:
        raise KeyError(f"{name} has no {key!r}; it has {sorted(map(str, container.keys()))}.")
    return container[key]


def _with_neighbors(adata: Any, key: str, estimator: Any) -> tuple[Any, dict[str, Any]]:
    """Return the estimator, and the options of `fit` that give it the stored neighbours."""
    if key not in adata.uns:
        raise KeyError(f"uns has no {key!r}; run sc.pp.neighbors(adata) first.")
    if not getattr(estimator, "couples_laws", False):
        raise ValueError(f"{type(estimator).__name__} does not couple two laws, so it takes no stored neighbors.")
    stored = adata.uns[key]
    distances = stored.get("distances_key", "distances")
    if distances in adata.obsp:
        return estimator, {"neighbors": in_memory(adata.obsp[distances])}
    graph = in_memory(_entry(adata.obsp, stored.get("connectivities_key", "connectivities"), "obsp"))
    return GraphCoupling(**estimator.sentence.replace(input=graph)), {}


def _check_metric(found: Any, estimator: Any) -> None:
    """Warn if stored neighbours were found by another metric than the metric by which new cells are searched."""
    own = getattr(estimator.sentence.input, "metric", found)
    if isinstance(found, str) and _SAME.get(str(own), own) != _SAME.get(found, found):
        warn(
            f"the stored neighbors were found by metric={found!r}, and {type(estimator).__name__} searches neighbors "
            f"of new cells by metric={own!r}; give metric={found!r} to the method or the law that has one."
        )


def _on_components_of(reference: Any, query: Any, n_pcs: int | None, layer: str | None) -> FloatArray:
    """Return the query's coordinates on the reference's principal components."""
    for name, data in (("query", query), ("reference", reference)):
        if not data.var_names.is_unique:
            raise ValueError(f"names of variables repeat in the {name}; run {name}.var_names_make_unique() first.")
    missing = reference.var_names.difference(query.var_names)
    if len(missing):
        raise KeyError(f"the query lacks {len(missing)} of the reference's variables, such as {missing[0]!r}.")
    layer = layer or reference.uns.get("pca", {}).get("params", {}).get("layer")
    # scanpy writes NaN for genes that were left out of the components.
    components = np.nan_to_num(_leading(np.asarray(_entry(reference.varm, "PCs", "varm")), n_pcs, "varm['PCs']"))
    query = query[:, reference.var_names]
    both = (reference, query)
    mean, points = (matrix_of(data) if layer is None else _entry(data.layers, layer, "layers") for data in both)
    if mean is None or points is None:
        lacking = "reference" if mean is None else "query"
        raise KeyError(f"the {lacking} has no X; pass layer, the name of a layer that both have.")
    mean, points = in_memory(mean), in_memory(points)
    centred = reference.uns.get("pca", {}).get("params", {}).get("zero_center", True)
    shift = np.asarray(mean.mean(axis=0)).ravel() @ components if centred else 0.0
    own = np.asarray(reference.obsm["X_pca"])[:, : components.shape[1]] if "X_pca" in reference.obsm else components[:0]
    if centred and own.shape == (reference.n_obs, components.shape[1]):
        # A part of the cells keeps the components and the mean of all.
        some = slice(None, None, -(-reference.n_obs // _SOME_CELLS))
        shifts = np.asarray(mean[some] @ components) - own[some]
        shift = shifts.mean(axis=0)
        if shifts.std(axis=0).max() > _CHANGED * own.std(axis=0).max():
            warn(
                "the reference's data have changed since its PCA, so new cells have other coordinates; run "
                "scanpy.pp.pca again, or pass the layer that it was run on."
            )
    return np.asarray(points @ components) - shift


def _check_free(adata: Any, key: str, n_components: int) -> None:
    if key in adata.obsm and (columns := adata.obsm[key].shape[1]) != n_components:
        raise ValueError(f"obsm[{key!r}] has {columns} columns, and the map {n_components}; pass another key_added.")


def _write(adata: Any, key: str, Z: FloatArray) -> None:
    _check_free(adata, key, Z.shape[1])
    adata.obsm[key] = Z


def _is_replaceable(record: Any) -> bool:
    """Return whether a record holds parameters only, as scanpy's of maps do, or is one of `embed`, with a version."""
    if not isinstance(record, Mapping):
        return False
    params = record.get("params")
    return set(record) <= {"params"} or (isinstance(params, Mapping) and "version" in params)


def _outcome(estimator: Any) -> dict[str, Any]:
    from graphcouple import __version__

    names = ("loss", "kl_divergence", "n_iter", "stop_reason")
    values = {"version": __version__} | {name: getattr(estimator, f"{name}_", None) for name in names}
    return values | ({"sentence": str(estimator.sentence)} if getattr(estimator, "couples_laws", False) else {})


def _storable(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that files can hold: numbers and text; others as text, without None."""
    known = {name: value for name, value in values.items() if value is not None}
    return {name: value if isinstance(value, (str, int, float)) else str(value) for name, value in known.items()}


def _copied(adata: Any) -> Any:
    return adata.to_memory() if adata.isbacked else adata.copy()
