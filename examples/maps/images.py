"""
A map of images
===============

Each cell of the map shows the image nearest to its middle. The page shows how well each image is placed, and saves the
rows that you choose with the lasso. `X` has one row of pixels for each image; for photographs, take the embeddings of a
vision model as `X`, and keep `images` for the picture.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN

import graphcouple as gc

N_CELLS = 34

X, y = gc.datasets.load("digits")
clean = X.std(axis=1) > 0
X, images = X[clean], X[clean].reshape(-1, 8, 8) / X.max()
tsne = gc.TSNE(random_state=0).fit(X)
clusters = HDBSCAN(min_cluster_size=20, copy=True).fit_predict(tsne.embedding_)

# %%
low, high = tsne.embedding_.min(axis=0), tsne.embedding_.max(axis=0)
places = (tsne.embedding_ - low) / (high - low) * (N_CELLS - 1)
cells = np.round(places).astype(int)
colors = np.vstack([plt.colormaps["tab20"](np.arange(20))[:, :3], [[0.5, 0.5, 0.5]]])
mosaic = np.ones((N_CELLS * 9, N_CELLS * 9, 3))
# The image nearest to the middle of a cell is drawn last.
for i in np.argsort(-np.square(places - cells).sum(axis=1)):
    column, row = 9 * cells[i]
    ink = images[i][::-1, :, None]
    color = colors[clusters[i] % 20 if clusters[i] >= 0 else 20]
    mosaic[row : row + 8, column : column + 8] = 1 - ink * (1 - 0.8 * color)
figure, ax = plt.subplots(figsize=(9, 9), layout="constrained")
ax.imshow(mosaic, origin="lower", interpolation="nearest")
ax.set_axis_off()

# %%
page = gc.plotting.interactive(tsne, y[clean], hover={"cluster": clusters}, title="images")
