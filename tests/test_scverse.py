"""Annotated data against the arrays that they hold, with scanpy's own data, neighbours and plots."""

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline

import graphcouple as gc
from graphcouple.datasets._files import read_points

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import scanpy as sc

SHORT = {"random_state": 0, "max_iter": 60}


@pytest.fixture(scope="module")
def cells():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = sc.datasets.pbmc68k_reduced()
        # Away from 0, where data that are not centred would show.
        kept = anndata.AnnData(np.asarray(data.X) + 1.0, obs=data.obs[["bulk_labels"]], var=data.var[[]])
        kept.layers["sparse"] = sp.csr_matrix(np.maximum(kept.X, 0.0))
        sc.pp.pca(kept, n_comps=20)
        sc.pp.neighbors(kept, n_neighbors=40, method="gauss")
    return kept


def test_a_map_is_that_of_the_representation(cells):
    tsne = gc.TSNE(**SHORT)
    data = gc.scverse.embed(cells, tsne, copy=True)
    np.testing.assert_array_equal(data.obsm["X_tsne"], gc.TSNE(**SHORT).fit_transform(cells.obsm["X_pca"]))
    assert "X_tsne" not in cells.obsm
    assert data.uns["tsne"]["params"]["loss"] == tsne.loss_
    ten = gc.scverse.embed(cells, clone(tsne), n_pcs=10, key_added="ten", copy=True)
    np.testing.assert_array_equal(ten.obsm["ten"], clone(tsne).fit_transform(cells.obsm["X_pca"][:, :10]))
    assert ten.uns["ten"]["params"]["n_pcs"] == 10
    counts = gc.scverse.embed(cells, clone(tsne), layer="sparse", copy=True)
    np.testing.assert_array_equal(counts.obsm["X_tsne"], clone(tsne).fit_transform(cells.layers["sparse"]))
    by_sentence = gc.scverse.embed(cells, tsne.sentence, random_state=0, copy=True)
    np.testing.assert_array_equal(by_sentence.obsm["X_graphcoupling"], data.obsm["X_tsne"])
    by_name = gc.scverse.embed(cells, "pca", key_added="plane", copy=True).obsm["plane"]
    np.testing.assert_array_equal(by_name, gc.PrecisionCoupling().fit_transform(cells.obsm["X_pca"]))


def test_stored_neighbours_are_not_searched_for_again(cells, monkeypatch):
    stored = cells.obsp["distances"]
    umap = gc.UMAP(**SHORT)
    plain = gc.UMAP(**SHORT).fit(cells.obsm["X_pca"], neighbors=stored)
    data = gc.scverse.embed(cells, umap, neighbors_key="neighbors", copy=True)
    np.testing.assert_array_equal(data.obsm["X_umap"], plain.embedding_)
    alone = cells.copy()
    del alone.obsp["distances"]
    gc.scverse.embed(alone, gc.TSNE(**SHORT), neighbors_key="neighbors")
    latent = gc.GraphModel(gc.Student(), "E")
    drawn = gc.GraphCoupling(cells.obsp["connectivities"], latent, init="pca", **SHORT).fit(cells.obsm["X_pca"])
    np.testing.assert_allclose(alone.obsm["X_tsne"], drawn.embedding_, atol=1e-6 * np.ptp(drawn.embedding_))


def test_neighbours_of_another_metric_are_told(cells):
    data = cells.copy()
    data.uns["neighbors"]["params"]["metric"] = "cosine"
    with pytest.warns(UserWarning, match="by metric='cosine', and UMAP searches .* by metric='euclidean'"):
        gc.scverse.embed(data, gc.UMAP(**SHORT), neighbors_key="neighbors")
    gc.scverse.embed(data, gc.UMAP(metric="cosine", **SHORT), neighbors_key="neighbors")
    data.uns["neighbors"]["params"]["metric"] = "l2"
    gc.scverse.embed(data, gc.UMAP(**SHORT), neighbors_key="neighbors")
    # A method by name is not kept, so it gets no new cells.
    gc.scverse.embed(data, "umap", neighbors_key="neighbors")


