"""Objectives on an embedding: couplings of two graph laws, and terms to add to them."""

from graphcouple.couplings.aligned import PartOf, TieEnergy
from graphcouple.couplings.anchors import AnchorEnergy, Anchors, Held
from graphcouple.couplings.base import Attraction, Objective, WeightedSum
from graphcouple.couplings.component_means import ComponentCrossEntropy, ComponentMeans
from graphcouple.couplings.confinement import Confinement
from graphcouple.couplings.contraction import KernelLaplacian, LaplacianEigenvalues, SpectralContraction
from graphcouple.couplings.contrastive import ContrastiveCoupling, ContrastiveCrossEntropy
from graphcouple.couplings.cross_entropy import CrossEntropy, CrossEntropyCoupling
from graphcouple.couplings.density import Density, LocalRadii
from graphcouple.couplings.distance_shape import DistanceShape, FreeScaleStress
from graphcouple.couplings.effective import ChargedPartition, EffectiveCoupling, EffectiveCrossEntropy
from graphcouple.couplings.global_term import GlobalTerm, LongEdges
from graphcouple.couplings.gram import GramMatching
from graphcouple.couplings.large_scale import LargeScale, LargeScaleCrossEntropy
from graphcouple.couplings.local_map import LocallyAdjustedCoupling
from graphcouple.couplings.losses import BinaryKL, MatchingLoss, SquareLoss
from graphcouple.couplings.matching import MatchedMeans, MatchingCoupling
from graphcouple.couplings.network import CodingError, Network, OfNetwork, weight_decay
from graphcouple.couplings.noise_contrastive import NoiseContrastiveCoupling, NoiseContrastiveCrossEntropy
from graphcouple.couplings.origin import OriginDistances, OriginMismatch
from graphcouple.couplings.pacmap import PairwiseControlledCoupling
from graphcouple.couplings.pair import EdgeEnergy, LogPartition, PairCoupling
from graphcouple.couplings.parametric import FeatureBasis, FeatureMap, OfFeatures
from graphcouple.couplings.precision import PrecisionCrossEntropy
from graphcouple.couplings.prototypes import GroupedPosterior, Plan, groups_of
from graphcouple.couplings.recipes import Coupling, Problem, Term
from graphcouple.couplings.reconstruction import ReconstructionCoupling, ReconstructionEnergy, reconstruction_weights
from graphcouple.couplings.reference_shape import ProcrustesStatistic, ReferenceShape
from graphcouple.couplings.stress import Stress, sampled_pairs, stress_weights
from graphcouple.couplings.triplets import TripletCoupling, TripletSum

__all__ = [
    "AnchorEnergy", "Anchors", "Attraction", "BinaryKL", "ChargedPartition", "CodingError", "ComponentCrossEntropy",
    "ComponentMeans", "Confinement", "ContrastiveCoupling", "ContrastiveCrossEntropy", "Coupling", "CrossEntropy",
    "CrossEntropyCoupling", "Density", "DistanceShape", "EdgeEnergy", "EffectiveCoupling", "EffectiveCrossEntropy",
    "FeatureBasis", "FeatureMap", "FreeScaleStress", "GlobalTerm", "GramMatching", "GroupedPosterior", "Held",
    "KernelLaplacian", "LaplacianEigenvalues", "LargeScale", "LargeScaleCrossEntropy", "LocalRadii",
    "LocallyAdjustedCoupling", "LogPartition", "LongEdges", "MatchedMeans", "MatchingCoupling", "MatchingLoss",
    "Network", "NoiseContrastiveCoupling", "NoiseContrastiveCrossEntropy", "Objective", "OfFeatures", "OfNetwork",
    "OriginDistances", "OriginMismatch", "PairCoupling", "PairwiseControlledCoupling", "PartOf", "Plan",
    "PrecisionCrossEntropy", "Problem", "ProcrustesStatistic", "ReconstructionCoupling", "ReconstructionEnergy",
    "ReferenceShape", "SpectralContraction", "SquareLoss", "Stress", "Term", "TieEnergy", "TripletCoupling",
    "TripletSum", "WeightedSum", "groups_of", "reconstruction_weights", "sampled_pairs", "stress_weights",
    "weight_decay",
]  # fmt: skip
