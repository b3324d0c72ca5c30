"""Whether an embedding shows the classes, and how it arranges them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._numba.threads import effective_n_jobs
from graphcouple._support.validation import (
    UNLABELLED,
    are_measured,
    centred,
    check_integer,
    check_labels,
    check_random_state,
    warn,
)
from graphcouple.graphs import FloatArray
from graphcouple.metrics._blocks import of_unit_size
from graphcouple.metrics._distances import Undefined, check_apart, disparity
from graphcouple.metrics._relations import as_map
from graphcouple.neighbors import as_points, near_origin

# The silhouette compares all pairs of its rows, here 10⁸.
_SILHOUETTE_ROWS = 10_000

# Components whose lengths differ by less than this share of the first are equally long.
_EQUAL, _EQUAL_IN_SINGLE = 1e-9, 1e-5


def check_classes(y: Any, n: int) -> NDArray[np.int64]:
    """Return class numbers from 0; raise unless every point has one of at least two classes."""
    labels = check_labels(y, n)
    if are_measured(labels):
        raise ValueError("y must hold classes, got numbers that are not whole; cut them into classes or leave y out.")
    names, classes = np.unique(labels, return_inverse=True)
    if names.size < 2:
        raise ValueError(f"y holds a single class, {names.tolist()[0]!r}; scores of classes need two or more.")
    unknown = [k for k, name in enumerate(names.tolist()) if name in (UNLABELLED, str(UNLABELLED))]
    if unknown and names.size > 2:
        warn(
            f"y is -1 for {np.count_nonzero(classes == unknown[0])} points, which are scored as one class; in `fit`, "
            "-1 stands for an unknown class. Leave those points out if their class is not known."
        )
    if names.size == n:
        raise ValueError(
            f"each of the {n} points has a class of its own; scores of classes need points that share a class."
        )
    return classes.astype(np.int64)


def knn_accuracy(Z: Any, y: Any, n_neighbors: int = 10, *, n_folds: int = 5, n_jobs: int | None = None) -> float:
    """Return the cross-validated accuracy of classifying points by their nearest neighbors in the embedding.

    Parameters
    ----------
    Z : array of shape (n, q)
    y : array of shape (n,)
        Classes.
    n_neighbors : int, default=10
    n_folds : int, default=5
        Stratified folds, in the order of the points.
    n_jobs : int, optional
        Threads; the default is every core.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        When lengths differ, there is a single class, or there are too few points for the neighbors or folds.

    See Also
    --------
    sklearn.neighbors.KNeighborsClassifier, sklearn.model_selection.cross_val_score

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> round(gc.metrics.knn_accuracy(X, y), 2)
    0.98
    """
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    # scikit-learn's distances from products cancel far from 0.
    points = near_origin(as_map(Z))
    classes = check_classes(y, points.shape[0])
    largest = int(np.bincount(classes).max())
    if check_integer("n_folds", n_folds, 2) > largest:
        raise ValueError(f"n_folds={n_folds} must be at most {largest}, the number of points of the largest class.")
    n_training = points.shape[0] - -(-points.shape[0] // n_folds)
    if check_integer("n_neighbors", n_neighbors, 1) > n_training:
        raise ValueError(f"n_neighbors={n_neighbors} must be at most {n_training}, the points of all folds but one.")
    classifier = KNeighborsClassifier(n_neighbors, n_jobs=effective_n_jobs(n_jobs))
    with warnings.catch_warnings():
        # scikit-learn warns of classes with fewer points than folds, which some folds lack.
        warnings.simplefilter("ignore", UserWarning)
        return float(cross_val_score(classifier, points, classes, cv=StratifiedKFold(n_folds)).mean())


class ClusterScores(NamedTuple):
    """Scores of the k-means clusters of an embedding.

    Attributes
    ----------
    nmi : float
        Normalised mutual information with the classes; NaN without classes.
    silhouette : float
        From −1 to 1; high for dense, separated clusters.
    davies_bouldin : float
        At least 0; low for dense, separated clusters.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> bool(gc.metrics.cluster_scores(X[:, 2:], y).nmi > 0.8)
    True
    """

    nmi: float
    silhouette: float
    davies_bouldin: float


def cluster_scores(
    Z: Any, y: Any = None, n_clusters: int | None = None, *, n_init: int = 10, random_state: Any = 0
) -> ClusterScores:
    """Return NMI, silhouette and Davies–Bouldin index of k-means on the embedding.

    Parameters
    ----------
    Z : array of shape (n, q)
    y : array of shape (n,), optional
        Classes.
    n_clusters : int, optional
        The default is the number of classes.
    n_init : int, default=10
        Runs of k-means; the best one is used.
    random_state : int, Generator, RandomState or None, default=0
        Seeds k-means, and the choice of the 10,000 points whose silhouettes are averaged if there are more.

    Returns
    -------
    ClusterScores

    Raises
    ------
    TypeError, ValueError
        When lengths differ, there is a single class, neither `y` nor `n_clusters` is given, or there are fewer
        different points than clusters.

    References
    ----------
    LaptSNE paper, section 4.1. The scores are scikit-learn's.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> round(gc.metrics.cluster_scores(X, y).nmi, 2)
    0.76
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import davies_bouldin_score, normalized_mutual_info_score, silhouette_score
    from sklearn.utils import check_random_state as sklearn_random_state

    points: FloatArray = as_map(Z).astype(np.float64, copy=False)
    n = points.shape[0]
    classes = None if y is None else check_classes(y, n)
    if n_clusters is None and classes is None:
        raise ValueError("n_clusters must be given if y is not.")
    k = int(classes.max()) + 1 if n_clusters is None and classes is not None else n_clusters
    k = check_integer("n_clusters", k, 2)
    if k > n - 1:
        raise ValueError(f"n_clusters={k} must be at most {n - 1}, one less than the points.")
    n_different = np.unique(points, axis=0).shape[0]
    if n_different < k:
        raise Undefined(f"there are only {n_different} different points, and n_clusters={k} needs {k} or more.")
    seed = random_state
    if not (isinstance(seed, np.random.RandomState) or (isinstance(seed, (int, np.integer)) and 0 <= seed < 2**32)):
        seed = int(check_random_state(random_state).integers(2**31))
    clusters = KMeans(k, n_init=n_init, random_state=seed).fit_predict(points)
    # Distances from products cancel far from 0, and scikit-learn takes clusters of less than 1e-8 for points.
    points, rows = of_unit_size(centred(points)), np.arange(n)
    if n > _SILHOUETTE_ROWS:
        rows = sklearn_random_state(seed).permutation(n)[:_SILHOUETTE_ROWS]
        if np.unique(clusters[rows]).size < 2:
            # A sample may miss small clusters.
            rows = np.union1d(rows, np.unique(clusters, return_index=True)[1])
    return ClusterScores(
        float("nan") if classes is None else float(normalized_mutual_info_score(classes, clusters)),
        float(silhouette_score(points[rows], clusters[rows])),
        float(davies_bouldin_score(points, clusters)),
    )


