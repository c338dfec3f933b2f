"""Wang and Davidson 2010, "Flexible constrained spectral clustering": facts about feasible cuts."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints
from clew.graph._constrained_spectral import _RIDGE, constrained_cuts
from tests.reference.constrained_spectral import cut_problem, feasible_cuts


def problem(seed, n=12):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)), 1)
    known = Constraints.sample(rng.permutation(n) % 2, 10, balance=0.5, random_state=seed)
    return cut_problem((upper + upper.T).tolist(), known)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.6, 0.9])
def test_section_4_3_a_threshold_below_the_largest_eigenvalue_leaves_a_feasible_cut(threshold, seed):
    """There are as many feasible cuts as eigenvalues of the pairs' matrix above the threshold, so at least one."""
    laplacian, Q, _ = problem(seed)
    values = np.linalg.eigvalsh(Q)
    beta = threshold * values[-1]
    found, _ = feasible_cuts(laplacian + _RIDGE * np.eye(len(Q)), Q, beta)
    assert len(found) == np.count_nonzero(values > beta) >= 1


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6, 0.9])
def test_section_4_2_feasible_cuts_satisfy_the_pairs_by_the_threshold(threshold, seed):
    laplacian, Q, roots = problem(seed)
    losses, basis = np.linalg.eigh(laplacian)
    constant = (1 / roots) / np.linalg.norm(1 / roots)
    _, mixing = constrained_cuts(losses, basis.T @ Q @ basis, basis.T @ constant, 1, threshold)
    cut = basis @ mixing[:, 0]
    assert cut @ Q @ cut >= threshold * np.linalg.eigvalsh(Q)[-1] - 1e-9


def test_section_4_4_a_higher_threshold_satisfies_more_at_a_higher_cut(seed):
    laplacian, Q, roots = problem(seed)
    losses, basis = np.linalg.eigh(laplacian)
    constant = basis.T @ ((1 / roots) / np.linalg.norm(1 / roots))
    cuts, satisfied = [], []
    for threshold in (0.1, 0.5, 0.9):
        cut, mixing = constrained_cuts(losses, basis.T @ Q @ basis, constant, 1, threshold)
        cuts.append(cut[0])
        satisfied.append(mixing[:, 0] @ basis.T @ Q @ basis @ mixing[:, 0])
    assert satisfied == sorted(satisfied)
    assert cuts == sorted(cuts)
