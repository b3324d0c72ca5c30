"""Points and labels of annotated data (AnnData), in memory or from .h5ad files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._support.validation import require
from graphcouple.datasets._columns import check_size

# Data with more columns than this are represented by their principal components, as in scanpy.
MOST_COLUMNS = 50


def default_representation(adata: Any) -> str:
    """Return "X_pca" if it exists and X is missing or has many columns, else "X"."""
    has_pca = "X_pca" in adata.obsm
    return "X_pca" if has_pca and (adata.n_vars > MOST_COLUMNS or matrix_of(adata) is None) else "X"


def matrix_of(adata: Any) -> Any:
    """Return X, or None if it is missing, for which backed files raise an error."""
    try:
        return adata.X
    except KeyError:
        return None


def in_memory(points: Any) -> Any:
    """Return points as an array or a csr matrix, also from a backed file or a data frame."""
    points = points.to_memory() if hasattr(points, "to_memory") else points
    return points.tocsr() if sp.issparse(points) else np.asarray(points)


def labels_of(column: Any) -> NDArray[Any]:
    """Return the labels of a pandas column: numbers, or texts with None where one is missing."""
    if column.dtype.kind in "iuf":
        return np.asarray(column)
    names = np.array(column.astype(str), dtype=object)
    names[np.asarray(column.isna())] = None
    return names if column.isna().any() else names.astype(np.str_)


def read_h5ad(path: Path, labels: str | None) -> tuple[Any, Any]:
    """Return the points, and the column `labels` of ``obs``, as numbers or text."""
    anndata = require("anndata", "reading .h5ad needs anndata", "scverse")
    try:
        data = anndata.read_h5ad(path, backed="r")
        if labels is not None and labels not in data.obs:
            raise ValueError(f"it has no column {labels!r} for labels, but {', '.join(data.obs.columns) or 'none'}")
        y: NDArray[Any] | None = None if labels is None else labels_of(data.obs[labels])
        key = default_representation(data)
        points = matrix_of(data) if key == "X" else in_memory(data.obsm[key])
        if points is None:
            raise ValueError("it has no X")
        parts = ("data", "indices", "indptr")
        stored = [points.group[name] for name in parts] if hasattr(points, "group") else [points]
        check_size(path, sum(int(np.prod(part.shape)) * part.dtype.itemsize for part in stored))
        return in_memory(points), y
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"cannot read {path.name}: {' '.join(str(error).split())[:200]}.") from None
