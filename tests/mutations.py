"""Seeded faults: each breaks one formula, loop or boundary, and the fast tests must catch every one.

    python tests/mutations.py            # all faults, each against the files that know it best
    python tests/mutations.py kernel     # those whose name holds a word

A fault is put into a copy of the repository. It is caught when a test of the named files fails; all of them are in the
fast set. Prints one line a fault, and exits with 1 if one survives.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Fault(NamedTuple):
    """A line of the package and what it is changed into."""

    name: str
    file: str
    before: str
    after: str
    tests: str


FAULTS = [
    Fault("kernel: Student's slope", "kernels/families.py", "return -0.5 * (self.dof + 1.0) / (self.dof + sq_dist)",
          "return -0.5 * (self.dof + 1.0) / (1.0 + sq_dist)", "test_check_kernel test_kernels"),
    Fault("kernel: Student's shortcut at ½", "kernels/families.py", "root = np.sqrt(1.0 + 2.0 * sq_dist)",
          "root = np.sqrt(1.0 + sq_dist)", "test_kernels test_summation"),
    Fault("kernel: Gaussian without ½", "kernels/families.py", "return -0.5 * sq_dist", "return -sq_dist",
          "test_kernels test_check_kernel"),
    Fault("kernel: odds of the slope", "kernels/base.py", "return -self.grad_log(away) / np.expm1(self.log(away))",
          "return -self.grad_log(away) / np.exp(self.log(away))", "test_check_kernel test_kernels"),
    Fault("kernel: measured order", "kernels/measured.py", "np.diff(np.log(slopes))[0] / np.diff(np.log(dist))[0]",
          "0.5 * np.diff(np.log(slopes))[0] / np.diff(np.log(dist))[0]", "test_check_kernel"),
    Fault("kernel: π forgotten in log π k", "kernels/scaled.py", "return self.log_weight + self.kernel.log(sq_dist)",
          "return self.kernel.log(sq_dist)", "test_check_kernel"),
    Fault("radial: slope of log(1 + k)", "summation/radials.py",
          "return self.kernel.edge_probability(sq_dist) * self.kernel.grad_log(sq_dist)",
          "return self.kernel.value(sq_dist) * self.kernel.grad_log(sq_dist)", "test_contracts"),
    Fault("exact loop: factor 2 of forces", "_numba/pairs.py", "gradient[i, a] = 2.0 * (before[a + 1] + after[a + 1])",
          "gradient[i, a] = before[a + 1] + after[a + 1]", "test_contracts"),
    Fault("exact loop: own charge", "_numba/pairs.py", "j = i + 1\n            after",
          "j = i\n            after", "test_contracts test_summation"),
    Fault("edge loop: last edge lost", "_numba/pairs.py", "end = np.int64(indptr[i + 1])",
          "end = np.int64(indptr[i + 1]) - 1", "test_contracts"),
    Fault("edges: m without its mirror", "summation/edges.py", "support.part(weights, a, min(a + step, n)) + back)",
          "support.part(weights, a, min(a + step, n)) * 2)", "test_contracts test_cross_entropy"),
    Fault("mesh: spline weight", "_numba/mesh.py", "(t * t * (3.0 * t - 6.0) + 4.0) / 6.0",
          "(t * t * (3.0 * t - 6.0) + 4.1) / 6.0", "test_contracts"),
    Fault("mesh: own charge stays", "_numba/mesh.py", "potential[i] = value - c * ", "potential[i] = value + 0.0 * c * ",
          "test_contracts test_particle_mesh"),
    Fault("mesh: cap of near pairs", "summation/near_pairs.py", "value, slope[2], first / 2.0, second / 6.0",
          "value, slope[2], first, second / 6.0", "test_contracts test_particle_mesh"),
    Fault("mesh: near pairs of too few rows", "_numba/near.py", "for r in range(max(row - 2, 0), min(row + 3, n_rows)):\n        first",
          "for r in range(max(row - 2, 0), min(row + 2, n_rows)):\n        first",
          "test_contracts test_particle_mesh"),
    Fault("tree: opening angle", "_numba/tree.py", "sq_size[c] <= sq_angle * (sq_dist + sq_length)",
          "sq_size[c] <= 30 * sq_angle * (sq_dist + sq_length)", "test_contracts test_barnes_hut"),
    Fault("tree: leaves skip a point", "_numba/tree.py", "for j in range(first[c], last[c]):\n                    if j != i",
          "for j in range(first[c] + 1, last[c]):\n                    if j != i", "test_contracts"),
    Fault("threads: a block of rows lost", "_numba/threads.py", "min(a + size, n_rows)", "min(a + size, n_rows - 1)",
          "test_contracts"),
    Fault("prior D: log-partition", "laws/priors/unit_out_degree.py", "return float(self._row_log_partition.sum())",
          "return float(self._row_log_partition.mean())", "test_contracts test_priors"),
    Fault("prior D: second half of the force", "laws/priors/unit_out_degree.py", "forces / mass[:, None] + reactions",
          "forces / mass[:, None]", "test_contracts"),
    Fault("prior E: base measure", "laws/priors/fixed_edges.py",
          "return float(gammaln(self.n_nodes + 1.0) - gammaln(counts + 1.0).sum())",
          "return float(gammaln(self.n_nodes + 1.0))", "test_contracts test_priors"),
    Fault("prior B: entropy", "laws/priors/binary.py", "np.log1p(np.exp(-size)) + size * expit(-size)",
          "np.log1p(np.exp(-size)) + size * expit(size)", "test_contracts test_priors"),
    Fault("prior B: threshold without the product", "laws/priors/binary.py",
          "log_odds = total + np.log(-np.expm1(-np.maximum(total, np.finfo(np.float64).tiny)))",
          "log_odds = total", "test_models test_priors"),
    Fault("bandwidth: perplexity's target", "laws/bandwidths/perplexity.py", "target = float(np.log(self.perplexity))",
          "target = float(np.log2(self.perplexity))", "test_bandwidths"),
    Fault("bandwidth: shift of UMAP", "laws/bandwidths/base.py", "dist = np.sqrt(sq_dist) - shift[support.rows]",
          "dist = np.sqrt(sq_dist)", "test_bandwidths test_models test_peers"),
    Fault("neighbors: duplicates lose their zero", "neighbors/distances.py",
          "super()._exactly(support, dist, n_jobs) if sp.issparse(self.X) else self.along(support, n_jobs)",
          "super()._exactly(support, dist, n_jobs)", "test_neighbors test_models test_robustness"),
    Fault("neighbors: cosine from unit vectors", "neighbors/by_metric.py",
          "way)\n            return support, np.square(0.5 * sq_dist)", "way)\n            return support, np.square(sq_dist)", "test_neighbors"),
    Fault("coupling: share of unordered pairs", "couplings/pair.py", "return 0.5 if self.posterior.unordered else 1.0",
          "return 1.0", "test_cross_entropy test_contracts"),
    Fault("coupling: bandwidth of the embedding", "couplings/pair.py",
          "return (gradient / self.scale).astype(points.dtype, copy=False)",
          "return gradient.astype(points.dtype, copy=False)", "test_contracts test_cross_entropy"),
    Fault("coupling: exaggeration forgotten", "couplings/pair.py", "weighted.exaggeration = self.exaggeration * factor",
          "weighted.exaggeration = self.exaggeration", "test_cross_entropy test_literal_losses"),
    Fault("coupling: feasibility", "couplings/pair.py", "missing = latent.prior.constraints - posterior.constraints",
          "missing = posterior.constraints - latent.prior.constraints", "test_cross_entropy"),
    Fault("sum: curvatures do not add", "couplings/base.py",
          "return sum(abs(weight) * term.curvature(Z) for weight, term in self.terms if weight)",
          "return max(abs(weight) * term.curvature(Z) for weight, term in self.terms if weight)", "test_cross_entropy"),
    Fault("effective: degrees", "couplings/effective.py", "of_noise + self.noise[:, None] * of_degrees",
          "of_noise + self.noise[:, None] * of_noise", "test_contracts test_effective"),
    Fault("precision: Woodbury", "couplings/precision.py", "gram[np.diag_indices_from(gram)] += 1.0",
          "gram[np.diag_indices_from(gram)] += 1.1", "test_precision"),
    Fault("components: the same graph every time", "couplings/component_means.py",
          "means = _Means(self._fresh(iteration), self._X, self._mean)",
          "means = _Means(self._fresh(0), self._X, self._mean)", "test_hierarchical"),
    Fault("components: ε lost from the trace", "couplings/component_means.py",
          "self.epsilon**0.5 * self._unit * means.X", "self._unit * means.X", "test_hierarchical"),
    Fault("descent: gains", "_numba/descent.py", "gain = gains[i, a] + 0.2", "gain = gains[i, a] + 0.3", "test_solve"),
    Fault("descent: a saddle counts as converged", "optimize/monitor.py",
          "if is_collapsed(self.objective, Z, loss):", "if False:", "test_solve"),
    Fault("descent: the exaggerated gradient stops the run", "optimize/momentum.py",
          "grad_norm=np.inf if warming_up else norm", "grad_norm=norm", "test_solve"),
    Fault("descent: exaggeration one iteration long", "optimize/exaggeration.py", "if iteration >= self.n_iter:",
          "if iteration >= 1:", "test_solve test_descent"),
    Fault("descent: exaggeration beyond what the graph bears", "optimize/descent.py",
          "min((length / _ITERATIONS_PER_ROOT) ** 2, _BEARABLE * limit)", "(length / _ITERATIONS_PER_ROOT) ** 2",
          "test_descent"),
    Fault("descent: no more exaggeration than t-SNE's", "optimize/descent.py",
          "min((length / _ITERATIONS_PER_ROOT) ** 2, _BEARABLE * limit)", "min(12.0, _BEARABLE * limit)", "test_descent"),
    Fault("descent: exaggerated edges more than sure", "couplings/cross_entropy.py", "if strength != radial:", "if False:",
          "test_descent test_cross_entropy"),
    Fault("descent: starts of any size", "optimize/rays.py", "return float(_STRIDE**exponent)", "return 1.0",
          "test_descent"),
    Fault("descent: L-BFGS forgets curvature", "optimize/lbfgs.py", "shrink = 1.0 / (inverse * float(squares.sum()))",
          "shrink = 1.0", "test_descent"),
    Fault("descent: the loss is never compared", "optimize/lbfgs.py", "if not state.careful and iteration % _COMPARE_EVERY == 0:",
          "if False:", "test_descent"),
    Fault("descent: the last embedding, not the best", "optimize/solve.py", "if optimizer.noisy else monitor.best",
          "if True else monitor.best", "test_descent test_solve"),
    Fault("descent: points thrown out", "optimize/lbfgs.py", "direction *= np.minimum(1.0, longest / np.maximum(rows, longest))[:, None]",
          "direction *= 1.0", "test_descent"),
    Fault("descent: nothing said of a run cut short", "optimize/verdict.py", "(fell := monitor.still_falling(monitor.losses[-1])) > UNSETTLED",
          "(fell := monitor.still_falling(monitor.losses[-1])) > np.inf", "test_descent"),
    Fault("descent: one run of few points", "optimize/solve.py", "for most, runs in _RUNS if n_points <= most), 1)",
          "for most, runs in _RUNS if n_points <= most), 1) and 1", "test_descent"),
    Fault("mesh: charges of the second set", "_numba/near.py", "other_fx += other[j] * wx", "other_fx += c[j] * wx",
          "test_contracts test_effective"),
    Fault("descent: exaggeration without a lower bound", "optimize/descent.py",
          "limit = min(bearable_attraction(objective, small), limit)", "limit = bearable_attraction(objective, small)",
          "test_descent"),
    Fault("descent: noise as it is", "optimize/roughness.py", "return pulled > _ROUGH * otherwise", "return False",
          "test_rough_starts"),
    Fault("descent: noise is asked what the graph bears", "optimize/roughness.py",
          "push_over_pull(objective, smoothest(objective, Z) if is_rough(objective, Z) else Z)", "push_over_pull(objective, Z)",
          "test_rough_starts"),
    Fault("descent: noise smoothed by one step", "optimize/roughness.py", "for _ in range(n_steps)", "for _ in range(2)",
          "test_rough_starts"),
    Fault("descent: nothing of the noise is kept", "optimize/roughness.py", "_KEPT = 0.01", "_KEPT = 0.0",
          "test_rough_starts"),
    Fault("descent: every start is smoothed", "optimize/roughness.py", "_ROUGH = 0.7", "_ROUGH = 0.0", "test_rough_starts"),
    Fault("descent: many points are not untangled", "optimize/descent.py", "length = max(length, min(untangled, 3 * most // 4))",
          "pass", "test_rough_starts"),
    Fault("descent: a run ends while it is exaggerated", "optimize/solve.py",
          "not optimizer.warming_up(3 * monitor.max_iter // 4)", "True", "test_rough_starts"),
    Fault("descent: terms say what the graph bears", "optimize/exaggeration.py", "Z.astype(np.float64), objective.attracting",
          "Z.astype(np.float64), objective", "test_rough_starts"),
    Fault("sum: springs of the first term alone", "couplings/base.py", "return sum(found[1:], found[0]) if found else None",
          "return found[0] if found else None", "test_rough_starts"),
    Fault("descent: nothing said of a start of the wrong size", "optimize/verdict.py",
          "if 1.0 / _FAR_FROM_BEST < factor < _FAR_FROM_BEST:", "if True:", "test_descent"),
    Fault("descent: no size along a ray that only falls", "optimize/rays.py", "return _where_level(known)", "return 1.0",
          "test_descent"),
    Fault("mixture: equal weights", "laws/priors/mixture.py", "return w / w.sum()", "return np.full(n_parts, 1.0 / n_parts)",
          "test_mixtures"),
    Fault("mixture: too many of the shared neighbours", "laws/mixture.py", "if n_neighbors >= rows.shape[1]:", "if True:",
          "test_mixtures"),
    Fault("mesh: table of singles one place off", "_numba/tables.py", "(bits >> _SHIFT_SINGLE) - _FIRST_SINGLE",
          "(bits >> _SHIFT_SINGLE) - _FIRST_SINGLE + 1", "test_particle_mesh"),
    Fault("start: torn components", "spectral/parts.py", "if parts.n_parts == 1 and", "if", "test_classical"),
    Fault("sampling: the repelling end", "_numba/sampling.py", "weight[r] = -size * repelling.slope(sq_dist[r])",
          "weight[r] = size * repelling.slope(sq_dist[r])", "test_effective"),
    Fault("start: scale", "initializations.py", "Z = Z * (scale / spread)", "Z = Z * scale", "test_initializations test_extensions"),
    Fault("sentence: terms forgotten", "sentence.py", "with_terms(coupling, terms)", "with_terms(coupling, ())",
          "test_extensions test_sentences"),
    Fault("projection: mean of components", "_numba/components.py", "sums[c, k] /= counts[c]", "sums[c, k] /= counts[0]",
          "test_components test_ccpca"),
    Fault("ccPCA: its standard error", "components/pca.py", "(n_batches - 1) / n_batches * spread", "spread / n_batches",
          "test_ccpca"),
    Fault("metrics: K-ary preservation", "_numba/ranks.py", "shared[rho] += 1", "shared[rho - 1] += 1", "test_metrics test_scores"),
    Fault("theory: forest formula", "theory/normalizers.py", "return -0.5 * dim * float(np.log(np.bincount(labels)).sum())",
          "return -dim * float(np.log(np.bincount(labels)).sum())", "test_mrf"),
    Fault("descent: automatic runs end where they were planned to", "optimize/solve.py", "_MOST_EXTENDED = 3",
          "_MOST_EXTENDED = 1", "test_solve"),
    Fault("start: edges that rounding hides", "spectral/laplacian.py", "_UNSEEN = 1e-12", "_UNSEEN = 0.0",
          "test_initializations test_spectral"),
    Fault("new points: assigned to lists by their middles", "neighbors/inverted_file.py",
          "nearest_centres, points, self.means, list_of", "nearest_centres, points, self.centres, list_of", "test_transform"),
    Fault("new points: repulsion of the second kind of charge", "couplings/fixed_map.py",
          "mass[:, None] * push + noise[:, None] * other", "mass[:, None] * push", "test_transform"),
    Fault("new points: copies get a place of their own", "estimators/new_points.py",
          "Z[same] = self._places[edges.coincident[same]]", "pass", "test_transform"),
    Fault("new points: nothing near", "_numba/places.py", "if sq_dist < edge:", "if sq_dist < 0.0:", "test_transform"),
    Fault("new points: curvature unknown", "_numba/places.py", "if not curved > 1e-12", "if True or not curved > 1e-12",
          "test_transform"),
    Fault("growing maps: held points move", "couplings/anchors.py",
          "return np.where(self.held[:, None], np.zeros((), dtype=gradient.dtype), gradient)", "return gradient",
          "test_growing"),
    Fault("align: another turn", "alignment.py", "turn, total = orthogonal_procrustes(moved, wanted)",
          "turn, total = orthogonal_procrustes(wanted, moved)", "test_growing"),
    Fault("own neighbors: missing ones are points", "neighbors/own_graph.py", "found = ends >= 0",
          "found = ends >= -1", "test_own_neighbors"),
    Fault("perplexity: lowered to another value", "laws/bandwidths/perplexity.py", "lowered = others / 3.0 if others > 3",
          "lowered = others / 2.0 if others > 3", "test_bandwidths"),
    Fault("weights: own copies count", "laws/copies.py", "np.maximum(rows - 1.0, 0.0)", "np.maximum(rows, 0.0)",
          "test_weights"),
    Fault("weights: repulsion among copies", "laws/priors/base.py", "others = np.maximum(weights - 1.0, 0.0) * at_zero",
          "others = 0.0 * weights * at_zero", "test_weights"),
    Fault("weights: the last neighbor counts in part", "laws/copies.py", "nearer, 0.0, counts)", "nearer, 0.0, 1e9)",
          "test_weights"),
    Fault("weights: new points feel them", "couplings/fixed_map.py",
          "return np.ones((1, n_points)) if weights is None else weights[None, :]", "return np.ones((1, n_points))",
          "test_weights"),
    Fault("classes: unknown ones", "laws/labels.py", "np.where(unknown, _UNKNOWN, start != end)", "(start != end)",
          "test_labels"),
    Fault("classes: odds in place of probabilities", "laws/priors/binary.py",
          "return np.where(log_share < 0.0, odds, natural_parameters)", "return natural_parameters + log_share",
          "test_labels"),
    Fault("blocks: the unit of a block", "neighbors/blocks.py",
          "scaled = [sq_dist / part.unit**2 for", "scaled = [sq_dist / part.unit for", "test_blocks"),
    Fault("blocks: a new category is the last known", "neighbors/blocks.py",
          "np.where(known[at] == column, at, known.size)", "at", "test_blocks"),
    Fault("saved: scales of the graph", "laws/given_model.py", '"weights": self.weights}', '"weights": None}',
          "test_weights test_saved"),
    Fault("mutual: odds of the product", "laws/priors/binary.py",
          "-np.logaddexp(np.logaddexp(-ahead, -behind), -ahead - behind)", "-np.logaddexp(-ahead, -behind)",
          "test_peer_options"),
    Fault("many edges: columns of later parts", "summation/edges.py", 'sp.hstack(beside, format="csr")',
          'sp.hstack(beside[::-1], format="csr")', "test_peer_options"),
    Fault("matching: the reverse direction", "_numba/matching.py", "loss.grad_cost(back[e], p)",
          "loss.grad_cost(ahead[e], p)", "test_matching"),
    Fault("matching: the share of a row's sum", "couplings/row_means.py",
          "own -= (shared / norms[rows] ** 2)[:, None]", "own -= 0.0 * shared[:, None]", "test_matching"),
    Fault("reconstruction: 1/n", "couplings/reconstruction.py", "return (pull + 2.0 / self._n * push)",
          "return (pull + 1.0 / self._n * push)", "test_matching"),
    Fault("PCA by forces: centring", "spectral/gram.py",
          "whole - self.rows - self.rows[:, None] + self.rows.mean()",
          "whole - self.rows - self.rows[:, None]", "test_attraction_repulsion"),
    Fault("PCA by forces: the quartic", "couplings/gram.py", "2.0 * float((B * E).sum())", "float((B * E).sum())",
          "test_attraction_repulsion"),
    Fault("pivots: the residual", "spectral/low_rank.py", "left -= np.square(factor[:, k])", "left -= factor[:, k]",
          "test_attraction_repulsion"),
    Fault("contraction: the majorizer's pull", "couplings/contraction.py", "of_rho - 2.0 * pull", "of_rho - pull",
          "test_contraction"),
    Fault("contraction: forces of the degrees", "couplings/contraction.py", "rho[:, None] * laplacian.of_degrees + ",
          "", "test_contraction"),
    Fault("contraction: low rank", "summation/base.py", '"si,sia->ia", left, gradients', '"si,sia->ia", right, gradients', "test_contraction"),
    Fault("batches: neighbours stay behind", "optimize/batches.py", "moves[self.strongest[batch]] = True", "pass", "test_contraction"),
    Fault("landmarks: the others' rows", "estimators/base.py", "Z[rows], Z[others] = fitted, self.transform(X[others])",
          "Z[rows], Z[others] = fitted, self.transform(X[others])[::-1]", "test_landmarks"),
    Fault("spectral: the largest gap", "spectral/laplacian.py", "np.diff(np.asarray(eigenvalues, dtype=np.float64))[1:]",
          "np.diff(np.asarray(eigenvalues, dtype=np.float64))", "test_contraction"),
    Fault("spectral: Nyström without the mean of rows", "spectral/gram.py", "- self.rows + self.rows.mean()",
          "+ self.rows.mean()", "test_classical test_spectral"),
    Fault("spectral: eigenvectors of L for those of D⁻¹ L", "spectral/laplacian.py", "(norm / roots)[:, None]", "norm",
          "test_classical test_spectral"),
    Fault("spectral: the known vector comes back", "spectral/eigen.py", "vectors - np.outer(known, known @ vectors)", "vectors",
          "test_classical test_spectral"),
    Fault("spectral: a share of λ", "estimators/laplacian_methods.py", "share = 1.0 - values /", "share = 1.0 + 0.0 * values /",
          "test_classical test_spectral"),
    Fault("spectral: components in the wrong place", "spectral/parts.py", "Z = origins[parts.labels]",
          "Z = origins[parts.labels[::-1]]", "test_classical test_spectral"),
    Fault("spectral: components that overlap", "spectral/parts.py", "2.0 * (radii[:, None] + radii)",
          "0.2 * (radii[:, None] + radii)", "test_classical test_spectral"),
    Fault("spectral: factors squared", "spectral/gram.py", "right / np.sqrt(np.where(values > 0, values, 1.0))",
          "right / np.where(values > 0, values, 1.0)", "test_classical test_spectral"),
    Fault("isomap: paths from new points", "estimators/isomap.py", "lengths[own, a, None] + through", "through",
          "test_classical test_spectral"),
    Fault("isomap: edges between copies", "estimators/isomap.py", "values = np.concatenate([lengths, lengths])[first]",
          "values = np.maximum(np.concatenate([lengths, lengths])[first], 1.0)", "test_classical test_spectral"),
    Fault("lle: weights of new points", "couplings/reconstruction.py", "X if X_new is None else X_new", "X",
          "test_classical test_spectral"),
    Fault("autoencoder: shrinkage", "estimators/autoencoder.py", "1.0 - self.alpha / ", "1.0 - 0.5 * self.alpha / ",
          "test_classical test_spectral"),
    Fault("stress: the second direction", "_numba/stress.py", "pull = 2.0 * weights[e]", "pull = weights[e]", "test_stress"),
    Fault("stress: sampled pairs for all", "couplings/stress.py", "(n * (n - 1) / pairs.n_edges)", "1.0", "test_stress"),
    Fault("stress: measured on the pairs fitted", "estimators/metric_mds.py", "self.stress_ = objective.value(Z)",
          "pass", "test_stress"),
    Fault("stress: majorization", "estimators/metric_mds.py", "fixed + stretch[:, None] * away", "fixed + away",
          "test_stress"),
    Fault("large scale: T without its slope", "_numba/large_scale.py", "slope -= ratio * steep[g]", "slope -= 0.0",
          "test_large_scale"),
    Fault("large scale: T of the groups without its slope", "_numba/large_scale.py", "pull_on[b, g] -= ratio * steep[g]",
          "pull_on[b, g] -= 0.0", "test_large_scale"),
    Fault("large scale: near for far", "_numba/large_scale.py", "(one - near[i, g]) * wide", "near[i, g] * wide",
          "test_large_scale"),
    Fault("large scale: explained by entropy too", "couplings/large_scale.py", "alike.value(Z) - alike._constant + self._constant",
          "alike.value(Z)", "test_large_scale"),
    Fault("large scale: ties", "couplings/large_scale.py", "(begins + ends) / (2.0 *", "ends / (1.0 *",
          "test_large_scale"),
    Fault("large scale: variance held", "couplings/large_scale.py", "(pull + total / n)", "(pull + 0.0 * total)",
          "test_large_scale"),
    Fault("large scale: sizes of groups", "couplings/large_scale.py", "self._groups, self.weights = groups, sizes / groups.size",
          "self._groups, self.weights = groups, np.full(sizes.size, 1.0 / sizes.size)", "test_large_scale"),
    Fault("groups: scatter around the mean", "neighbors/groups.py", "return sq_dist + (", "return sq_dist + 0.0 * (",
          "test_large_scale"),
    Fault("groups: one member for all", "neighbors/groups.py", "((k + chance) / _MEMBERS * sizes)", "(0.0 * (k + chance) * sizes)",
          "test_large_scale"),
    Fault("terms at large: beyond 10,000 points", "couplings/global_term.py", "(_MANY / n_points) ** 0.5", "1.0",
          "test_large_scale"),
    Fault("shape: turned the other way", "couplings/reference_shape.py", "(right.T @ left.T)", "(left @ right)",
          "test_global_terms"),
    Fault("shape: size forgotten", "couplings/reference_shape.py", "2.0 * alike * share / size", "2.0 * alike * share", "test_global_terms"),
    Fault("distances: scale not the best", "couplings/distance_shape.py", "share = product / (softened * wanted)",
          "share = 0.9 * product / (softened * wanted)", "test_global_terms"),
    Fault("component means: the weight's range", "couplings/global_term.py", "- objective.value(Y)", "- 0.0",
          "test_hierarchical"),
    Fault("precision: half of a small direction", "couplings/precision.py", "/ (1.0 + sq_singular)", "/ (2.0 + sq_singular)",
          "test_precision"),
    Fault("precision: R the wrong way", "couplings/precision.py", "right @ right.T", "right.T @ right",
          "test_precision test_hierarchical"),
    Fault("snapshots: the monitor forgets", "optimize/monitor.py",
          '("losses", "iterations", "best", "max_iter", "converged", "before_last_tenth")',
          '("losses", "iterations", "max_iter", "converged", "before_last_tenth")', "test_run_control"),
    Fault("snapshots: another run's", "optimize/snapshots.py", "        if other:\n", "        if False:\n", "test_run_control"),
    Fault("snapshots: L-BFGS without its pairs", "optimize/lbfgs.py", 'return {**state._asdict(), "majorizer": known}',
          'return {**state._asdict(), "majorizer": known, "pairs": ()}', "test_run_control"),
    Fault("warm start: exaggerated again", "estimators/run_control.py", "early_exaggeration=1.0)", "early_exaggeration=4.0)",
          "test_run_control"),
    Fault("threads: as many as asked for", "_numba/threads.py", "max(_cores(), _FEW))", "10**9)", "test_threads"),
]  # fmt: skip


def is_caught(fault: Fault) -> bool:
    """Return whether a test fails in a copy of the repository with the fault in it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("graphcouple", "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        path = copy / "graphcouple" / fault.file
        text = path.read_text()
        if text.count(fault.before) < 1:
            raise SystemExit(f"{fault.name}: {fault.file} no longer holds {fault.before!r}; write the fault anew")
        path.write_text(text.replace(fault.before, fault.after, 1))
        files = [f"tests/{name}.py" for name in fault.tests.split()]
        environment = {**os.environ, "PYTHONPATH": folder, "NUMBA_CACHE_DIR": f"{folder}/cache"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.stdout.write(done.stdout[-2000:])
        return done.returncode == 1


def main() -> int:
    """Try the faults; return 1 if one survives."""
    wanted = [fault for fault in FAULTS if not sys.argv[1:] or any(word in fault.name for word in sys.argv[1:])]
    survivors = []
    for fault in wanted:
        start = time.perf_counter()
        caught = is_caught(fault)
        survivors += [] if caught else [fault.name]
        seconds = time.perf_counter() - start
        sys.stdout.write(f"{'caught  ' if caught else 'SURVIVED'} {seconds:5.1f} s  {fault.name}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(wanted) - len(survivors)} of {len(wanted)} caught\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
