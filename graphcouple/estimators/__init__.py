"""Scikit-learn estimators. Coupling estimators choose two graph laws each, and the same code fits them all."""

from graphcouple.estimators.aligned import AlignedMaps
from graphcouple.estimators.attraction_repulsion import AttractionRepulsionPCA
from graphcouple.estimators.autoencoder import Autoencoder, LinearAutoencoder
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.binary import NCTSNE, UMAP, LargeVis, NegTSNE
from graphcouple.estimators.ccpca import CCPCA
from graphcouple.estimators.contraction import LaptSNE
from graphcouple.estimators.cosne import COSNE
from graphcouple.estimators.cost import Estimate, estimate
from graphcouple.estimators.diffusion import DiffusionMaps
from graphcouple.estimators.distr import DistR
from graphcouple.estimators.gram_methods import ClassicalMDS, KernelPCA
from graphcouple.estimators.graph_coupling import GraphCoupling
from graphcouple.estimators.hierarchical import DensMAP, HierarchicalCoupling, TwoScaleCoupling
from graphcouple.estimators.infonc_tsne import InfoNCTSNE
from graphcouple.estimators.isomap import Isomap
from graphcouple.estimators.laplacian_methods import LaplacianEigenmaps
from graphcouple.estimators.locally_linear import LocallyLinearEmbedding
from graphcouple.estimators.matching import PairwiseMatching, TwoKernelLLE, TwoKernelPCA
from graphcouple.estimators.metric_mds import MetricMDS
from graphcouple.estimators.pacmap import LocalMAP, PaCMAP
from graphcouple.estimators.parametric import ParametricCoupling
from graphcouple.estimators.phate import PHATE
from graphcouple.estimators.precision import PrecisionCoupling
from graphcouple.estimators.run_control import RunOptions
from graphcouple.estimators.saved import load
from graphcouple.estimators.sentence import Sentence
from graphcouple.estimators.sne import SNE, TSNE, SNEkhorn, SymmetricSNE
from graphcouple.estimators.trimap import TriMap

__all__ = [
    "CCPCA", "COSNE", "NCTSNE", "PHATE", "SNE", "TSNE", "UMAP", "AlignedMaps", "AttractionRepulsionPCA",
    "Autoencoder", "ClassicalMDS", "CouplingEstimator", "DensMAP", "DiffusionMaps", "DistR", "Estimate",
    "GraphCoupling", "HierarchicalCoupling", "InfoNCTSNE", "Isomap", "KernelPCA", "LaplacianEigenmaps", "LaptSNE",
    "LargeVis", "LinearAutoencoder", "LocalMAP", "LocallyLinearEmbedding", "MetricMDS", "NegTSNE", "PaCMAP",
    "PairwiseMatching", "ParametricCoupling", "PrecisionCoupling", "RunOptions", "SNEkhorn", "Sentence",
    "SymmetricSNE", "TriMap", "TwoKernelLLE", "TwoKernelPCA", "TwoScaleCoupling", "estimate", "load",
]  # fmt: skip
