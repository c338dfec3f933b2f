"""Merge, split, move and never join: their constraints, their precedence, and later fits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris

from clew import Session
from clew.active import DIFFERENT, SAME
from clew.evaluation import adjusted_rand_score
from clew.exceptions import ParameterError
from clew.session._corrections import ClusterLink, Correction, in_force
from tests.session.helpers import blobs, partition, reopened, told

HERE = np.arange(20)


def pairs_of(corrections):
    return [(pair.key, answer) for one in in_force(corrections) for pair, answer in one.pairs(HERE)]


def merge(*rows):
    return Correction(0, "merge", [list(rows)], about=[list(rows)])


def split(one, two):
    return Correction(0, "split", [one], apart=[(one, two)], about=[one, two])


def move(row, to, out_of):
    return Correction(
        0, "move", links=[ClusterLink([row], to, SAME), ClusterLink([row], out_of, DIFFERENT)], about=[[row]]
    )


def never(one, two):
    return Correction(0, "never", links=[ClusterLink([one], [two], DIFFERENT)], about=[[one], [two]])


def test_a_move_takes_the_row_out_of_what_was_merged_before():
    found = pairs_of([merge(1, 2, 3), move(2, [8, 9], [1, 3])])
    assert found == [((1, 3), SAME), ((2, 8), SAME), ((1, 2), DIFFERENT)]


def test_when_the_hub_is_moved_the_others_stay_together():
    found = pairs_of([merge(1, 2, 3, 4), move(1, [9], [2])])
    assert found[:2] == [((2, 3), SAME), ((2, 4), SAME)]


def test_a_stand_in_takes_over_when_a_row_is_moved_away():
    apart = Correction(0, "never", [], [ClusterLink([1, 2], [8, 9], DIFFERENT)])
    assert pairs_of([apart, move(1, [8], [2])])[0] == ((2, 8), DIFFERENT)


def test_a_later_merge_ends_an_earlier_split_and_the_other_way_round():
    assert pairs_of([split([1, 2], [3, 4]), merge(3, 4, 1, 2)]) == [
        ((1, 2), SAME), ((3, 4), SAME), ((1, 3), SAME), ((2, 3), SAME)
    ]  # fmt: skip
    assert pairs_of([merge(1, 2, 3, 4), split([1, 2], [3, 4])]) == [
        ((3, 4), SAME), ((1, 2), SAME), ((1, 3), DIFFERENT), ((1, 4), DIFFERENT)
    ]  # fmt: skip


def test_a_split_says_that_its_rows_are_together_and_apart_from_each_of_the_others():
    assert pairs_of([split([1, 2], [3, 4, 5])]) == [
        ((1, 2), SAME), ((1, 3), DIFFERENT), ((1, 4), DIFFERENT), ((1, 5), DIFFERENT)
    ]  # fmt: skip


def test_rows_of_a_split_that_are_parted_are_all_apart_from_the_others():
    later = [((2, 3), SAME), ((1, 4), DIFFERENT), ((2, 4), DIFFERENT)]
    assert pairs_of([split([1, 2, 3], [4]), split([1], [2, 3])]) == [*later, ((1, 2), DIFFERENT), ((1, 3), DIFFERENT)]
    found = pairs_of([split([1, 2, 3], [4]), never(1, 2)])
    assert set(found) == {((1, 4), DIFFERENT), ((2, 4), DIFFERENT), ((3, 4), DIFFERENT), ((1, 2), DIFFERENT)}


def test_a_merge_with_some_of_the_others_leaves_the_rest_of_a_split():
    assert pairs_of([split([1, 2], [3, 4]), merge(3, 1, 2)]) == [
        ((1, 2), SAME), ((1, 4), DIFFERENT), ((1, 3), SAME), ((2, 3), SAME)
    ]  # fmt: skip


def test_a_split_in_the_log_of_an_earlier_version_says_nothing_about_the_others():
    old = {
        "kind": "split", "stars": [[1, 2], [3, 4]], "links": [[[1, 2], [3, 4], "different"]], "about": [[1, 2], [3, 4]],
        "changes": [[[1, 2], 0, 1]], "more_clusters": 1, "conflict": False,
    }  # fmt: skip
    read = Correction.read(7, old, {str(row): row for row in range(20)}, str)
    assert pairs_of([read]) == [((1, 2), SAME), ((1, 3), DIFFERENT), ((1, 4), DIFFERENT)]


def test_two_rows_that_never_go_together_leave_what_joined_them():
    assert pairs_of([merge(1, 2, 3, 4), never(2, 3)]) == [((1, 4), SAME), ((2, 3), DIFFERENT)]
    assert pairs_of([merge(1, 2), merge(2, 3), never(1, 3)]) == [((1, 3), DIFFERENT)]


@st.composite
def corrections(draw):
    rows = draw(st.permutations(range(8)))
    kind = draw(st.sampled_from([merge, split, move, never]))
    if kind is merge:
        return merge(*rows[: draw(st.integers(2, 5))])
    if kind is split:
        return split(rows[:2], rows[2:4])
    return move(rows[0], rows[1:3], rows[3:5]) if kind is move else never(*rows[:2])


@given(st.lists(corrections(), max_size=6))
def test_what_was_said_last_holds_and_what_is_given_is_untouched(made):
    before = [one.payload(range(20)) for one in made]
    found = in_force(made)
    assert [one.payload(range(20)) for one in made] == before
    if made:
        assert found[-1].payload(range(20)) == before[-1]
        assert len(found) == len(made)


# -- in a session ------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(store_url):
    X, y = blobs(n=30)
    with Session.create(store_url, X, n_clusters=3) as session:
        told(session, y, 12)
        session.fit()
        yield session


def test_a_correction_changes_clusters_at_once_and_undo_brings_them_back(session):
    before = session.labels()
    rows = unnamed(session, partition(before)[1])
    made = session.split(1, rows[:4])
    assert made.changed == dict.fromkeys(rows[:4], (1, 3))
    assert made.cluster == 3
    assert session.labels(refit=False) == before | dict.fromkeys(rows[:4], 3)
    assert session.undo().kind == "correction"
    assert session.labels(refit=False) == before
    assert session.labels() == before


def test_preview_tells_the_same_and_writes_nothing(session):
    version, before = session.version, session.labels()
    row = unnamed(session, partition(before)[0])[0]
    preview = session.preview("move", row, 2)
    assert session.version == version
    assert preview.changed == {row: (0, 2)}
    assert preview.id is None
    others = session.preview("never", clusters=[0, 1])
    assert (others.changed, others.conflict) == ({}, None)


def test_a_correction_against_an_answer_is_a_conflict_with_its_chain(session):
    before = session.labels()
    answer = next(one for one in session.answers() if one.answer == "different")
    made = session.merge(before[answer.left], before[answer.right])
    assert made.changed == {}
    assert session.labels(refit=False) == before
    assert made.conflict.kind == "correction"
    assert answer.id in made.conflict.answers or made.conflict.answers
    assert f"answer {made.conflict.answers[0]} by me" in made.conflict.message
    assert [one.id for one in session.conflicts()] == [made.id]
    assert session.resolve(made.conflict, "unsure") == []
    assert session.labels() == before


def test_an_answer_may_give_way_so_that_a_correction_holds(session):
    before = session.labels()
    answer = next(one for one in session.answers() if one.answer == "different")
    one, two = before[answer.left], before[answer.right]
    made = session.merge(one, two)
    for _ in range(10):
        if not session.conflicts():
            break
        session.resolve(session.conflicts()[0], "soft")
    assert session.conflicts() == []
    labels = session.labels()
    joined = partition(before)[one] | partition(before)[two]
    assert len({labels[row] for row in joined}) == 1
    assert made.id in {event.seq for event in session.history()}


def test_an_answer_against_a_correction_is_a_conflict(session):
    labels = session.labels()
    free = unnamed(session, partition(labels)[0])
    session.never(rows=free[:2])
    session.import_answers([(free[0], free[1], "same")], annotator="bob")
    (conflict,) = session.conflicts()
    assert conflict.kind == "answer"
    assert "never, correction" in conflict.message
    assert set(conflict.chain) == set(free[:2])
    session.resolve(conflict, "change", answer="different")
    assert session.conflicts() == []


def test_answers_about_rows_that_a_split_left_behind_are_taken(session):
    cluster = partition(session.labels())[0]
    free = unnamed(session, cluster)
    made = session.split(0, free[:2])
    implied = session.progress().implied
    session.import_answers([(free[2], free[3], "different")], annotator="bob")
    assert session.conflicts() == []
    labels = session.labels()
    assert labels[free[2]] != labels[free[3]]
    assert {labels[row] for row in free[:2]}.isdisjoint(labels[row] for row in cluster - set(free[:2]))
    assert implied < len(cluster) ** 2
    session.import_answers([(free[1], free[2], "same")], annotator="bob")
    (conflict,) = session.conflicts()
    assert conflict.corrections == (made.id,)
    assert f"split, correction {made.id} by me" in conflict.message


def test_two_rows_of_one_cluster_that_never_go_together_part_at_once(session):
    before = session.labels()
    one, two = unnamed(session, partition(before)[0])[:2]
    preview = session.preview("never", rows=[one, two])
    assert len(preview.changed) == 1 and set(preview.changed) < {one, two}
    made = session.never(rows=[one, two])
    assert made.changed == preview.changed
    after = before | {row: cluster for row, (_, cluster) in made.changed.items()}
    assert session.labels(refit=False) == session.fit() == after


def test_a_row_takes_along_what_is_known_to_be_the_same(session):
    before = session.labels()
    one, two = [row for row in unnamed(session, partition(before)[0]) if row not in session.members(0)[:3]][:2]
    session.import_answers([(one, two, "same")])
    made = session.move(one, 1)
    assert made.changed == {one: (0, 1), two: (0, 1)}
    assert session.fit() == before | {one: 1, two: 1}


def test_a_waiting_correction_is_not_freed_by_another_one(session):
    before = session.labels()
    free = unnamed(session, partition(before)[0])
    session.import_answers([(free[0], free[1], "same")])
    session.fit()
    assert session.split(0, [free[0]]).conflict is not None
    made = session.move(free[1], 1)
    after = session.labels(refit=False)
    assert after == before | dict.fromkeys(made.changed, 1)
    assert session.fit() == after


def test_a_conflict_is_resolved_by_taking_the_correction_back(session):
    before = session.labels()
    free = unnamed(session, partition(before)[0])
    made = session.split(0, free[:2])
    session.import_answers([(free[0], free[2], "same")], annotator="bob")
    (conflict,) = session.conflicts()
    assert (conflict.kind, conflict.corrections) == ("answer", (made.id,))
    with pytest.raises(ParameterError, match=f"Correction 99 is not part of conflict {conflict.id}. Its corrections: "):
        session.resolve(conflict, "withdraw", correction=99)
    assert session.resolve(conflict, "withdraw", annotator="bob") == []
    assert session.labels(refit=False) == before
    assert session.undo("bob").kind == "resolve"
    assert session.labels(refit=False) == before | dict.fromkeys(free[:2], made.cluster)
    assert [one.id for one in session.conflicts()] == [conflict.id]


def test_a_conflict_of_answers_alone_has_no_correction_to_take_back(session):
    free = unnamed(session, partition(session.labels())[0])
    session.import_answers([(free[0], free[1], "same")], annotator="ann")
    session.import_answers([(free[0], free[1], "different")], annotator="bob")
    with pytest.raises(ParameterError, match="Its corrections: none"):
        session.resolve(session.conflicts()[0], "withdraw")


def test_nonsense_is_refused_with_the_remedy(session):
    version = session.version
    for call, words in [
        (lambda: session.merge(0, 0), "Cluster 0 cannot be merged with itself"),
        (lambda: session.merge(0, 77), "There is no cluster 77. There are 0, 1, 2."),
        (lambda: session.split(0, []), "at least one of its"),
        (lambda: session.split(0, sorted(partition(session.labels())[0])), "but not all"),
        (lambda: session.split(0, "ab"), "expected a list of ids"),
        (lambda: session.move(99, 0), "There is no row 99"),
        (lambda: session.move(min(partition(session.labels())[1]), 1), "in cluster 1 already"),
        (lambda: session.never(clusters=[0, 1], rows=[0, 1]), "give two clusters"),
        (lambda: session.never(clusters=[0]), "give two clusters"),
        (lambda: session.never(rows=[3, 3]), "Name two rows"),
        (lambda: session.preview("paint", 1), "kind='paint'"),
        (lambda: session.merge("a", 0), "'a' is not a cluster id"),
    ]:
        with pytest.raises(ParameterError, match=words):
            call()
    assert session.version == version


def unnamed(session, rows):
    """Rows that no answer is about."""
    named = {row for one in session.answers() for row in (one.left, one.right)}
    return [row for row in sorted(rows) if row not in named]


def by_four_corrections(session):
    """A merge, a split, a move and a never-join that contradict no answer; what must hold from now on."""
    clusters = partition(session.labels())
    a, b, c, d, e, *rest = sorted(clusters, key=lambda one: -len(clusters[one]))
    free = unnamed(session, clusters[a])
    part = free[: len(free) // 2]
    made = [session.split(a, part)]
    together = [part, sorted(clusters[a] - set(part))]
    apart = [(part[0], together[1][0])]

    free = unnamed(session, clusters[b])
    if session.preview("merge", b, c).conflict is None:
        made.append(session.merge(b, c))
        together.append(sorted(clusters[b] | clusters[c]))
    else:  # answers keep all clusters apart: merge two parts that were split before
        piece = session.split(b, free[: len(free) // 2])
        made += [piece, session.merge(b, piece.cluster)]
        together.append(sorted(clusters[b]))

    row = unnamed(session, clusters[d])[0]
    made.append(session.move(row, e))
    links = session.history()[-1].payload["links"]
    together.append([row, links[0][1][0]])
    apart.append((row, links[1][1][0]))

    made.append(session.never(clusters=[d, e]))
    ((left, right, _),) = session.history()[-1].payload["links"]
    apart.append((left[0], right[0]))
    assert [one.conflict for one in made] == [None] * len(made)
    return together, apart, {one: clusters[one] for one in rest}


def check(labels, together, apart, untouched):
    for rows in together:
        assert len({labels[row] for row in rows}) == 1
    for one, two in apart:
        assert labels[one] != labels[two]
    for cluster, rows in untouched.items():
        found = [labels[row] for row in rows]
        # k-means may move rows at the border; the cluster is the one with that id.
        assert max(set(found), key=found.count) == cluster


@pytest.mark.parametrize("n_clusters", [2, 3, 6])
def test_a_split_moves_its_rows_and_no_fit_moves_more(store_url, n_clusters):
    X, y = blobs(n=60, k=4, gap=4.0)
    with Session.create(store_url, X, n_clusters=n_clusters) as session:
        told(session, y, 8)
        before = session.labels()
        largest = max(partition(before).values(), key=len)
        made = session.split(before[min(largest)], unnamed(session, largest)[:2])
        assert session.fit() == before | dict.fromkeys(made.changed, made.cluster)
        assert session.fit() == session.labels()


def test_answers_after_a_correction_are_worth_as_much_as_before(store_url):
    X, y = load_iris(return_X_y=True)
    with Session.create(store_url, X, n_clusters=3) as session:
        before = session.labels()
        session.never(clusters=sorted(set(before.values()))[:2])
        told(session, y, 40)
        after = session.labels()
    scores = [adjusted_rand_score(y, [labels[row] for row in range(150)]) for labels in (before, after)]
    assert scores[0] < 0.8 and scores[1] > 0.95


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n_answers", [0, 80])
@pytest.mark.parametrize("n_clusters", [10, None])
def test_four_corrections_survive_new_rows_restarts_and_fits_on_digits(store_url, n_clusters, n_answers):
    X, y = load_digits(return_X_y=True)
    session = Session.create(store_url, X[:400], n_clusters=n_clusters)
    told(session, y, n_answers if n_clusters else 80)  # without a number of clusters, answers must find them
    claims = by_four_corrections(session)
    check(session.labels(), *claims)
    session.add_rows(X[400:440])
    check(session.labels(refit=False), *claims)
    check(session.labels(), *claims)
    session = reopened(session, store_url)
    check(session.labels(refit=False), *claims)
    check(session.fit(), *claims)
    assert len(session.labels()) == 440
    session.close()


def test_four_corrections_survive_new_rows_on_iris(store_url, seed):
    X, _ = load_iris(return_X_y=True)
    X = X[np.random.default_rng(seed).permutation(150)]
    session = Session.create(store_url, X[:135], n_clusters=7)
    claims = by_four_corrections(session)
    session.add_rows(X[135:])
    check(session.fit(), *claims)
    session = reopened(session, store_url)
    check(session.fit(), *claims)
    session.close()
