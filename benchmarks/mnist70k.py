"""Make the 70,000 digits of the benchmarks: MNIST's 10,000 test digits, and six copies of each by small affine maps.

python benchmarks/mnist70k.py mnist10k-images-idx3-ubyte.gz mnist70k.npz
"""

import sys

import numpy as np
from scipy.ndimage import affine_transform

import graphcouple as gc


def moved(image, rng):
    """Return an image, turned, scaled, sheared and shifted a little."""
    centre = np.array([13.5, 13.5])
    angle, scale, shear = rng.normal(0, 0.12), 1 + rng.normal(0, 0.06), rng.normal(0, 0.08)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = rotation @ np.array([[1, shear], [0, 1]]) / scale
    return affine_transform(image, matrix, offset=centre - matrix @ centre + rng.normal(0, 0.7, 2), order=1)


def main(images, target):
    """Write X, in [0, 1] and float32, and y."""
    X, y = gc.datasets.load("mnist", images)
    X = X.reshape(-1, 28, 28).astype(np.float32) / np.float32(255)
    rng = np.random.default_rng(0)
    copies = np.concatenate([X, *(np.stack([moved(image, rng) for image in X]) for _ in range(6))])
    order = rng.permutation(len(copies))
    np.savez(target, X=copies.reshape(-1, 784)[order], y=np.tile(y, 7)[order])


if __name__ == "__main__":
    main(*sys.argv[1:])
