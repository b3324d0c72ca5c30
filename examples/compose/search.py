"""
Search over methods
===================

Which of several sentences suits these data? `search` fits them with several seeds and shows those that no other
surpasses in both scores. Bars are standard deviations over seeds.
"""

import graphcouple as gc

X, _ = gc.datasets.make_cells(800, random_state=0)
found = gc.search(X, space="presets", budget="20s", n_seeds=2, random_state=0)
print(found)

# %%
found.plot()
