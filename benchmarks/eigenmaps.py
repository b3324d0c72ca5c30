"""Laplacian eigenmaps and stress beside scikit-learn's solvers.

    python benchmarks/eigenmaps.py mnist70k.npz           eigenvectors of one neighbour graph
    python benchmarks/eigenmaps.py mnist70k.npz --angles  angles to scikit-learn's subspaces, of 5,000 points
    python benchmarks/eigenmaps.py --stress               metric scaling of the digits data

The file holds the points, under the name X.

Each solver gets the same matrix, one after the other in one process. The residual is that of the three smallest
eigenvectors of the normalised Laplacian. scikit-learn's "arpack" factorises the matrix, which takes tens of gigabytes
here, so it is left out above 10,000 points; "amg" needs pyamg.
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA, KernelPCA
from sklearn.manifold import MDS, Isomap, LocallyLinearEmbedding, SpectralEmbedding, spectral_embedding

import graphcouple as gc
from graphcouple.spectral import GraphLaplacian


def residuals(laplacian, Z):
    """Residuals of unit eigenvectors, after the rotation that makes them least."""
    roots = np.sqrt(laplacian.mass)
    U = np.linalg.qr(np.column_stack([roots, Z * roots[:, None]]))[0]
    values, rotation = np.linalg.eigh(U.T @ laplacian.times(U))
    U = U @ rotation
    return float(np.linalg.norm(laplacian.times(U) - U * values, axis=0).max()), values[1:]


def angles(X):
    X = X[:5000].astype(np.float64)
    eigenmaps = gc.LaplacianEigenmaps(perplexity=10, n_neighbors=30)
    methods = {
        "Isomap": (gc.Isomap(n_neighbors=10), Isomap(n_neighbors=10, tol=1e-12)),
        "LLE": (
            gc.LocallyLinearEmbedding(n_neighbors=10),
            LocallyLinearEmbedding(n_neighbors=10, tol=1e-14, max_iter=2000),
        ),
        "kernel PCA": (
            gc.KernelPCA(kernel="rbf", kernel_params={"gamma": 0.01}),
            KernelPCA(2, kernel="rbf", gamma=0.01, tol=1e-12),
        ),
        "classical MDS": (gc.ClassicalMDS(), PCA(2, svd_solver="full")),
        "autoencoder": (gc.LinearAutoencoder(), PCA(2, svd_solver="full")),
        "eigenmaps": (eigenmaps, SpectralEmbedding(2, affinity="precomputed", eigen_tol=1e-12, random_state=0)),
    }
    for name, (ours, theirs) in methods.items():
        start = time.perf_counter()
        mine, between = ours.fit_transform(X), time.perf_counter()
        given = X
        if ours is eigenmaps:
            means = ours.posterior_.mean()
            given, between = means + means.T, time.perf_counter()
        other = theirs.fit_transform(given)
        seconds = f"{between - start:6.2f} s, scikit-learn {time.perf_counter() - between:6.2f} s"
        # Eigenmaps weigh points by degree, so only the others have mean 0.
        pair = (mine, other) if ours is eigenmaps else (mine - mine.mean(axis=0), other - other.mean(axis=0))
        print(f"{name:14} {seconds}  largest principal angle {subspace_angles(*pair).max():.1e}", flush=True)


def eigenmaps(X):
    n = len(X)
    support, _ = gc.neighbors.nearest_neighbors(X.astype(np.float32), 15)
    graph = support.to_csr(np.ones(support.n_edges))
    affinity = sp.csr_matrix(graph + graph.T)
    laplacian = GraphLaplacian(affinity)
    for tol in (1e-4, 1e-6, 1e-8):
        start = time.perf_counter()
        Z = GraphLaplacian(affinity).embedding(2, tol)[1]
        report("graphcouple", tol, start, laplacian, Z)
    solvers = ["lobpcg", "amg"] + (["arpack"] if n <= 10_000 else [])
    for solver in solvers:
        for tol in (1e-4, 1e-6, 1e-8):
            start = time.perf_counter()
            try:
                Z = spectral_embedding(affinity, n_components=2, eigen_solver=solver, eigen_tol=tol, random_state=0)
            except (ImportError, ValueError) as error:
                print(f"{solver:12} {error}")
                break
            report(solver, tol, start, laplacian, Z)


def report(name, tol, start, laplacian, Z):
    seconds = time.perf_counter() - start
    residual, values = residuals(laplacian, Z)
    print(f"{name:12} tol {tol:g}  {seconds:6.2f} s  residual {residual:.1e}  eigenvalues {values}", flush=True)


def stress():
    X, _ = gc.datasets.load("digits")
    start = time.perf_counter()
    mds = gc.MetricMDS(random_state=0).fit(X)
    print(f"MetricMDS    {time.perf_counter() - start:6.2f} s  {mds.stress_ / 2:.4e}  {mds.stop_reason_}")
    first = gc.ClassicalMDS().fit_transform(X)
    for iterations in (300, 1000):
        smacof = MDS(2, n_init=1, max_iter=iterations, eps=1e-9, normalized_stress=False, random_state=0)
        start = time.perf_counter()
        smacof.fit_transform(X, init=first)
        print(f"SMACOF {iterations:5} {time.perf_counter() - start:6.2f} s  {smacof.stress_:.4e}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", help=".npz with points X")
    parser.add_argument("--angles", action="store_true")
    parser.add_argument("--stress", action="store_true")
    options = parser.parse_args()
    GraphLaplacian(np.ones((2000, 2000)) - np.eye(2000)).embedding(1)
    if options.stress:
        stress()
    else:
        points = np.load(options.data)["X"]
        angles(points) if options.angles else eigenmaps(points)