def class_mean_disparity(X: Any, Z: Any, y: Any) -> float:
    """Return the disparity between the arrangement of the classes and the best linear one.

    This is the Procrustes disparity between the class means in the embedding and the principal components of the class
    means in the data: the share of variance left after the best translation, rotation, reflection and scaling.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q)
    y : array of shape (n,)
        Classes.

    Returns
    -------
    float
        From 0 (the same arrangement) to 1. It is always 0 for two classes.

    Raises
    ------
    TypeError, ValueError
        When lengths differ, there is a single class, all class means coincide, or no linear arrangement is the best, as
        for class means that are equally far apart.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> round(gc.metrics.class_mean_disparity(X, X[:, :2], y), 3)
    0.025
    """
    points = as_points(X)
    embedding = as_map(Z, n=points.shape[0])
    classes = check_classes(y, points.shape[0])
    data_means, map_means = _class_means(points, classes), _class_means(embedding, classes)
    check_apart(data_means, "the class means of X")
    centred = data_means - data_means.mean(axis=0)
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    linear = np.zeros_like(map_means)
    q = min(map_means.shape[1], lengths.size)
    equal = _EQUAL_IN_SINGLE if points.dtype == np.float32 else _EQUAL
    if q < lengths.size and lengths[q - 1] - lengths[q] <= equal * lengths[0] < lengths[q]:
        raise Undefined(
            f"principal components {q} and {q + 1} of the class means of X are equally long, so no arrangement in {q} "
            "dimensions is the best linear one."
        )
    linear[:, :q] = centred @ axes[:q].T
    return disparity(linear, map_means, ("the class means of X", "the class means of Z"))


def _class_means(points: Any, classes: NDArray[np.int64]) -> NDArray[np.float64]:
    counts = np.bincount(classes)
    weights = 1.0 / counts[classes]
    averages = sp.csr_array((weights, (classes, np.arange(classes.size))), shape=(counts.size, classes.size))
    means = averages @ points
    return np.asarray(means.toarray() if sp.issparse(means) else means, dtype=np.float64)
