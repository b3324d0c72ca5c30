"""Tables 2 and 3 of the graph-coupling paper: large neighborhoods kept by t-SNE and UMAP from different starts."""

import graphcouple as gc

INITS = {"random": "random", "PCA": "pca", "Laplacian eigenmaps": "spectral", "ccPCA": "ccpca"}
METHODS = {"t-SNE": gc.TSNE, "UMAP": gc.UMAP}


def rows_of(weights):
    """Return each method's rows: the paper's starts, hierarchical coupling with weights from ccPCA, and two scales."""
    ours = [*(f"hierarchical, λ = {weight:g}" for weight in weights), "two scales"]
    return {name: [*INITS, *ours] for name in METHODS}


def _map(name, row, X, seed):
    preset = METHODS[name]
    if row in INITS:
        return preset(init=INITS[row], random_state=seed).fit_transform(X)
    if row == "two scales":
        return gc.TwoScaleCoupling(preset(), random_state=seed).fit_transform(X)
    weight = float(row.rsplit("=", 1)[1])
    plain = preset(init="ccpca", random_state=seed)
    return gc.HierarchicalCoupling(plain, weight=weight, random_state=seed).fit_transform(X)


def measure(X, weights, seed):
    """Return the scores of all rows for one seed, judged in one pass over the data."""
    maps = {f"{name}|{row}": _map(name, row, X, seed) for name, rows in rows_of(weights).items() for row in rows}
    maps["no refinement|PCA"] = gc.PrecisionCoupling(2).fit_transform(X)
    maps["no refinement|ccPCA"] = gc.CCPCA(random_state=seed).fit_transform(X)
    table = gc.metrics.evaluate(X, maps, n_rows=None)
    names = ["R(10)", "R(n/4)", "R(n/2)"]
    return {key: [float(value) for value in table.loc[key, names]] for key in maps}
