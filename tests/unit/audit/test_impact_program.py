"""Impact by a linear program, the filter by impact, and the fitness per multiplier."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from clew import Constraints
from clew.audit import advise_metric, filter_by_impact, impact, metric_fitness
from clew.exceptions import DataError, ParameterError

LINE = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])


def cheapest(distances, known, k):
    """Cost of the best labelling that satisfies all constraints, by trying all."""
    labellings = [
        labels for labels in product(range(k), repeat=len(distances)) if not any(map(len, known.violations(labels)))
    ]
    return min(
        sum(distances[row, medoids[label]] for row, label in enumerate(labels))
        for labels in labellings
        for medoids in combinations(range(len(distances)), k)
    )


def table_of(seed, n_rows=60, n_right=14, n_wrong=4):
    """Three groups, right pairs and wrong ones; which pairs are wrong."""
    rng = np.random.default_rng(seed)
    y = np.repeat(range(3), n_rows // 3)
    X = rng.normal(0, 5, size=(3, 2))[y] + rng.normal(0, 0.7, size=(n_rows, 2))
    right = Constraints.sample(y, n_right, random_state=seed)
    wrong = Constraints.sample(y, n_wrong, random_state=seed + 100)
    known = Constraints(
        np.vstack([right.must_link, wrong.cannot_link]),
        np.vstack([right.cannot_link, wrong.must_link]),
        n_samples=n_rows,
    )
    is_wrong = np.repeat(
        [False, True, False, True],
        [len(right.must_link), len(wrong.cannot_link), len(right.cannot_link), len(wrong.must_link)],
    )
    return X, known, is_wrong


@pytest.mark.parametrize(
    "known",
    [
        {"must_link": [(2, 3)]},
        {"cannot_link": [(0, 1)]},
        {"must_link": [(0, 5)], "cannot_link": [(3, 4)]},
        {"cannot_groups": [0, 0, -1, -1, -1, -1]},
    ],
)
def test_the_program_bounds_every_labelling_that_satisfies_the_constraints(known):
    stated = Constraints.of(known, n_samples=6)
    found = impact(LINE, stated, 2, "kmedoids", solver="lp")
    free = impact(LINE, Constraints(n_samples=6), 2, "kmedoids", solver="lp")
    assert free.lower_bound == pytest.approx(4.0)  # medoids 1 and 4, four rows at distance 1
    assert free.lower_bound - 1e-9 <= found.lower_bound <= cheapest(cdist(LINE, LINE), stated, 2) + 1e-9
    assert found.converged


def test_both_solvers_price_the_wrong_pairs_of_tiny_cases_and_no_others():
    known = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(0, 5)]}
    for solver in ("subgradient", "lp"):
        found = impact(LINE, known, 2, "kmedoids", solver=solver)
        assert (found.must_link_score < -1e-6).tolist() == [False, True]
        assert found.cannot_link_score.tolist() == [0.0]
        assert found.must_link_multipliers.sum(axis=1) == pytest.approx(found.must_link_score)


def test_the_program_tells_fewer_wrong_pairs_from_right_ones_than_the_default():
    told = {"lp": np.zeros(3), "subgradient": np.zeros(3)}
    for seed in range(12):
        X, known, is_wrong = table_of(seed)
        found = {solver: impact(X, known, 3, "kmedoids", solver=solver) for solver in told}
        for solver, prices in found.items():
            priced = np.concatenate([prices.must_link_score, prices.cannot_link_score]) < -1e-3 * prices.unit
            told[solver] += [(priced & is_wrong).sum(), (priced & ~is_wrong).sum(), (~priced & is_wrong).sum()]
        assert found["lp"].lower_bound <= found["subgradient"].upper_bound
    f1 = {solver: 2 * right / (2 * right + extra + missed) for solver, (right, extra, missed) in told.items()}
    assert f1 == {"lp": pytest.approx(0.83, abs=0.02), "subgradient": pytest.approx(0.98, abs=0.02)}  # docs/audit.md


def test_the_program_takes_contradictions_doubt_classes_and_more_cannot_links_than_clusters():
    known = Constraints(
        [(0, 1)], [(0, 1), (2, 4)], must_link_confidence=[0.6], labels=[0, 0, -1, 1, 0, -1],
        cannot_groups=[0, 0, 0, 0, 0, 0], must_groups=[-1, -1, 0, 0, -1, -1],
    )  # fmt: skip
    found = impact(LINE, known, 2, "kmedoids", solver="lp")
    assert np.isfinite(found.lower_bound)
    assert found.label_score.shape == (6,)
    assert found.cannot_group_score.min() < 0
    assert found.label_score[4] < 0  # a row of the right group with the class of the left one


def test_the_program_refuses_what_it_cannot_do():
    with pytest.raises(ParameterError, match="solver='simplex' in impact: expected 'subgradient' or 'lp'"):
        impact(LINE, {}, 2, "kmedoids", solver="simplex")
    with pytest.raises(ParameterError, match="solver='lp' with model='kmeans'"):
        impact(LINE, {}, 2, solver="lp")
    with pytest.raises(DataError, match="takes up to 200 rows, and X has 201"):
        impact(np.arange(201.0)[:, None], {}, 2, "kmedoids", solver="lp")


def test_the_filter_drops_free_pairs_and_the_floor_of_the_share_of_the_worst():
    X, known, _ = table_of(0)
    found = impact(X, known, 3)
    scores = np.concatenate([found.must_link_score, found.cannot_link_score])
    negative = np.sort(scores[scores < -1e-3 * found.unit])
    for fraction in (0.0, 0.3, 0.5, 0.99, 1.0):
        kept = filter_by_impact(found, fraction)
        again = impact_of_pairs(found, kept)
        assert again.tolist() == negative[int(fraction * len(negative)) :].tolist()
        all_free = filter_by_impact(found, fraction, keep_free=True)
        assert len(impact_of_pairs(found, all_free)) == len(scores) - int(fraction * len(negative))


def impact_of_pairs(found, kept):
    """Scores of the pairs that were kept, ascending."""
    scores = {}
    for kind in ("must_link", "cannot_link"):
        for pair, score in zip(getattr(found.constraints, kind).tolist(), getattr(found, f"{kind}_score"), strict=True):
            scores[kind, *pair] = score
    pairs = [(kind, *pair) for kind in ("must_link", "cannot_link") for pair in getattr(kept, kind).tolist()]
    return np.sort([scores[pair] for pair in pairs])


def test_the_filter_counts_repeated_pairs_once_and_keeps_the_rest():
    labels = np.array([0, -1, -1, -1, -1, 1])
    known = Constraints([(2, 3), (3, 2), (0, 1)], [(0, 1)], labels=labels)
    found = impact(LINE, known, 2)
    kept = filter_by_impact(found, 0.5)
    assert kept.labels.tolist() == labels.tolist()
    assert len(filter_by_impact(found).must_link) in (2, 3)
    assert filter_by_impact(found, 1.0).must_link.tolist() == []
    for wrong in (-0.1, 1.5, "half", True):
        with pytest.raises(ParameterError, match=r"fraction=.* in filter_by_impact: expected a number from 0 to 1"):
            filter_by_impact(found, wrong)
    with pytest.raises(ParameterError, match="takes the result of impact, not a Constraints"):
        filter_by_impact(known)


def test_fitness_per_multiplier_is_eq_620_as_a_share():
    known = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(0, 5)]}
    found = impact(LINE, known, 2, "kmedoids")
    parts = np.concatenate([found.must_link_multipliers, found.cannot_link_multipliers])
    assert parts.shape == (3, 2)
    expected = np.mean(parts > -1e-3 * found.unit)
    assert metric_fitness(LINE, known, 2, per="multiplier") == pytest.approx(expected)
    assert metric_fitness(LINE, known, 2) == pytest.approx(2 / 3) and expected >= 2 / 3
    advice = advise_metric(LINE, known, 2, ["euclidean", "manhattan"], n_bags=2, per="multiplier")
    assert ((advice.fitness >= 0) & (advice.fitness <= 1)).all()
    for call in (metric_fitness, advise_metric):
        with pytest.raises(ParameterError, match="per='pair': expected 'constraint' or 'multiplier'"):
            call(LINE, known, 2, per="pair")
