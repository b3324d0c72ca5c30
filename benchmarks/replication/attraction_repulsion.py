"""The figures of Draganov and Dohn (2023), Unexplainable explanations, as numbers; examples draw them."""

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc

METHODS = {
    "PCA with two kernels": gc.TwoKernelPCA,
    "t-SNE": gc.TSNE,
    "UMAP": gc.UMAP,
    "LLE with two kernels": gc.TwoKernelLLE,
}


def distances_to_pca(X):
    """Return the distance of descended PCA from PCA at some epochs, relative to PCA's size."""
    wanted = gc.PrecisionCoupling(svd_solver="full").fit_transform(X)
    places = {}

    def keep(epoch, _loss, Z):
        places[epoch] = Z

    forces = gc.AttractionRepulsionPCA(
        conjugate=False, check_every=1, max_iter=500, tol=1e-12, random_state=0, callback=keep
    ).fit(X)
    # A run that has ended earlier stays where it is.
    maps = {epoch: places.get(epoch, forces.embedding_) for epoch in (0, 100, 500)}
    turned = {epoch: gc.align(Z - Z.mean(axis=0), to=wanted) for epoch, Z in maps.items()}
    return {epoch: float(np.linalg.norm(Z - wanted) / np.linalg.norm(wanted)) for epoch, Z in turned.items()}


def accuracies(X, y):
    """Return the accuracy of ten neighbours in each method's map, over five folds."""
    maps = {name: method(random_state=0).fit_transform(X) for name, method in METHODS.items()}
    return {name: float(cross_val_score(KNeighborsClassifier(10), Z, y, cv=5).mean()) for name, Z in maps.items()}


def cosines(X):
    """Return the cosines of UMAP's and two-kernel LLE's gradients along a run of UMAP from each start."""
    umap, lle = gc.UMAP().sentence, gc.TwoKernelLLE().sentence
    pulls = gc.EffectiveCrossEntropy(umap.input.posterior(X), umap.latent, **umap.coupling.get_params())
    neighbors = lle.input.posterior(X).support
    energy = gc.ReconstructionEnergy(gc.couplings.reconstruction_weights(X, neighbors), lle.latent.kernel)
    found = {}
    for start in ("random", "pca", "spectral"):
        along = found.setdefault(start, [])

        def see(iteration, loss, Z, along=along):
            one, other = (of.gradient(np.asarray(Z, dtype=np.float64)) for of in (pulls, energy))
            along.append(float(np.vdot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other))))

        # No exaggeration: the run follows the stated loss from the first iteration on.
        gc.UMAP(init=start, early_exaggeration=1.0, max_iter=300, n_starts=1, random_state=0, callback=see).fit(X)
    return found


def measure(X, y):
    """Return the distances to PCA by epoch, the accuracies by method, and the cosines by start."""
    distances = distances_to_pca(np.asarray(X[:1000], dtype=np.float64))
    votes = accuracies(np.asarray(X[:5000], dtype=np.float32), y[:5000])
    angles = cosines(np.asarray(X[:2000], dtype=np.float64))
    shares = {start: [float(np.mean(np.array(c) > 0)), float(np.mean(c))] for start, c in angles.items()}
    return {"distances": {str(epoch): d for epoch, d in distances.items()}, "accuracies": votes, "cosines": shares}


def tables(runs):
    """Return the three tables, from `runs` by data set."""
    epochs = ["| data | epoch 0 | epoch 100 | epoch 500 |", "|---|---|---|---|"]
    methods = ["| data | PCA with two kernels | t-SNE | UMAP | LLE with two kernels |", "|---|---|---|---|---|"]
    angles = ["| data | start | positive | mean cosine |", "|---|---|---|---|"]
    for name, found in runs.items():
        epochs.append(f"| {name} | {' | '.join(f'{d:.1e}' for d in found['distances'].values())} |")
        methods.append(f"| {name} | {' | '.join(f'{a:.3f}' for a in found['accuracies'].values())} |")
        angles += [
            f"| {name} | {s} | {100 * share:.0f} % | {mean:.2f} |" for s, (share, mean) in found["cosines"].items()
        ]
    return ["\n".join(table) for table in (epochs, methods, angles)]
