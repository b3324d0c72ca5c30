"""What is passed or called as in other libraries is told what it is here."""

import re

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import graphcouple as gc


@pytest.mark.parametrize(
    ("make", "name", "ours"),
    [
        (gc.TSNE, "n_iter", "max_iter"),
        (gc.TSNE, "angle", r"BarnesHut\(angle"),
        (gc.TSNE, "initialization", "init"),
        (gc.TSNE, "early_exaggeration_iter", "Exaggeration"),
        (gc.UMAP, "n_epochs", "max_iter"),
        (gc.UMAP, "precomputed_knn", "neighbors"),
        (gc.UMAP, "force_approximation_algorithm", "search, of GraphModel"),
        (gc.CCPCA, "affinities", "input"),
        (gc.TSNE, "max_grad_norm", "there is no equivalent here yet: max_step of MomentumGains bounds a step"),
        (gc.TriMap, "n_iters", "use max_iter"),
        (gc.Isomap, "neighbors_algorithm", "there is nothing to set: the search is chosen by the size"),
        (gc.TSNE, "perplexty", "'perplexity'"),
        (gc.UMAP, "densmap", r"use DensMAP\(UMAP\(\.\.\.\)\), or terms=\[Density\(\)\]"),
        (gc.LocallyLinearEmbedding, "method", "there is no equivalent here yet: modified, Hessian"),
        (gc.MetricMDS, "n_init", "use n_starts"),
        (gc.DensMAP, "n_neighbors", r"give it to the method, as in DensMAP\(UMAP\(n_neighbors=\.\.\.\)\)"),
        (gc.DensMAP, "kind", r"Parameters of the method go to it, as in DensMAP\(UMAP\(n_neighbors=10\)\)"),
        (gc.TwoScaleCoupling, "max_itr", "Parameters of the method"),
        (gc.TwoScaleCoupling, "is_distance", r"TwoScaleCoupling\(TSNE\(metric='precomputed'\)\)"),
        (gc.TSNE, "bandwidth", "it has "),
        (gc.LaplacianEigenmaps, "normalize", "did you mean 'normalized'"),
        (gc.TwoScaleCoupling, "perplexity", r"TwoScaleCoupling\(TSNE\(perplexity=\.\.\.\)\)"),
        (gc.AlignedMaps, "n_epochs", r"AlignedMaps\(TSNE\(max_iter=\.\.\.\)\)"),
        (gc.AlignedMaps, "target_weight", r"AlignedMaps\(TSNE\(target_weight=\.\.\.\)\)"),
        (gc.AlignedMaps, "alignment_regularisation", r"use AlignedMaps\(weight=\.\.\.\)"),
        (gc.TSNE, "exaggeration_factor", "use early_exaggeration"),
        (gc.TSNE, "exaggeration_iter", "Exaggeration"),
        (gc.TSNE, "check_duplicates", "there is nothing to set: equal rows"),
        (gc.TSNE, "initial_dims", r"make_pipeline\(PCA\(50\)"),
        (gc.UMAP, "seed", "use random_state"),
        (gc.UMAP, "nn_method", "use neighbors, of fit"),
        (gc.UMAP, "gamma", "use repulsion_strength"),
        (gc.UMAP, "binary_edge_weights", "use input, of GraphCoupling"),
        (gc.UMAP, "neighbors_key", "scverse.embed"),
        (gc.PaCMAP, "FP_ratio", "use far_ratio"),
        (gc.PHATE, "knn", "use perplexity"),
        (gc.DiffusionMaps, "epsilon", "ConstantBandwidth"),
        (gc.SNE, "nothing_like_it", "it has .*perplexity"),
    ],
)
def test_names_of_other_libraries_say_what_they_are_here(make, name, ours):
    with pytest.raises(TypeError, match=f"{make.__name__} has no parameter '{name}'.*{ours}"):
        make(**{name: 1})
    with pytest.raises(ValueError, match=f"{make.__name__} has no parameter '{name}'.*{ours}"):
        make().set_params(**{name: 1})


def test_graphs_and_frames_that_are_no_points_say_how_to_pass_them():
    karate = nx.karate_club_graph()
    for graph in (karate, igraph.Graph.from_networkx(karate)):
        with pytest.raises(TypeError, match="X is a graph, not points; pass it as the input"):
            gc.TSNE().fit(graph)
    counts = pd.DataFrame(np.eye(9), columns=["number_of_nodes", "vcount", *"abcdefg"])
    assert gc.PrecisionCoupling().fit(counts).embedding_.shape == (9, 2)
    kinds = {"age": np.arange(9.0), "city": pd.Categorical(["a", "b", "c"] * 3), "ok": [True] * 9}
    with pytest.raises(ValueError, match=r"in column 'city'\. Drop those columns, or encode them"):
        gc.TSNE().fit(pd.DataFrame(kinds))


def test_other_names_are_not_our_own():
    from graphcouple.estimators._peers import PEERS

    assert not set(PEERS) & set(gc.TSNE().get_params())
    assert not set(PEERS) & set(gc.UMAP().get_params())


def test_attributes_of_other_libraries_say_what_they_are_here():
    with pytest.raises(AttributeError, match="TSNE has no prepare_partial; use transform"):
        gc.TSNE().prepare_partial  # noqa: B018
    with pytest.raises(AttributeError, match="'embedding_'; if it is one that fit sets, call fit first"):
        gc.TSNE().embedding_  # noqa: B018
    with pytest.raises(NotFittedError):
        gc.TSNE().posterior_  # noqa: B018
    with pytest.raises(AttributeError, match=r"Isomap.*no attribute 'graph_'"):
        gc.Isomap().graph_  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'transform'"):
        gc.TSNE().transfrom  # noqa: B018
    assert not hasattr(gc.TSNE(), "__name__")
    with pytest.raises(AttributeError, match="graphcouple has no MDS; use MetricMDS"):
        gc.MDS  # noqa: B018
    for instead in gc._PEERS.values():
        assert hasattr(gc, re.match(r"[\w]+", instead)[0])


def test_arguments_that_methods_lack_are_told(rng):
    fitted = gc.UMAP(random_state=0, max_iter=5).fit(rng.normal(size=(60, 4)))
    with pytest.raises(TypeError, match=r"UMAP\.transform has no argument 'perplexity'; it has X"):
        fitted.transform(np.zeros((2, 4)), perplexity=5)
    with pytest.raises(TypeError, match=r"AlignedMaps\.fit has no argument 'y'; it has Xs, relations, ys\."):
        gc.AlignedMaps().fit([np.eye(4)] * 2, y=[None, None])
