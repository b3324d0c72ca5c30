"""Starts in the size that other libraries take."""

import numpy as np
import openTSNE
import pytest

import graphcouple as gc
from graphcouple.initializations import start_for

X, _ = gc.datasets.make_hierarchical_mixture(300, random_state=0)


def test_each_library_gets_the_size_it_asks_for(rng):
    Z = rng.normal(size=(50, 2)) * [[30.0, 5.0]]
    for library in ("openTSNE", "scikit-learn"):
        start = start_for(library, Z)
        assert start[:, 0].std() == pytest.approx(1e-4, rel=1e-5)
        np.testing.assert_allclose(start.mean(axis=0), 0.0, atol=1e-10)
        assert np.corrcoef(start[:, 1], Z[:, 1])[0, 1] > 0.9999
    copies = start_for("umap-learn", np.repeat(Z, 2, axis=0))
    assert len(np.unique(copies, axis=0)) == 100
    assert copies.dtype == np.float32
    with pytest.raises(ValueError, match="library must be one of"):
        start_for("other", Z)
    with pytest.raises(ValueError, match="one place"):
        start_for("openTSNE", np.ones((5, 2)))


@pytest.mark.filterwarnings("ignore")
def test_opentsne_takes_the_start_as_it_is():
    start = gc.CCPCA(perplexity=15, random_state=0).fit_transform(X)
    with_ours = openTSNE.TSNE(initialization=start_for("openTSNE", start), n_iter=0, early_exaggeration_iter=0)
    np.testing.assert_allclose(np.asarray(with_ours.fit(X)), start_for("openTSNE", start), atol=1e-12)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_umap_learn_takes_the_start_as_it_is():
    import umap

    start = gc.CCPCA(perplexity=15, random_state=0).fit_transform(X)
    learned = umap.UMAP(init=start_for("umap-learn", start), n_epochs=0, random_state=0).fit_transform(X)
    assert np.corrcoef(learned[:, 0], start[:, 0])[0, 1] > 0.99


@pytest.mark.parametrize("unit", [1e-300, 1e300])
@pytest.mark.parametrize("library", ["openTSNE", "scikit-learn", "umap-learn"])
def test_starts_of_any_unit_keep_their_shape(library, unit, rng):
    Z = rng.normal(size=(40, 2))
    found, wanted = (start_for(library, unit * Z) for unit in (unit, 1.0))
    np.testing.assert_allclose(found / found.std(), wanted / wanted.std(), rtol=1e-4)
