"""`cluster_edges` and `CorrelationClustering`: tables, constraints, chains, the review, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from clew import Constraints, CorrelationClustering, cluster_edges
from clew.exceptions import ContradictoryConstraintsError, DataError, ParameterError

EDGES = {"id_1": ["a", "b", "c"], "id_2": ["b", "c", "d"], "score": [0.9, 0.6, 0.9]}


def partition(found):
    clusters = {}
    for one, label in zip(found.ids.tolist(), found.labels.tolist(), strict=True):
        clusters.setdefault(label, set()).add(one)
    return {frozenset(cluster) for cluster in clusters.values()}


def test_a_table_in_any_form(tmp_path):
    path = tmp_path / "edges.csv"
    pd.DataFrame(EDGES).to_csv(path, index=False)
    records = [dict(zip(EDGES, row, strict=True)) for row in zip(*EDGES.values(), strict=True)]
    for edges in (EDGES, pd.DataFrame(EDGES), pl.DataFrame(EDGES), path, str(path), records):
        assert partition(cluster_edges(edges)) == {frozenset("ab"), frozenset("cd")}


def test_numbers_stay_numbers_and_ids_in_no_edge_stay_alone():
    edges = {"id_1": np.array([7, 9]), "id_2": np.array([9, 4]), "probability": [0.99, 0.01]}
    assert cluster_edges(edges).ids.tolist() == [7, 9, 4]
    found = cluster_edges(edges, ids=[1, 4, 7, 9])
    assert partition(found) == {frozenset([1]), frozenset([4]), frozenset([7, 9])}


def test_splinks_predictions_as_they_are():
    predictions = pd.DataFrame(
        {
            "match_weight": [6.6, 6.6, -6.6],
            "match_probability": [0.99, 0.99, 0.01],
            "source_dataset_l": ["left", "left", "left"],
            "unique_id_l": [1, 2, 1],
            "source_dataset_r": ["right", "right", "right"],
            "unique_id_r": [1, 1, 2],
        }
    )
    found = cluster_edges(predictions)
    assert found.ids.tolist() == ["left-__-1", "right-__-1", "left-__-2", "right-__-2"]
    assert frozenset(["left-__-1", "right-__-1", "left-__-2"]) in partition(found)
    apart = cluster_edges(predictions, one_per_source=True)
    assert {len(cluster) for cluster in partition(apart)} == {1, 2}
    assert apart.objective > found.objective
    known = cluster_edges(predictions, constraints={"cannot_link": [("left-__-1", "right-__-1")]}, one_per_source=True)
    assert frozenset(["left-__-2", "right-__-1"]) in partition(known)


def test_ids_that_are_unique_over_the_sources_stay_short():
    edges = {
        "id_1": ["a", "b"],
        "id_2": ["c", "c"],
        "score": [0.9, 0.8],
        "source_1": ["x", "x"],
        "source_2": ["y", "y"],
    }
    found = cluster_edges(edges, one_per_source=True)
    assert partition(found) == {frozenset("ac"), frozenset("b")}
    with pytest.raises(DataError, match="two sources"):
        cluster_edges(
            edges | {"source_1": ["x", "y"], "id_1": ["a", "a"], "id_2": ["c", "d"]},
            ids=["a", "c", "d"],
            one_per_source=True,
        )


def test_weights_are_taken_by_their_name():
    edges = {"id_1": [0, 1, 0], "id_2": [1, 2, 2], "weight": [3.0, 2.0, -4.0]}
    assert partition(cluster_edges(edges)) == {frozenset([0, 1]), frozenset([2])}
    assert partition(cluster_edges(edges, threshold=-5.0)) == {frozenset([0, 1, 2])}


def test_a_pair_that_is_scored_twice_counts_once():
    twice = {key: value * 2 for key, value in EDGES.items()}
    turned = twice | {"id_1": EDGES["id_1"] + EDGES["id_2"], "id_2": EDGES["id_2"] + EDGES["id_1"]}
    for edges in (twice, turned):
        found = cluster_edges(edges)
        assert found.objective == pytest.approx(cluster_edges(EDGES).objective)
        assert partition(found) == partition(cluster_edges(EDGES))


def test_a_chain_of_weak_edges_makes_no_giant_cluster():
    """Fifty entities of four records with sure pairs; one weak pair links each entity to the next."""
    first, second, score = [], [], []
    for entity in range(50):
        rows = range(4 * entity, 4 * entity + 4)
        pairs = [(i, j, 0.95) for i in rows for j in rows if i < j] + [(rows[3], rows[3] + 1, 0.6)]
        for i, j, p in pairs[: 7 if entity < 49 else 6]:
            first.append(i), second.append(j), score.append(p)
    graph = sparse.coo_array((score, (first, second)), shape=(200, 200))
    assert connected_components(graph, directed=False)[0] == 1
    found = cluster_edges({"id_1": first, "id_2": second, "score": score})
    assert found.n_clusters == 50
    assert (np.bincount(found.labels) == 4).all()
    assert found.objective == pytest.approx(49 * np.log(0.6 / 0.4))
    chain = {"id_1": np.arange(99), "id_2": np.arange(1, 100), "score": np.full(99, 0.55)}
    assert np.bincount(cluster_edges(chain).labels).max() == 2
    assert cluster_edges(chain, missing=0.5).n_clusters == 1


def test_knowledge_always_holds(seed):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 60, size=(400, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    hidden, source = rng.integers(20, size=60), rng.integers(4, size=60)
    group = source.copy()
    repeated = np.ones(60, dtype=bool)
    repeated[np.unique(hidden * 4 + source, return_index=True)[1]] = False
    group[repeated] = -1
    known = Constraints.sample(hidden, 40, random_state=0) | Constraints(cannot_groups=group)
    edges = {"id_1": pairs[:, 0], "id_2": pairs[:, 1], "score": rng.random(len(pairs))}
    found = cluster_edges(edges, ids=np.arange(60), constraints=known)
    must, cannot = known.violations(found.labels)
    assert len(must) == len(cannot) == 0
    for one in range(4):
        labels = found.labels[group == one]
        assert len(np.unique(labels)) == len(labels)


def test_classes_keep_their_numbers():
    labels = cluster_edges(EDGES, ids=list("abcd"), constraints={"labels": [7, -1, 3, -1]}).labels
    assert labels.tolist() == [7, 7, 3, 3]


def test_the_review_asks_about_the_bridge_first():
    """Two entities of four records, joined by four pairs of 0.9, and a sure pair elsewhere."""
    pairs = [(i, j, 0.99) for block in (range(4), range(4, 8)) for i in block for j in block if i < j]
    pairs += [(3, 4, 0.9), (2, 4, 0.9), (3, 5, 0.9), (2, 5, 0.9), (8, 9, 0.999)]
    first, second, score = zip(*pairs, strict=True)
    found = cluster_edges({"id_1": first, "id_2": second, "score": score})
    top = found.review(3)
    assert {(row["id_1"], row["id_2"]) for row in top} <= {(2, 4), (3, 4), (2, 5), (3, 5)}
    assert top[0]["rows"] == 4
    assert [row["worth"] for row in top] == sorted((row["worth"] for row in top), reverse=True)
    (sure,) = (row for row in found.review(100) if row["id_1"] == 8)
    assert (sure["rows"], sure["together"]) == (1, True)
    assert sure["margin"] == pytest.approx(np.log(999))


def test_the_margin_is_what_the_opposite_answer_costs(seed):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(7, 1)
    edges = {"id_1": first, "id_2": second, "score": rng.uniform(0.05, 0.95, len(first))}
    found = cluster_edges(edges)
    for row in found.review(5):
        kind = "cannot_link" if row["together"] else "must_link"
        forced = cluster_edges(edges, constraints={kind: [(row["id_1"], row["id_2"])]})
        # Other clusters stay in the review, so that its margin is no smaller.
        assert row["margin"] >= forced.objective - found.objective - 1e-9
        assert row["rows"] >= 1


def test_decided_pairs_are_not_reviewed():
    found = cluster_edges(EDGES, constraints={"must_link": [("a", "b")], "cannot_link": [("c", "d")]})
    assert [(row["id_1"], row["id_2"]) for row in found.review()] == [("b", "c")]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"score": [0.9, 1.2, 0.9]}, {}, "row 1: score is 1.2, expected a probability from 0 to 1"),
        ({"score": [0.9, float("nan"), 0.9]}, {}, "row 1: score is nan, expected a probability"),
        ({"score": ["high", "low", "low"]}, {}, "'score' of the data holds 'high': expected numbers"),
        ({"id_2": ["b", "b", "d"]}, {}, "row 1 pairs 'b' with itself"),
        ({"id_1": ["a", "", "c"]}, {}, "row 1: id_1 is empty"),
        ({}, {"ids": ["a", "b", "c"]}, "row 2: id_2 is 'd', which is not among the 3 ids"),
        ({}, {"ids": ["a", "b", "c", "d", "a"]}, "ids contains an id twice"),
        ({}, {"one_per_source": True}, "no source columns"),
        ({}, {"score": "points"}, 'no column "points"'),
        ({}, {"threshold": 1.5}, "threshold=1.5: expected between 0 and 1"),
        ({}, {"n_init": "often"}, "n_init='often' in CorrelationClustering: expected 'auto' or an integer >= 1"),
        ({}, {"missing": 0.7}, "missing=0.7 is above threshold=0.5"),
        ({}, {"constraints": {"must_link": [("a", "x")]}}, "'x', which is not among the 4 row ids"),
    ],
)
def test_bad_input_is_named(change, options, message):
    with pytest.raises((DataError, ParameterError, ValueError), match=message):
        cluster_edges(EDGES | change, **options)


def test_missing_columns_are_named():
    with pytest.raises(DataError, match=r"no column of scores: .* it has id_1, id_2, points"):
        cluster_edges({"id_1": ["a"], "id_2": ["b"], "points": [1.0]})
    with pytest.raises(DataError, match=r"no id columns: .* it has left, score"):
        cluster_edges({"left": ["a"], "score": [1.0]})


def test_contradictions_name_the_ids():
    with pytest.raises(ContradictoryConstraintsError, match="a-b-c"):
        cluster_edges(EDGES, constraints={"must_link": [("a", "b"), ("b", "c")], "cannot_link": [("a", "c")]})


def test_a_graph_without_edges_leaves_every_row_alone():
    model = CorrelationClustering().fit(sparse.csr_array((5, 5)))
    assert model.labels_.tolist() == [0, 1, 2, 3, 4]
    assert model.objective_ == model.lower_bound_ == 0


def test_matrices_that_are_none_are_refused():
    with pytest.raises(DataError, match="contains NaN at row 0, column 1"):
        CorrelationClustering().fit([[0, np.nan], [np.nan, 0]])
    with pytest.raises(
        ParameterError, match=r"missing_weight=1 in CorrelationClustering: expected a finite number <= 0"
    ):
        CorrelationClustering(1).fit(np.zeros((2, 2)))


def test_explicit_pairs_at_the_threshold_are_not_missing():
    edges = {"id_1": [0, 1, 0], "id_2": [1, 2, 2], "score": [0.9, 0.7, 0.5]}
    assert cluster_edges(edges, missing=0.2).n_clusters == 1
    assert cluster_edges({key: value[:2] for key, value in edges.items()}, missing=0.2).n_clusters == 2
