"""DistBoost against plain loops, and its weighted mixture against copies of rows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from clew import Constraints, DistBoost
from clew.exceptions import InfeasibleConstraintsError, ParameterError
from clew.metric._dist_boost import PairWeights, WeightedMixture, dist_boost
from clew.metric._pairs import learning_pairs
from clew.mixture import ConstrainedGaussianMixture
from clew.mixture._em import expectation_maximization
from clew.mixture._gaussians import with_factors
from tests.reference import dist_boost as reference


def some_rows(seed, *, with_triplets):
    rng = np.random.default_rng(seed)
    y = np.resize(np.arange(3), 12)
    X = rng.normal(size=(12, 2)) + 3 * rng.normal(size=(3, 2))[y]
    drawn = Constraints.sample(y, 12, balance=0.5, random_state=int(seed))
    triplets = [(0, 3, 1), (5, 2, 4)] if with_triplets else None
    known = Constraints(
        drawn.must_link, drawn.cannot_link, triplets=triplets, n_samples=12,
        must_link_confidence=rng.choice([0.5, 1.0], len(drawn.must_link)),
        cannot_link_confidence=rng.choice([0.5, 1.0], len(drawn.cannot_link)),
    )  # fmt: skip
    mixtures = [
        (rng.dirichlet([2.0, 2.0, 2.0]), 3 * rng.normal(size=(3, 2)), rng.uniform(1, 4, size=(3, 2))) for _ in range(14)
    ]
    return X, known, mixtures


def labelled_pairs(known):
    """(y, confidence) of both directions of each pair."""
    found = {}
    for pairs, confidence, sign in (
        (known.must_link, known.must_link_confidence, 1),
        (known.cannot_link, known.cannot_link_confidence, -1),
    ):
        for (i, j), sure in zip(pairs.tolist(), confidence.tolist(), strict=True):
            found[i, j] = found[j, i] = (sign, sure)
    return found


@pytest.mark.parametrize("share", [0.0, 0.8, "uniform"])
@pytest.mark.parametrize("draw", range(8))
def test_rounds_are_those_of_the_plain_loops(draw, share, seed):
    X, known, mixtures = some_rows(100 * seed + draw, with_triplets=draw % 2 == 1)
    seen = []

    def learn(counts):
        weights, means, variances = mixtures[len(seen)]
        seen.append(counts)
        return SimpleNamespace(gaussians=with_factors("diag", means, variances), log_weights=np.log(weights))

    pairs = learning_pairs(known, np.random.default_rng(0))
    start = PairWeights(pairs, known.triplets, len(X), None if share == "uniform" else share)
    found = dist_boost(X, start, learn, 4)
    alphas, expected, history, distances = reference.dist_boost(
        X.tolist(), labelled_pairs(known), known.triplets.tolist(), share,
        [list(zip(*(part.tolist() for part in mixture), strict=True)) for mixture in mixtures], 4,
    )  # fmt: skip
    np.testing.assert_allclose(seen, expected, atol=1e-12)
    np.testing.assert_allclose(found.history, history, atol=1e-12)
    np.testing.assert_allclose(found.round_weights, alphas or [1.0], atol=1e-12)
    if alphas:
        model = DistBoost(3, covariance_type="diag")
        model.n_features_in_, model.center_, model.scale_ = 2, np.zeros(2), np.ones(2)
        model.round_weights_ = found.round_weights
        model.mixture_weights_ = np.exp([one.log_weights for one in found.mixtures])
        model.mixture_means_ = np.array([one.gaussians.means for one in found.mixtures])
        model.mixture_covariances_ = np.array([one.gaussians.covariances for one in found.mixtures])
        np.fill_diagonal(np.asarray(distances := np.array(distances)), 0)
        np.testing.assert_allclose(model.pairwise(X), distances, atol=1e-12)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_row_of_weight_three_is_three_must_linked_copies(kind, seed):
    """Survey, section 3.3: how weights enter the constrained mixture."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 2)) + np.resize([0.0, 4.0], 9)[:, None]
    counts = rng.integers(1, 4, size=9)
    known = Constraints([(0, 2)], [(0, 1), (3, 4)], n_samples=9)
    shares = rng.dirichlet([1.0, 1.0], size=9)
    shares[[0, 2]] = shares[0]
    options = {"covariance_type": kind, "max_iter": 5, "tol": 0.0, "reg_covar": 1e-3}
    weighted = WeightedMixture(2, **options)
    weighted._counts = counts[:, None].astype(float)
    found = weighted._climbed(X, weighted._knowledge(known, np.arange(2)), shares)

    origin = np.repeat(np.arange(9), counts)
    first = np.searchsorted(origin, np.arange(9))
    copies = Constraints(first[known.must_link], first[known.cannot_link], must_groups=origin, n_samples=len(origin))
    knowledge = ConstrainedGaussianMixture(2, **options)._knowledge(copies, np.arange(2))
    plain = expectation_maximization(X[origin], knowledge, shares[origin], kind, reg_covar=1e-3, max_iter=5, tol=0.0)
    np.testing.assert_allclose(found.gaussians.means, plain.gaussians.means, atol=1e-9)
    np.testing.assert_allclose(found.gaussians.covariances, plain.gaussians.covariances, atol=1e-9)
    np.testing.assert_allclose(found.log_weights, plain.log_weights, atol=1e-9)
    np.testing.assert_allclose(found.history, plain.history, atol=1e-9)


def test_wrong_input_is_refused():
    X = [[0.0], [1.0], [5.0], [6.0]]
    with pytest.raises(InfeasibleConstraintsError, match=r"labels name 3 classes, but n_clusters=2\. Raise n_clusters"):
        DistBoost(2).fit(X, constraints=[0, 1, 2, -1])
    with pytest.raises(ParameterError, match=r"unlabelled_share=2 in DistBoost: expected"):
        DistBoost(2, unlabelled_share=2).fit(X)
    with pytest.raises(ParameterError, match=r"reg_covar=0 in DistBoost: expected"):
        DistBoost(2, reg_covar=0).fit(X)
    with pytest.raises(NotFittedError, match="DistBoost instance is not fitted"):
        DistBoost(2).pairwise(X)
