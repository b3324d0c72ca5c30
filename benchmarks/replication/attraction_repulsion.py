"""The figures of Draganov and Dohn (2023), Unexplainable explanations, as numbers; the examples draw them."""

import importlib.util
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "examples" / "attraction_repulsion"


def _example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(X, y):
    """Return the distances to PCA by epoch, the accuracies by method, and the cosines by start."""
    distances = _example("pca_by_forces").measure(np.asarray(X[:1000], dtype=np.float64))[2]
    accuracies = _example("two_kernels").measure(np.asarray(X[:5000], dtype=np.float32), y[:5000])[1]
    cosines = _example("gradients").measure(np.asarray(X[:2000], dtype=np.float64))
    shares = {start: [float(np.mean(np.array(c) > 0)), float(np.mean(c))] for start, c in cosines.items()}
    return {"distances": {str(epoch): d for epoch, d in distances.items()}, "accuracies": accuracies, "cosines": shares}


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
