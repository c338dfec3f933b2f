"""Laws of constraints, on small random sets of every kind of knowledge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

from clew import Constraints
from clew.evaluation import same_partition
from clew.exceptions import ContradictoryConstraintsError
from tests.reference import constraints as reference

# Not a formula to a spreadsheet, no spaces at the ends, and not a number in two spellings: other ids are other tests.
identifiers = st.text("aé漢,;\"' \n\t_", min_size=1, max_size=4).map(lambda text: f"x{text}x")


def lists_of(elements, n):
    return st.lists(elements, min_size=n, max_size=n)


@st.composite
def soft_groups_of(draw, n):
    strengths = draw(lists_of(lists_of(st.sampled_from([0.0, 0.1, 0.25, 0.5]), 2), n))
    strengths[-1][-1] = 0.5  # the last group is in use, so that its number is in a file
    return np.array(strengths)


@st.composite
def knowledge(draw, n, *, everything=False):
    """Arguments of `Constraints` about n rows; with `everything`, the kinds that say nothing about pairs too."""
    row = st.integers(0, n - 1)
    pairs = st.lists(st.tuples(row, row).filter(lambda pair: pair[0] != pair[1]), max_size=5)
    sure = st.sampled_from([0.1, 0.3, 0.7, 1.0])
    groups = lists_of(st.integers(-1, 3), n)
    columns = groups | st.tuples(groups, groups).map(np.transpose)
    must_link, cannot_link = draw(pairs), draw(pairs)
    arguments = {
        "must_link": must_link,
        "cannot_link": cannot_link,
        "must_link_confidence": draw(st.none() | lists_of(sure, len(must_link))),
        "cannot_link_confidence": draw(st.none() | lists_of(sure, len(cannot_link))),
        "labels": draw(st.none() | groups),
        "must_groups": draw(st.none() | columns),
        "cannot_groups": draw(st.none() | columns),
        "n_samples": n,
    }
    if everything:
        triplets = st.lists(st.permutations(range(n)).map(lambda rows: rows[:3]), max_size=3)
        arguments["soft_groups"] = draw(st.none() | soft_groups_of(n))
        arguments["triplets"] = draw(triplets)
        arguments["ids"] = draw(st.none() | st.lists(identifiers, min_size=n, max_size=n, unique=True))
    return arguments


constraint_sets = st.integers(2, 6).flatmap(knowledge).map(lambda arguments: Constraints(**arguments))


def some_of(pairs):
    return st.lists(st.sampled_from(sorted(pairs)), max_size=3) if pairs else st.just([])


@given(constraint_sets)
def test_closure_entails_what_chains_of_pairs_do(constraints):
    closed = constraints.closure()
    together, apart = reference.entailed(constraints)
    rows = range(constraints.n_rows)
    assert {(i, j) for i in rows for j in rows if closed.component_of[i] == closed.component_of[j]} == together
    assert closed.contradictory == bool(together & apart)
    separated = {
        (i, j) for i in rows for j in rows
        if closed.component_of[j] in closed.graph.neighbours(closed.component_of[i])
    }  # fmt: skip
    assert separated == apart - together


@given(constraint_sets, st.data())
def test_pair_order_and_direction_do_not_matter(constraints, data):
    shuffled = [pair[::-1] for pair in data.draw(st.permutations(constraints.must_link.tolist()))]
    other = constraints._replace(must_link=shuffled, must_link_confidence=None)
    assert other.closure().component_of.tolist() == constraints.closure().component_of.tolist()
    assert other.closure().contradictory == constraints.closure().contradictory


@given(constraint_sets, st.data())
def test_repeated_and_entailed_pairs_change_nothing(constraints, data):
    together, apart = reference.entailed(constraints)
    more_must = data.draw(some_of({(i, j) for i, j in together if i != j}))
    more_cannot = data.draw(some_of(apart - together))
    longer = constraints | Constraints(more_must, more_cannot)
    assert reference.entailed(longer) == (together, apart)
    assert longer.closure().component_of.tolist() == constraints.closure().component_of.tolist()
    for component in range(constraints.closure().n_components):
        assert np.array_equal(
            longer.closure().graph.neighbours(component), constraints.closure().graph.neighbours(component)
        )


@given(constraint_sets)
def test_conflicts_are_there_exactly_when_contradictory(constraints):
    stated = {frozenset(pair) for pair, _ in reference.stated_must_link(constraints)}
    separated = {frozenset(pair) for pair, _ in reference.stated_cannot_link(constraints)}
    conflicts = constraints.conflicts()
    assert bool(conflicts) == constraints.closure().contradictory
    for conflict in conflicts:
        assert frozenset(conflict.rows) in separated
        assert (conflict.chain[0], conflict.chain[-1]) == conflict.rows
        assert all(frozenset(link) in stated for link in zip(conflict.chain, conflict.chain[1:], strict=False))
    assert constraints.conflicts(limit=1) == conflicts[:1]


@given(constraint_sets, st.integers(1, 4))
def test_check_is_right(constraints, n_clusters):
    found = constraints.check(n_clusters)
    if found:
        assert reference.is_satisfied(found.labels, constraints)
        assert found.labels.min() >= 0
        assert found.labels.max() < n_clusters
        return
    assert found.status == "infeasible"
    assert found.contradictory == constraints.closure().contradictory
    # The proof stands alone: its rows, with all that was entailed among them, are infeasible too.
    assert found.contradictory or not constraints[found.rows].check(n_clusters)


@given(constraint_sets, st.data())
def test_violations_are_empty_exactly_for_labellings_that_satisfy_everything(constraints, data):
    labels = data.draw(lists_of(st.integers(0, 2), constraints.n_rows))
    must, cannot = constraints.violations(labels)
    assert (len(must) + len(cannot) == 0) == reference.is_satisfied(labels, constraints)
    assert all(labels[i] != labels[j] for i, j in must.tolist())
    assert all(labels[i] == labels[j] for i, j in cannot.tolist())
    stated_must = {frozenset(pair) for pair, _ in reference.stated_must_link(constraints)}
    stated_cannot = {frozenset(pair) for pair, _ in reference.stated_cannot_link(constraints)}
    assert {frozenset(pair) for pair in must.tolist()} <= stated_must
    assert {frozenset(pair) for pair in cannot.tolist()} <= stated_cannot


@given(constraint_sets, st.data())
def test_restriction_keeps_what_is_entailed(constraints, data):
    rows = data.draw(st.lists(st.integers(0, len(constraints) - 1), min_size=1, max_size=8))
    assert reference.is_kept(constraints, rows, constraints[rows])


@given(constraint_sets, st.data())
def test_restriction_in_two_steps_is_restriction_in_one(constraints, data):
    assume(not constraints.closure().contradictory)
    constraints = constraints.at_least(1.0)
    first = data.draw(st.lists(st.integers(0, len(constraints) - 1), min_size=1, max_size=6))
    second = data.draw(st.lists(st.integers(0, len(first) - 1), min_size=1, max_size=6))
    assert reference.entailed(constraints[first][second]) == reference.entailed(constraints[np.array(first)[second]])


@given(constraint_sets)
def test_restriction_to_all_rows_changes_nothing(constraints):
    assert constraints[:] == constraints


@given(constraint_sets, st.data())
def test_a_permutation_of_rows_permutes_the_components(constraints, data):
    order = np.array(data.draw(st.permutations(range(len(constraints)))))
    permuted = constraints[order]
    assert same_partition(permuted.closure().component_of, constraints.closure().component_of[order])
    for n_clusters in (1, 2, 3):
        assert permuted.check(n_clusters).status == constraints.check(n_clusters).status


@given(st.data())
def test_union_entails_what_both_state_together(data):
    n = data.draw(st.integers(2, 6))
    first, second = (Constraints(**data.draw(knowledge(n))) for _ in range(2))
    if first.labels is not None and second.labels is not None:
        clash = (first.labels >= 0) & (second.labels >= 0) & (first.labels != second.labels)
        if clash.any():
            with pytest.raises(ContradictoryConstraintsError, match=f"^Row {clash.argmax()} has class "):
                first | second
            return
        # Numbers of classes mean the same in both, so rows of one class are joined across the two.
        labels = np.maximum(first.labels, second.labels)
        first, second = first._replace(labels=labels), second._replace(labels=labels)
    both = first | second
    for stated in (reference.stated_must_link, reference.stated_cannot_link):
        assert set(stated(both)) == {*stated(first), *stated(second)}


@given(st.data())
def test_union_is_commutative_associative_and_idempotent_in_what_it_entails(data):
    n = data.draw(st.integers(2, 4))
    a, b, c = (Constraints(**{**data.draw(knowledge(n)), "labels": None}) for _ in range(3))
    assert reference.together(a | b) == reference.together(b | a)
    assert reference.apart(a | b) == reference.apart(b | a)
    assert (a | b) | c == a | (b | c)
    assert reference.apart(a | a) == reference.apart(a)
    assert a | Constraints(n_samples=n) == a
    assert Constraints() | a == a


@given(constraint_sets, st.sampled_from([0.1, 0.3, 0.5, 1.0]))
def test_at_least_leaves_out_exactly_the_less_sure_pairs(constraints, confidence):
    surer = constraints.at_least(confidence)
    for stated in (reference.stated_must_link, reference.stated_cannot_link):
        assert list(stated(surer)) == [(pair, sure) for pair, sure in stated(constraints) if sure >= confidence]


def useful(arguments):
    """Without columns that hold nothing: a file states what is known, and an empty column states nothing."""
    kept = dict(arguments)
    for name in ("labels", "must_groups", "cannot_groups"):
        groups = None if kept[name] is None else np.array(kept[name])
        if groups is not None and (groups.max(axis=0) < 0).any():
            kept[name] = None
    return kept


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_files_give_back_what_was_written(tmp_path_factory, ending):
    folder = tmp_path_factory.mktemp("files")
    seen = []

    @given(st.integers(3, 6).flatmap(lambda n: knowledge(n, everything=True)))
    def gives_back(arguments):
        constraints = Constraints(**useful(arguments))
        path = folder / f"known.{ending}"
        constraints.to_file(path)
        again = Constraints.from_file(path, ids=constraints.ids, n_samples=len(constraints))
        assert again == constraints
        seen.append(len(constraints.triplets) > 0 and constraints.ids is not None)

    gives_back()
    assert any(seen)


@given(constraint_sets)
def test_equality_tells_every_difference(constraints):
    assert constraints == constraints._replace()
    assert constraints != constraints._replace(n_samples=None, ids=np.arange(len(constraints)))
    assert constraints != constraints | Constraints([(0, 1)])
    assert constraints != constraints._replace(soft_groups=sparse.csr_array((len(constraints), 1)))


@given(st.integers(1, 6).flatmap(lambda n: lists_of(st.integers(-1, 2), n)), st.data())
def test_sampled_answers_are_right_without_noise_and_wrong_with_certain_noise(labels, data):
    known = [row for row, label in enumerate(labels) if label != -1]
    n_pairs = len(known) * (len(known) - 1) // 2
    n = data.draw(st.integers(0, n_pairs))
    noise = data.draw(st.sampled_from([0.0, 1.0]))
    sampled = Constraints.sample(labels, n, noise=noise, random_state=data.draw(st.integers(0, 9)))
    assert sampled.n_samples == len(labels)
    pairs = [*sampled.must_link.tolist(), *sampled.cannot_link.tolist()]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == n
    assert all(labels[row] != -1 for pair in pairs for row in pair)
    assert all((labels[i] == labels[j]) == (noise == 0) for i, j in sampled.must_link.tolist())
    assert all((labels[i] != labels[j]) == (noise == 0) for i, j in sampled.cannot_link.tolist())