def test_scanpy_searches_with_this_library_and_plots_its_maps(cells):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own, theirs = cells.copy(), cells.copy()
        sc.pp.neighbors(own, transformer=gc.neighbors.NeighborsTransformer(15), method="gauss")
        sc.pp.neighbors(theirs, n_neighbors=15, method="gauss")
        found, wanted = own.obsp["distances"].toarray(), theirs.obsp["distances"].toarray()
        assert (np.count_nonzero(wanted, axis=1) == 14).all()
        np.testing.assert_allclose(np.where(wanted > 0, found, 0.0), wanted, atol=1e-5)
        gc.scverse.embed(own, gc.UMAP(**SHORT), neighbors_key="neighbors")
        axes = sc.pl.embedding(own, "X_umap", color="bulk_labels", show=False)
    drawn = np.vstack([points.get_offsets() for points in axes.collections])[: len(cells)]
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(own.obsm["X_umap"], axis=0), rtol=1e-6)


@pytest.mark.parametrize("ending", ["h5ad", "zarr"])
def test_results_go_through_files_and_place_a_query(cells, tmp_path, ending):
    tsne = gc.TSNE(**SHORT)
    reference = cells[:600].copy()
    gc.scverse.embed(reference, tsne)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(reference, f"write_{ending}")(tmp_path / f"cells.{ending}")
        again = getattr(anndata, f"read_{ending}")(tmp_path / f"cells.{ending}")
    np.testing.assert_array_equal(again.obsm["X_tsne"], reference.obsm["X_tsne"])
    assert dict(again.uns["tsne"]["params"]) == reference.uns["tsne"]["params"]
    placed = gc.scverse.transform(cells[600:], tsne, copy=True).obsm["X_map"]
    np.testing.assert_array_equal(placed, tsne.transform(cells.obsm["X_pca"][600:]))


