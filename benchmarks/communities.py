"""Groups of hidden graphs: on the digits, in planted partitions beside Leiden's algorithm, and of a file's points.

    python benchmarks/communities.py [DATA.npz]

Prints Rand indices; the silhouettes of the digits' classes by t-SNE, without and with communities; and for a file with
an array X, such as all of MNIST, the number of groups and the seconds.
"""

import sys
import time

import igraph
import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import graphcouple as gc


def digits():
    X, y = gc.datasets.load("digits")
    plain = gc.TSNE(random_state=0).fit(X)
    input_law, latent = plain.sentence.input, plain.sentence.latent
    law = gc.laws.CommunityLaw(input_law)
    grouped = gc.GraphCoupling(law, latent, init="pca", random_state=0).fit_transform(X)
    of_input = gc.laws.communities(plain.posterior_)
    of_map = sp.csr_array(plain.posterior_.mean() + latent.posterior(plain.embedding_.astype(float)).mean())
    of_both = gc.laws.communities(gc.UnitOutDegree().around(of_map))
    print(
        f"digits: {of_input.memberships.shape[1]} groups, {adjusted_rand_score(y, of_input.labels):.3f} with classes,"
    )
    print(f"  {adjusted_rand_score(of_both.labels, of_input.labels):.3f} with groups of both graphs")
    scores = [gc.metrics.evaluate(X, Z, y)["silhouette"] for Z in (plain.embedding_, grouped)]
    print("  silhouettes of t-SNE without and with communities: {:.2f}, {:.2f}".format(*scores))


def planted(n, n_groups, within, between):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n_groups), n // n_groups)
    upper = np.triu(rng.random((n, n)) < np.where(labels[:, None] == labels, within, between), 1)
    adjacency = (upper | upper.T).astype(float)
    leiden = igraph.Graph.Adjacency(adjacency, mode="undirected").community_leiden("modularity", n_iterations=-1)
    found = gc.laws.communities(gc.Binary().around(sp.csr_array(adjacency) * 0.999), edges_per_node=None)
    indices = [adjusted_rand_score(labels, each) for each in (found.labels, leiden.membership)]
    print(f"{n_groups} planted groups of {n}: {found.memberships.shape[1]} groups, Leiden {len(leiden)};", end=" ")
    print("Rand indices {:.3f}, {:.3f}".format(*indices))


def points(path):
    data = np.load(path)
    X = data["X"].reshape(len(data["X"]), -1).astype(np.float32)
    posterior = gc.TSNE().sentence.input.posterior(X)
    start = time.perf_counter()
    found = gc.laws.communities(posterior)
    print(f"{path}: {found.memberships.shape[1]} groups in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    digits()
    for case in ((300, 3, 0.2, 0.02), (1000, 5, 0.05, 0.005), (1000, 2, 0.03, 0.01), (400, 1, 0.05, 0.05)):
        planted(*case)
    for path in sys.argv[1:]:
        points(path)
