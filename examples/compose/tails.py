"""
Priors and tails
================

One law of the input's graph is coupled with six laws of the embedding's: prior D or E, and kernels with lighter
tails, from Student's with half a degree of freedom to the Gaussian. Heavy tails separate clusters; prior D lets each
point choose its neighbours by itself.

Paper: Hinton and Roweis (2002); van der Maaten and Hinton (2008); Kobak et al. (2019) on heavy tails.
"""

import graphcouple as gc

X, y = gc.datasets.load("digits")
posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30), n_neighbors=90).posterior(X)
kernels = {"Student(0.5)": gc.Student(0.5), "Student(1)": gc.Student(), "Gaussian": gc.Gaussian()}
maps = {}
for prior in ("D", "E"):
    for name, kernel in kernels.items():
        method = gc.GraphCoupling(posterior, gc.GraphModel(kernel, prior), random_state=0)
        maps[f"prior {prior}", name] = method.fit_transform(X)
        print(f"prior {prior}, {name:14} KL {method.kl_divergence_:.3f}")

# %%
gc.plotting.plot_grid(maps, y)