def test_backed_files_are_read(cells, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells.write_h5ad(tmp_path / "cells.h5ad")
        backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    assert backed.isbacked
    points, labels = read_points(tmp_path / "cells.h5ad", "bulk_labels")
    np.testing.assert_array_equal(points, cells.obsm["X_pca"])
    assert labels.tolist() == cells.obs["bulk_labels"].tolist()
    with pytest.raises(ValueError, match=r"cells\.h5ad: it has no column 'louvain' for labels, but bulk_labels"):
        read_points(tmp_path / "cells.h5ad", "louvain")
    (tmp_path / "none.h5ad").write_bytes(b"no cells")
    with pytest.raises(ValueError, match=r"cannot read none\.h5ad"):
        read_points(tmp_path / "none.h5ad", None)
    for options in ({}, {"use_rep": "X"}, {"layer": "sparse"}):
        gc.scverse.embed(backed, gc.TSNE(**SHORT), **options)
        wanted = gc.scverse.embed(cells, gc.TSNE(**SHORT), copy=True, **options)
        np.testing.assert_array_equal(backed.obsm["X_tsne"], wanted.obsm["X_tsne"])


@pytest.mark.filterwarnings("ignore")
def test_components_stand_for_a_missing_matrix(cells, tmp_path):
    frame = pd.DataFrame(cells.obsm["X_pca"], cells.obs_names).rename(columns="PC{}".format)
    data = anndata.AnnData(obs=cells.obs, obsm={"X_pca": frame})
    data.write_h5ad(tmp_path / "cells.h5ad")
    for each in (data, anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")):
        gc.scverse.embed(each, "diffusion-maps")
        np.testing.assert_array_equal(
            each.obsm["X_diffusion-maps"], gc.DiffusionMaps().fit_transform(cells.obsm["X_pca"])
        )
    np.testing.assert_array_equal(read_points(tmp_path / "cells.h5ad", None)[0], cells.obsm["X_pca"])


@pytest.mark.filterwarnings("ignore:the reference's data have changed")  # after a change of its components
def test_a_query_is_projected_on_the_references_components(cells):
    """Components of the query alone differ; projected gene by gene, a cell of the reference gets its own place."""
    tsne = gc.TSNE(**SHORT)
    reference = cells.copy()
    gc.scverse.embed(reference, tsne)
    query = reference[30:60, ::-1].copy()
    del query.obsm["X_pca"]
    gc.scverse.transform(query, tsne, reference=reference)
    near = np.linalg.norm(query.obsm["X_map"] - reference.obsm["X_tsne"][30:60], axis=1)
    assert near.max() < 0.02 * np.ptp(reference.obsm["X_tsne"])
    # Components of a layer take the layer's values.
    logs = reference.copy()
    logs.layers["logs"], logs.X = logs.X, np.expm1(logs.X)
    logs.uns["pca"]["params"]["layer"] = "logs"
    of_layer = logs[30:60].copy()
    gc.scverse.transform(of_layer, tsne, reference=logs)
    np.testing.assert_allclose(of_layer.obsm["X_map"], query.obsm["X_map"], rtol=1e-3, atol=1e-3)
    # scanpy leaves NaN where a gene took no part in the components.
    places = []
    for loading in (0.0, np.nan):
        reference.varm["PCs"][:3] = loading
        gc.scverse.transform(query, tsne, reference=reference)
        places.append(query.obsm["X_map"])
    np.testing.assert_array_equal(*places)
    with pytest.raises(KeyError, match=r"lacks 2 of the reference's variables"):
        gc.scverse.transform(query[:, 2:], tsne, reference=reference)


def test_scores_are_those_of_the_arrays(cells):
    data = cells.copy()
    data.obsm["X_a"], data.obsm["X_b"] = data.obsm["X_pca"][:, :2], data.obsm["X_pca"][:, 1:3]
    found = gc.scverse.score(data, ["X_a", "X_b"], "bulk_labels")
    labels = np.asarray(data.obs["bulk_labels"].astype(str))
    wanted = gc.metrics.evaluate(data.obsm["X_pca"], data.obsm["X_a"], labels)
    np.testing.assert_allclose(found.loc["X_a"].to_numpy(), wanted.to_numpy())


def test_mistakes_are_named(cells):
    wide = anndata.AnnData(np.ones((60, 70)))
    fitted = gc.PrecisionCoupling().fit(cells.obsm["X_pca"])
    other = cells.copy()
    bare = anndata.AnnData(obs=cells.obs, var=cells.var, obsm={"scvi": cells.obsm["X_pca"]}, varm=cells.varm)
    repeated = cells[:9].copy()
    repeated.var_names = [*repeated.var_names[:-1], repeated.var_names[0]]
    other.obsm["taken"], other.uns["colors"] = other.obsm["X_pca"], ["red"]
    # A record of parameters alone, as scanpy's of a map, is replaced with the map.
    other.uns["plain"] = {"params": {"a": 1.0}}
    gc.scverse.embed(other, "pca", use_rep="X_pca", key_added="plain")
    assert "version" in other.uns["plain"]["params"]

    def transform(**options):
        gc.scverse.transform(cells[:9].copy(), fitted, reference=cells, **options)

    for call, error, match in [
        (lambda: gc.scverse.embed(wide), KeyError, r"run sc.pp.pca\(adata\) first"),
        (lambda: gc.scverse.embed(cells, use_rep="X_scvi"), KeyError, "obsm has no 'X_scvi'; it has"),
        (lambda: gc.scverse.embed(cells, layer="raw"), KeyError, "layers has no 'raw'"),
        (lambda: gc.scverse.embed(cells, layer="sparse", use_rep="X_pca"), ValueError, "give one of them"),
        (lambda: gc.scverse.embed(cells, n_pcs=30), ValueError, "n_pcs=30, but X_pca has 20 columns"),
        (lambda: gc.scverse.embed(cells, n_pcs=-1), ValueError, "n_pcs must be"),
        (lambda: gc.scverse.embed(cells, n_pcs=True), TypeError, "n_pcs must be"),
        (lambda: gc.scverse.embed(cells, layer="sparse", n_pcs=999), ValueError, "n_pcs=999, but layer sparse has 765"),
        (lambda: gc.scverse.embed(cells, "phat"), ValueError, "method must be one of tsne"),
        (lambda: gc.scverse.embed(cells, 3), TypeError, "method must be a name"),
        (lambda: gc.scverse.embed(cells, gc.TSNE), TypeError, "method must be a name"),
        (lambda: gc.scverse.embed(cells, neighbors_key="bbknn"), KeyError, "run sc.pp.neighbors"),
        (lambda: gc.scverse.embed(cells, "isomap", neighbors_key="neighbors"), ValueError, "takes no stored neighbors"),
        (lambda: gc.scverse.embed(cells, "pca", copy=True), ValueError, "later calls would take the map"),
        (lambda: gc.scverse.embed(other, gc.TSNE(perplexity=-1), key_added="taken"), ValueError, "and the map 2"),
        (lambda: gc.scverse.embed(other, "pca", key_added="neighbors"), ValueError, r"uns\['neighbors'\] is no"),
        (lambda: gc.scverse.embed(other, "pca", key_added="colors"), ValueError, "another key_added to keep both"),
        (lambda: gc.scverse.embed(bare), KeyError, r"adata has no X; pass use_rep, one of \['scvi'\]"),
        (lambda: gc.scverse.embed(bare, "pca", use_rep="scvi"), ValueError, "later calls would take the map"),
        (lambda: gc.scverse.transform(bare, fitted, reference=cells), KeyError, "the query has no X; pass layer"),
        (lambda: gc.scverse.transform(cells, fitted, reference=bare), KeyError, "the reference has no X; pass layer"),
        (
            lambda: gc.scverse.transform(repeated, fitted, reference=cells),
            ValueError,
            r"run query\.var_names_make_unique",
        ),
        (lambda: gc.TSNE().fit(cells), TypeError, "gc.scverse.embed"),
        (lambda: transform(use_rep="X_scvi"), ValueError, "use_rep='X_scvi' does not apply with a reference"),
        (lambda: transform(n_pcs=99), ValueError, r"n_pcs=99, but varm\['PCs'\] has 20 columns"),
        (lambda: transform(n_pcs=-1), ValueError, "n_pcs must be"),
        (lambda: gc.scverse.embed(cells, "umap", min_dist=0.3), TypeError, r"embed\(adata, gc.UMAP\(min_dist=\.\.\."),
        (
            lambda: gc.scverse.embed(cells, "umap", perplexity=9),
            TypeError,
            "'perplexity'; it is no parameter of the method",
        ),
        (lambda: gc.scverse.embed(cells, "diffmap"), ValueError, "scanpy's diffmap is 'diffusion-maps'"),
        (lambda: gc.scverse.transform(cells, cells), TypeError, r"transform\(query, fitted, reference=adata\)"),
    ]:
        with pytest.raises(error, match=match):
            call()


def test_the_transformer_gives_the_graph_of_scikit_learns(cells):
    X = cells.obsm["X_pca"]
    own, theirs = gc.neighbors.NeighborsTransformer(8), KNeighborsTransformer(n_neighbors=8)
    for graph, wanted in (
        (own.fit_transform(X[:500]), theirs.fit_transform(X[:500])),
        (own.transform(X[500:]), theirs.transform(X[500:])),
    ):
        np.testing.assert_array_equal(np.diff(graph.indptr), np.diff(wanted.indptr))
        np.testing.assert_allclose(graph.toarray(), wanted.toarray(), atol=1e-5)
    nearest = own.fit_transform(X).indices.reshape(len(X), 9)
    np.testing.assert_array_equal(nearest[:, 0], np.arange(len(X)))
    pipeline = make_pipeline(
        clone(own).set_params(n_neighbors=90), gc.TSNE(metric="precomputed", init="random", **SHORT)
    )
    assert np.isfinite(pipeline.fit_transform(X)).all()


def test_missing_labels_are_no_class():
    adata = anndata.AnnData(np.random.default_rng(0).normal(size=(40, 3)))
    adata.obsm["X_map"] = adata.X[:, :2]
    adata.obs["kind"] = ["a", "b", "a", None] * 10
    with pytest.raises(ValueError, match="missing labels"):
        gc.scverse.score(adata, "X_map", use_rep="X", labels="kind")
    adata.obs["depth"] = adata.X[:, 0]
    with pytest.raises(ValueError, match="numbers that are not whole"):
        gc.scverse.score(adata, "X_map", use_rep="X", labels="depth")


def test_a_part_of_the_reference_keeps_the_mean_of_all(cells):
    part = cells[cells.obsm["X_pca"][:, 0] > 0].copy()
    method = gc.TSNE(perplexity=10, **SHORT)
    gc.scverse.embed(part, method)
    wanted = method.transform(part.obsm["X_pca"][:5])
    placed = gc.scverse.transform(part[:5].copy(), method, reference=part, copy=True)
    np.testing.assert_allclose(placed.obsm["X_tsne"], wanted, atol=1e-2 * np.ptp(wanted))
    part.X = 2.0 * part.X
    with pytest.warns(UserWarning, match="the reference's data have changed"):
        gc.scverse.transform(part[:5].copy(), method, reference=part, copy=True)
