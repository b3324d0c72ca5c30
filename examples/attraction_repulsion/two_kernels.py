"""
PCA and LLE with two kernels
============================

Two classical methods with a kernel on each side, beside t-SNE and UMAP (figure 3 of Draganov and Dohn, 2023).
"""

import graphcouple as gc

X, y = gc.datasets.load("digits")
methods = {
    "PCA with two kernels": gc.TwoKernelPCA(),
    "t-SNE": gc.TSNE(),
    "UMAP": gc.UMAP(),
    "LLE with two kernels": gc.TwoKernelLLE(),
}
compared = gc.compare(methods, X, y)
compared.plot(n_columns=4, legend=False)
print(compared)
