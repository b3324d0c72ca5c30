"""
A swiss roll: through space, or along the sheet?
================================================

The coupling at two scales keeps distances through space, and tears the sheet to do so. To unroll the sheet, add the
shape of Isomap as a term.

Paper: Tenenbaum, de Silva and Langford (2000) on Isomap.
"""

import graphcouple as gc

X, along = gc.datasets.make_swiss_roll(1500, random_state=0)
methods = {
    "t-SNE": gc.TSNE(),
    "two-scale t-SNE": gc.TwoScaleCoupling(),
    "Isomap": gc.Isomap(),
    "t-SNE with Isomap's shape": gc.TSNE(terms=[gc.ReferenceShape(reference=gc.Isomap())]),
}
maps = {name: method.set_params(random_state=0).fit_transform(X) for name, method in methods.items()}
gc.plotting.plot_grid(maps, along, n_columns=4, legend=False)
