"""Asking, answering, changing one's mind, several people, data that changes, files in and out."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

from clew import Constraints, Session
from clew._registry import by_method_name
from clew.active import MinMax
from clew.evaluation import adjusted_rand_score, same_partition
from clew.exceptions import ClewError, ConstraintError, FileError, ParameterError
from clew.session import default_strategy, strategies
from tests.session.helpers import blobs, everything, partition, reopened, told

X, Y = blobs(n=24)


@pytest.fixture
def session(store_url):
    with Session.create(store_url, X, n_clusters=3, lease_seconds=100) as session:
        yield session


def answer_to(question):
    return "same" if Y[question.left] == Y[question.right] else "different"


# -- asking and answering ----------------------------------------------------------------------------------------------


def test_all_questions_lead_to_the_groups_and_none_is_asked_twice(session):
    asked = told(session, Y, 500)
    assert session.ask() is None
    pairs = [frozenset((one.left, one.right)) for one in asked]
    assert len(set(pairs)) == len(pairs)
    found = partition(session.labels())
    assert sorted(map(sorted, found.values())) == [np.flatnonzero(group == Y).tolist() for group in range(3)]
    progress = session.progress()
    assert (progress.answered, progress.can_stop, progress.groups) == (len(asked), True, 3)
    assert progress.reason.startswith("Nothing is left to ask")


def test_the_same_answer_again_is_the_same_and_another_one_is_refused(session):
    question = session.ask("ann")
    first = session.tell(question, "same", seconds=2.5, comment="sure", flag=True)
    assert session.tell(question.id, "ML") == first
    with pytest.raises(ParameterError, match=r"answered 'same' by ann\. To change that, revise answer 2\."):
        session.tell(question, "different")
    (record,) = session.answers()
    assert (record.annotator, record.seconds, record.comment, record.flag) == ("ann", 2.5, "sure", True)
    assert session.version == 2


def test_bad_answers_change_nothing(session):
    question = session.ask()
    before = everything(session)
    for call, words in [
        (lambda: session.tell(question, "perhaps"), "Cannot read the answer 'perhaps'"),
        (lambda: session.tell(99, "same"), "There is no question 99"),
        (lambda: session.tell("x", "same"), "There is no question 'x'"),
        (lambda: session.tell(question, "same", confidence=0), "confidence=0"),
        (lambda: session.tell(question, "same", seconds=-1), "seconds=-1"),
        (lambda: session.tell(question, "same", annotator=" "), "annotator=' '"),
        (lambda: session.tell(question, "same", comment=3), "comment=3"),
        (lambda: session.ask(n=0), "n=0 in ask"),
        (lambda: session.ask(""), "annotator=''"),
        (lambda: session.revise(1, "same"), "There is no answer 1"),
        (lambda: session.resolve(5, "soft"), "There is no conflict 5"),
        (lambda: session.resolve(5, "burn"), "how='burn'"),
        (lambda: session.set(colour="red"), "expected some of n_clusters"),
        (lambda: session.set(overlap=0), "overlap=0 in Session"),
        (lambda: session.set(method="magic"), 'There is no method "magic"'),
        (lambda: session.set(strategy="magic"), "strategy='magic'"),
        (lambda: session.set(n_clusters=99), "n_clusters=99, but there are 24 rows"),
        (lambda: session.row("nobody"), "There is no row 'nobody'"),
    ]:
        with pytest.raises(ParameterError, match=words):
            call()
    assert everything(session) == before


def test_an_answer_tells_how_many_follow(session):
    for question in told(session, Y, 30):
        assert question.kind == "pair"
    follow = [event.payload["implied"] for event in session.history() if event.kind == "answer"]
    known = session._state.known.driver.view.knowledge
    decided = sum(known.relation(a, b) is not None for a in range(24) for b in range(a))
    assert sum(follow) + len(follow) == decided


def test_undo_goes_back_step_by_step_and_the_question_comes_back(session):
    first, second = session.ask("ann"), session.ask("bob")
    session.tell(first, "different")
    session.tell(second, "same")
    assert session.undo("ann").payload["question"] == first.id
    assert [record.question for record in session.answers()] == [second.id]
    assert first.id in {one.id for one in session.pending()}
    session.tell(first, "same")
    assert [session.undo().payload["question"] for _ in range(2)] == [first.id, second.id]
    assert session.undo() is None
    assert session.answers() == []
    assert [event.kind for event in session.history()][-3:] == ["answer", "undo", "undo"]


def test_undo_takes_back_a_revision_a_name_and_a_whole_import(session):
    question = session.ask()
    answer = session.tell(question, "same").id
    session.revise(answer, "different", annotator="bob")
    assert session.answers()[0].answer == "different"
    assert session.undo().kind == "revise"
    assert session.answers()[0].answer == "same"
    assert session.import_answers([(0, 3, "same"), (0, 1, "no"), (0, 3, "yes")], annotator="cat") == 2
    assert len(session.answers()) == 3
    assert session.undo("cat").kind == "import"
    assert len(session.answers()) == 1
    session.name_cluster(0, "birds")
    assert session.clusters()[0].name == "birds"
    session.undo()
    assert session.clusters()[0].name is None


def test_a_contradiction_is_recorded_set_aside_and_told_with_its_chain(session):
    session.import_answers([(0, 3, "same"), (3, 6, "same")], annotator="ann")
    session.import_answers([(0, 6, "different")], annotator="bob")
    (conflict,) = session.conflicts()
    assert set(conflict.chain) == {0, 3, 6}
    assert conflict.answers == (3, 4, 6)
    assert "3 and 6 are the same (answer 4 by ann" in conflict.message.replace("6 and 3", "3 and 6")
    assert session.constraints.cannot_link.tolist() == []
    items = {item.answer_id: item for item in session.review()}
    assert set(items) >= {3, 4, 6}
    assert all(0 <= item.suspicion <= 1 for item in items.values())
    assert "It contradicts other answers (0-3-6)." in items[6].reasons
    quick = {item.answer_id: item for item in session.review(quick=True)}
    assert "It is part of a contradiction." in quick[6].reasons
    assert session.resolve(conflict, "change", answer_id=4, answer="different") == []
    assert session.constraints.cannot_link.tolist() == [[3, 6], [0, 6]]
    session.undo()
    assert len(session.conflicts()) == 1
    session.resolve(conflict.id, "soft")
    known = session.constraints
    assert known.must_link_confidence.tolist() == [0.5, 0.5]
    assert known.cannot_link_confidence.tolist() == [0.5]


def test_the_cheapest_repair_of_a_contradiction_is_offered_and_applied(session):
    session.import_answers(
        [
            {"id_1": 0, "id_2": 3, "answer": "same", "confidence": 0.9},
            {"id_1": 3, "id_2": 6, "answer": "same", "confidence": 0.4},
        ],
        annotator="ann",
    )
    session.import_answers([(0, 6, "different")], annotator="bob")
    (conflict,) = session.conflicts()
    assert conflict.cheapest == (4,)
    assert session.resolve(conflict, "repair", annotator="cat") == []
    assert [record.answer for record in session.answers()] == ["same", "different", "different"]
    assert session.undo("cat").kind == "resolve"
    assert session.conflicts() == [conflict]


def test_of_equal_repairs_the_unused_answer_gives_way(session):
    session.import_answers([(0, 3, "same"), (3, 6, "same")], annotator="ann")
    session.import_answers([(0, 6, "different")], annotator="bob")
    (conflict,) = session.conflicts()
    assert conflict.cheapest == (6,)
    session.resolve(conflict, "repair")
    assert session.answers()[-1].answer == "same"


def test_where_answers_are_evidence_the_probably_wrong_ones_give_way(session):
    groups = [np.flatnonzero(group == Y).tolist() for group in range(3)]
    right = [(one[place], other[place], "different") for one, other in pairwise(groups) for place in range(6)]
    right += [(group[place], group[place + 1], "same") for group in groups for place in range(5)]
    session.import_answers(right, annotator="ann")
    turned = [(one, two, "same" if said == "different" else "different") for one, two, said in right[::4]]
    session.import_answers(turned, annotator="bob")  # as often as ann about these pairs, and always wrong
    conflicts = session.conflicts()
    wrong = {record.id for record in session.answers() if record.annotator == "bob"}
    assert len(conflicts) == len(turned) == len(wrong)
    assert {event for conflict in conflicts for event in conflict.cheapest} == wrong
    assert conflicts[0].message.endswith("Probably they are different.")
    quick = session.review(quick=True)
    assert {item.answer_id for item in quick if item.likely != item.answer} == wrong
    assert session.resolve(conflicts[0], "repair")[0].id == conflicts[1].id


def test_less_than_certain_answers_are_preferences(store_url):
    with Session.create(store_url, [[0.0], [1.0], [9.0], [10.0]], n_clusters=2) as session:
        session.import_answers([{"id_1": 0, "id_2": 3, "answer": "same", "confidence": 0.01}])
        session.import_answers([(0, 1, "same")])
        labels = session.labels()
        assert labels[0] == labels[1] != labels[2] == labels[3]  # too dear to follow
        session.import_answers([(0, 3, "same")], annotator="a second person")
        labels = session.labels()
        assert labels[0] == labels[3]  # certain now: it holds


def test_the_number_of_clusters_is_raised_where_answers_need_more(session):
    session.set(n_clusters=2)
    session.import_answers([(a, b, "different") for a in range(4) for b in range(a)])
    labels = session.labels()
    assert len({labels[row] for row in range(4)}) == 4
    assert session.progress().notes == (
        "4 clusters instead of 2: Rows 0, 1, 2 and 3 are pairwise cannot-linked and need 4 clusters.",
    )


@pytest.mark.parametrize("method", [None, "cop-kmeans"])
def test_notes_name_rows_by_the_ids_of_the_user(tmp_path, method):
    table = tmp_path / "table.csv"
    table.write_text("name,x\nann,0\nben,1\ncyd,8\ndan,9\n")
    with Session.create(tmp_path / "s.clew", table, id_column="name", n_clusters=1, method=method) as session:
        session.import_answers([("ann", "dan", "different")])
        session.labels()
        (note,) = session.progress().notes
    assert note == "2 clusters instead of 1: Rows ann and dan are pairwise cannot-linked and need 2 clusters."


METHODS = by_method_name("clusterer")
OF_ROWS = [name for name, kind in METHODS.items() if kind._capabilities.vectors]


@pytest.mark.parametrize("method", sorted(METHODS.keys() - OF_ROWS))
def test_a_method_of_square_matrices_or_counts_is_refused(session, method):
    with pytest.raises(ParameterError, match=f'"{method}" clusters (a square matrix|counts), but a session'):
        session.set(method=method)


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("method", [name for name in OF_ROWS if METHODS[name]._is_installed()])
def test_a_method_of_ones_own(tmp_path, method):
    with Session.create(tmp_path / "s.clew", X, n_clusters=3) as session:
        session.set(method=method)
        told(session, Y, 10)
        assert len(set(session.labels().values())) == 3 or session.progress().notes
        assert session.settings["method"] == method


def test_networks_are_offered_for_images_texts_and_vectors(tmp_path, monkeypatch):
    monkeypatch.setattr(METHODS["deep-constrained-clustering"], "_is_installed", classmethod(lambda cls: True))
    numbers = {"a": [0.0, 1.0, 2.0, 9.0], "b": [4.0, 1.5, 2.0, 7.0]}
    texts = {"post": [f"the {word} is a long story about {word}s and rain" for word in ("cat", "dog", "car", "bus")]}
    for place, (data, is_offered) in enumerate([(numbers, False), (texts, True)]):
        with Session.create(tmp_path / f"{place}.clew", pd.DataFrame(data), n_clusters=2) as session:
            assert ("deep-constrained-clustering" in session.methods) == is_offered
            assert "pck-means" in session.methods and "correlation-clustering" not in session.methods


def test_a_method_whose_extra_is_missing_is_refused(session, monkeypatch):
    monkeypatch.setattr(METHODS["deep-constrained-clustering"], "_is_installed", classmethod(lambda cls: False))
    with pytest.raises(ParameterError, match=r"needs an extra that is missing: pip install 'clew\[deep\]'"):
        session.set(method="deep-constrained-clustering")
    assert "deep-constrained-clustering" not in session.methods


def test_a_method_without_cosines_gets_rows_of_length_one(tmp_path):
    angle = np.repeat([0.1, 0.8, 1.4], 10)
    rows = np.column_stack([np.cos(angle), np.sin(angle)]) * np.tile(np.geomspace(1, 100, 10), 3)[:, None]
    with Session.create(tmp_path / "s.clew", rows, n_clusters=3, method="mpck-means", metric="cosine") as session:
        assert same_partition(list(session.labels().values()), np.repeat(range(3), 10))


def test_a_note_about_one_cluster_says_so(tmp_path):
    with Session.create(tmp_path / "s.clew", [[float(n)] for n in range(6)], n_clusters=3) as session:
        session.import_answers([(0, n, "same") for n in range(1, 6)])
        session.labels()
        assert session.progress().notes == (
            "1 cluster instead of 3: the answers and the neighbours of rows leave other clusters empty.",
        )


def test_which_questions_and_strategies_with_parameters_come_back(store_url):
    strategy = {"name": "dense-min-max", "parameters": {"ask": "label"}}
    session = Session.create(store_url, X, n_clusters=3, strategy=strategy)
    kinds = set()
    for _ in range(30):
        question = session.ask()
        if question is None:
            break
        kinds.add(question.kind)
        if question.kind == "which":
            same = [one for one in question.candidates if Y[one] == Y[question.left]]
            session.tell(question, same[0] if same else "none")
            with pytest.raises(ParameterError, match="revise"):
                session.tell(question, "unsure")
        else:
            session.tell(question, answer_to(question))
    assert "which" in kinds
    record = next(record for record in session.answers() if record.kind == "which")
    before = everything(session)
    session = reopened(session, store_url)
    assert everything(session) == before
    session.revise(record.id, "none")
    with pytest.raises(ParameterError, match="Say which row it is the same as"):
        session.revise(record.id, "same")
    session.close()


def test_strategies_by_name_and_by_instance(store_url):
    assert default_strategy() == "auto"
    assert {"min-max", "random-pairs", "cluster-pairs"} <= set(strategies())
    with Session.create(store_url, X, strategy=MinMax()) as session:
        assert session.settings["strategy"]["name"] == "min-max"
        session.set(strategy="cluster-pairs", n_clusters=5)
        question = session.ask()
        assert question.kind == "clusters"
        assert [len(rows) > 0 for rows in question.rows] == [True, True]


def test_many_different_in_a_row_bring_another_strategy_and_then_the_first_one(store_url):
    rows = np.arange(40.0)[:, None] ** 1.5
    with Session.create(store_url, rows, n_clusters=30) as session:
        notes = []
        for _ in range(45):
            question = session.ask()
            told_ = session.tell(question, "different" if len(notes) == 0 else "same")
            notes += [told_.note] * (told_.note is not None)
        assert notes[0].startswith('20 answers in a row were "different": super-instances asks now instead')
        assert notes[1] == "Answers are mixed again: the usual strategy asks now."
        assert session.progress().strategy == "auto"
        assert [event.payload["reason"] for event in session.history() if event.kind == "setting"] == notes[:2]
        assert session.undo().kind == "answer"  # what the session chose itself is nobody's to undo


# -- several people ----------------------------------------------------------------------------------------------------


def test_different_answers_of_several_people_in_a_row_bring_no_other_strategy(store_url):
    rows = np.arange(40.0)[:, None] ** 1.5
    with Session.create(store_url, rows, n_clusters=30) as session:
        for turn in range(38):
            assert session.tell(session.ask(("ann", "bob")[turn % 2]), "different").note is None
        notes = [session.tell(session.ask(who), "different").note for who in ("cat", "ann", "bob")]
        assert notes[0] is None and notes[1].startswith("20 answers in a row") and notes[2] is None
        told(session, np.zeros(40), 18, "dan")  # with bob's answer 19 since then, of which some are "same"
        assert session.progress().strategy == "super-instances"
        assert session.tell(session.ask("cat"), "same").note.startswith("Answers are mixed again")


def test_no_pair_goes_to_two_people_and_one_that_expired_goes_to_the_next(session):
    now = [1000.0]
    session._project.clock = lambda: now[0]
    mine = [session.ask("ann") for _ in range(3)]
    theirs = session.ask("bob", n=3)
    pairs = {frozenset((one.left, one.right)) for one in (*mine, *theirs)}
    assert len(pairs) == 6
    now[0] += 101
    again = session.ask("cat")
    assert again.id == mine[0].id
    assert (again.annotator, again.expires) == ("cat", now[0] + 100)
    assert session.tell(mine[0], answer_to(mine[0]), annotator="ann").id  # late, but the first answer
    assert session.tell(again, answer_to(again)).id == session.answers()[-1].id
    assert len(session.answers()) == 1


def test_a_person_whose_question_expired_and_came_again_has_one_answer(store_url):
    with Session.create(store_url, X, n_clusters=3, overlap=2, lease_seconds=100) as session:
        now = [1000.0]
        session._project.clock = lambda: now[0]
        mine = session.ask("ann")
        now[0] += 101
        assert session.ask("bob").id == mine.id
        again = session.ask("ann")
        assert {again.left, again.right} == {mine.left, mine.right} and again.id != mine.id
        first = session.tell(mine, answer_to(mine), annotator="ann")
        assert session.tell(again, answer_to(again)) == first
        assert session.tell(again, answer_to(again)) == first
        assert len(session.answers()) == 1
        assert again.id not in {one.id for one in session.pending()}
        other = session.ask("cat")
        assert {other.left, other.right} == {mine.left, mine.right}
        with pytest.raises(ParameterError, match=f"answered '{answer_to(mine)}' by ann"):
            session.tell(other, "unsure", annotator="ann")
        session.tell(other, answer_to(other))
        before = everything(session)
    with Session.open(store_url) as reopened_:
        assert everything(reopened_) == before


def test_expired_questions_that_are_decided_are_not_asked_again(session):
    now = [1000.0]
    session._project.clock = lambda: now[0]
    question = session.ask("ann")
    session.import_answers([(question.left, question.right, "same")])
    now[0] += 101
    assert session.ask("ann").id != question.id
    assert question.id not in {one.id for one in session.pending()}


def test_a_check_question_that_expired_goes_to_the_next_person(store_url):
    with Session.create(store_url, X, n_clusters=3, lease_seconds=100, check_share=0.05) as session:
        now = [1000.0]
        session._project.clock = lambda: now[0]
        question = session.ask("ann")
        while not question.check:
            session.tell(question, answer_to(question))
            question = session.ask("ann")
        now[0] += 101
        again = session.ask("cat")
        assert (again.id, again.check) == (question.id, True)


def test_leases_outlive_a_restart(store_url):
    session = Session.create(store_url, X, n_clusters=3)
    asked = session.ask("ann", n=4)
    session = reopened(session, store_url)
    assert session.pending() == asked
    more = session.ask("bob", n=4)
    assert len({frozenset((one.left, one.right)) for one in (*asked, *more)}) == 8
    session.tell(asked[2], "unsure")
    assert len(session.pending()) == 7
    session.close()


def test_with_an_error_rate_overlap_asks_second_people_about_doubtful_answers_only(store_url):
    y = np.arange(60) % 3
    rows = np.random.default_rng(0).normal(0, 0.5, (60, 2)) + 6 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    session = Session.create(store_url, rows, n_clusters=3, overlap=2, error_rate=0.1)
    n_answers = 30
    for number in range(n_answers):
        question = session.ask("ann" if number % 2 else "bob")
        is_same = y[question.left] == y[question.right]
        session.tell(question, "same" if is_same != (number == 7) else "different")  # one answer is wrong
    second = [pair for pair in session.agreement().pairs if len(pair.answers) == 2]
    assert 0 < len(second) < n_answers / 3
    session.close()


@pytest.mark.parametrize("error_rate", [None, 0.15])
def test_clusters_overrule_answers_that_are_wrong(store_url, error_rate):
    y = np.arange(90) % 3
    rows = np.random.default_rng(0).normal(0, 1, (90, 2)) + 6 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    session = Session.create(store_url, rows, n_clusters=3, error_rate=error_rate)
    rng, wrong = np.random.default_rng(1), []
    for _ in range(80):
        question, is_wrong = session.ask("ann"), rng.random() < 0.15
        is_same = bool(y[question.left] == y[question.right])
        told = session.tell(question, "same" if is_same != is_wrong else "different")
        wrong += [told.id] if is_wrong else []
    labels = session.labels()
    obeyed = [one.id for one in session.answers() if (labels[one.left] == labels[one.right]) == (one.answer == "same")]
    assert len(wrong) > 5 and not set(wrong) & set(obeyed)
    assert adjusted_rand_score(y, [labels[row] for row in range(90)]) > 0.95
    session.close()


def three_groups_and_wrong_answers():
    """Three groups that overlap a little, right answers about them, and two wrong ones that nothing contradicts."""
    y = np.arange(90) % 3
    rows = np.random.default_rng(0).normal(0, 1, (90, 2)) + 6 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    right = [(one, one + 3, "same") for one in range(0, 30)] + [(one, one + 1, "different") for one in range(0, 30)]
    return rows, right, [(60, 61, "same"), (70, 71, "same")]


def obeyed(session, pairs):
    labels = session.labels()
    return [(labels[one] == labels[two]) == (answer == "same") for one, two, answer in pairs]


def test_an_error_rate_takes_effect_at_once(store_url):
    rows, right, wrong = three_groups_and_wrong_answers()
    with Session.create(store_url, rows, n_clusters=3) as session:
        session.import_answers([*right, *wrong], annotator="ann")
        assert all(obeyed(session, wrong))
        session.set(error_rate=0.1)
        assert not any(obeyed(session, wrong))
        session.set(error_rate=0)
        assert all(obeyed(session, wrong))


def test_answers_stay_evidence_after_wrong_ones_were_corrected(store_url):
    rows, right, wrong = three_groups_and_wrong_answers()
    with Session.create(store_url, rows, n_clusters=3) as session:
        session.import_answers([*right, *wrong], annotator="ann")
        session.import_answers([(0, 3, "different"), (1, 4, "different")], annotator="bob")
        assert len(session.conflicts()) == 2
        for conflict in session.conflicts():
            session.resolve(conflict, "change", answer_id=conflict.answers[1])
        assert not session.conflicts()
        assert None not in [one.error_rate for one in session.agreement().people]
        assert [(one.annotator, one.corrected) for one in session.agreement().people] == [("ann", 0), ("bob", 2)]
        before = everything(session)
        session = reopened(session, store_url)
        assert everything(session) == before
        session.undo()
        session.undo()
        assert len(session.conflicts()) == 2
        session.close()


def test_an_answer_that_was_changed_is_a_sign_of_errors_until_the_change_is_undone(store_url):
    rows, right, wrong = three_groups_and_wrong_answers()
    with Session.create(store_url, rows, n_clusters=3) as session:
        session.import_answers([*right, *wrong], annotator="ann")
        first, second = (one.id for one in session.answers()[:2])
        session.revise(first, "unsure")
        assert session.agreement().people[0].error_rate is None
        session.revise(second, "different")
        session.revise(second, "same")
        assert session.agreement().people[0].error_rate is None
        session.revise(second, "different")
        assert session.agreement().people[0].error_rate is not None
        session.undo()
        assert session.agreement().people[0].error_rate is None


def test_corrections_hold_if_answers_are_evidence(store_url):
    session = Session.create(store_url, X, n_clusters=3, error_rate=0.2)
    for _ in range(10):
        question = session.ask("ann")
        session.tell(question, answer_to(question))
    one, two = (cluster.typical[0] for cluster in session.clusters()[:2])
    session.move(one, session.labels()[two])
    for _ in range(10):
        question = session.ask("ann")
        session.tell(question, answer_to(question))
    labels = session.labels()
    assert labels[one] == labels[two]
    session.close()


def test_nobody_is_asked_the_same_pair_of_records_twice(store_url):
    rng = np.random.default_rng(0)
    names = ["".join(rng.choice(list("abcdefghij"), 9)) for _ in range(30)]
    table = [{"name": name, "code": str(number)} for number, name in enumerate(names)]
    table += [{"name": name[:-1] + "x", "code": str(number)} for number, name in enumerate(names)]
    session = Session.create(store_url, table, groups="small", error_rate=0.2)
    asked = []
    for _ in range(40):
        question = session.ask("ann")
        if question is None:
            break
        asked.append(frozenset((question.left, question.right)))
        is_same = question.left % 30 == question.right % 30
        session.tell(question, "same" if is_same != (rng.random() < 0.2) else "different")
    assert len(asked) > 20 and len(set(asked)) == len(asked) == len(session.answers())
    session.close()


def test_overlap_asks_everybody_until_answers_contradict_and_then_where_an_answer_is_in_doubt(store_url):
    y = np.arange(60) % 3
    rows = np.random.default_rng(0).normal(0, 0.5, (60, 2)) + 6 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    session = Session.create(store_url, rows, n_clusters=3, overlap=2)
    people = {}
    for number in range(60):
        question = session.ask("ann" if number % 2 else "bob")
        pair = frozenset((question.left, question.right))
        people.setdefault(pair, []).append(number)
        is_same = y[question.left] == y[question.right]
        session.tell(question, "same" if is_same != (number == 19) else "different")  # ann disagrees once
    first, later = ([len(n) for n in people.values() if (n[0] < 20) == is_first] for is_first in (True, False))
    assert first == [2] * 10
    assert sum(later) == 40 and np.mean(np.array(later) == 2) < 1 / 3
    session.close()


def test_people_are_doubted_while_another_strategy_asks_for_a_while(store_url):
    y = np.arange(60) % 3
    rows = np.random.default_rng(0).normal(0, 0.5, (60, 2)) + 6 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    session = Session.create(store_url, rows, n_clusters=3, overlap=2, error_rate=0.1)
    notes = []
    for number in range(60):  # Eve always says "different", which is often wrong
        question = session.ask(("ann", "bob", "eve")[number % 3])
        is_same = y[question.left] == y[question.right] and question.annotator != "eve"
        notes.append(session.tell(question, "same" if is_same else "different").note)
    assert any(note and "asks now instead of auto" in note for note in notes)
    ann, _, eve = session.agreement().people
    assert eve.looks_wrong > 3 > ann.looks_wrong and eve.error_rate > 2 * ann.error_rate
    asked = [frozenset((one.left, one.right)) for one in session.answers()]
    question = session.ask("ann")  # a new pair, unless the only answer about an old one is in doubt
    people = [one.annotator for one in session.answers() if {one.left, one.right} == {question.left, question.right}]
    assert people in ([], ["eve"])
    assert len(asked) - len(set(asked)) < 30 * 2 / 3
    session.close()


def test_names_that_differ_in_case_are_one_person_for_overlap_and_agreement(store_url):
    session = Session.create(store_url, X, n_clusters=3, overlap=2)
    asked = []
    for person in ("Ann", "ann ", "ANN"):
        asked.append(session.ask(person))
        session.tell(asked[-1], answer_to(asked[-1]))
    assert len({frozenset((one.left, one.right)) for one in asked}) == 3  # nobody is asked twice about a pair
    second = session.ask("bob")
    session.tell(second, answer_to(second))
    (ann, bob) = session.agreement().people
    assert (ann.annotator, ann.answered, ann.shared, ann.agreed) == ("Ann", 3, 1, 1)
    assert (bob.annotator, bob.answered) == ("bob", 1)
    assert list(session.agreement().kappa) == [("Ann", "bob")]
    assert [record.annotator for record in session.answers()] == ["Ann", "ann ", "ANN", "bob"]  # the log keeps names
    session.close()


def test_pairs_that_lack_a_second_person_are_known_after_a_restart(tmp_path):
    with Session.create(tmp_path / "project.clew", X, n_clusters=3, overlap=2) as session:
        told(session, Y, 3, annotator="Ann")
        session.undo("Ann")
        before = everything(session)["below_overlap"]
        assert len(before) == 2
    with Session.open(tmp_path / "project.clew") as session:
        assert everything(session)["below_overlap"] == before
        session.set(overlap=1)
        assert not everything(session)["below_overlap"]


def test_overlap_asks_each_pair_of_two_people_and_disagreement_waits(store_url):
    session = Session.create(store_url, X, n_clusters=3, overlap=2)
    answers = {}
    for turn in range(10):
        for person in ("ann", "bob"):
            question = session.ask(person)
            answer = answer_to(question)
            if turn == 9 and person == "bob":
                answer = {"same": "different", "different": "same"}[answer]
                odd = frozenset((question.left, question.right))
            answers.setdefault(frozenset((question.left, question.right)), []).append(person)
            session.tell(question, answer)
    assert {tuple(people) for people in answers.values()} <= {("ann", "bob"), ("bob", "ann")}
    agreement = session.agreement()
    assert [person.answered for person in agreement.people] == [10, 10]
    assert [person.agreed for person in agreement.people] == [9, 9]
    assert [frozenset((pair.left, pair.right)) for pair in agreement.pairs if not pair.agree] == [odd]
    assert 0 < agreement.kappa["ann", "bob"] < 1
    (conflict,) = session.conflicts()
    assert conflict.kind == "disagreement"
    used = session.constraints
    assert odd not in {frozenset(pair) for pair in (*used.must_link.tolist(), *used.cannot_link.tolist())}
    assert len(session.review()) >= 2
    session.resolve(conflict, "change", answer_id=conflict.answers[1])
    assert session.conflicts() == []
    before = everything(session)
    session = reopened(session, store_url)
    assert everything(session) == before
    session.close()


def test_checks_ask_again_what_follows(store_url):
    with Session.create(store_url, X, n_clusters=3, check_share=0.05) as session:
        asked = told(session, Y, 60)
        checks = [question for question in asked if question.check]
        assert 1 <= len(checks) <= 0.05 * (len(asked) + 1)
        assert sum(record.check for record in session.answers()) == len(checks)
        assert session.conflicts() == []


def noisy(session, n):
    """Answer n questions, one in four wrongly, so that strategies have reason to check."""
    asked = []
    for place in range(n):
        question = session.ask()
        asked.append(question)
        session.tell(question, "same" if (Y[question.left] == Y[question.right]) != (place % 4 == 3) else "different")
    return asked


def test_a_share_of_no_checks_holds_for_the_strategy_too(store_url):
    with Session.create(store_url, X, n_clusters=3, check_share=0) as session:
        assert not any(question.check for question in noisy(session, 30))
        session.set(check_share=None)
        assert session._state.known.driver.check_share == 0.05
        session.set(check_share=0.0)
        assert session._state.known.driver.check_share == 0.0


def test_unless_told_otherwise_the_strategy_checks_where_answers_look_wrong(store_url, tmp_path):
    with Session.create(store_url, X, n_clusters=3) as session:
        first = next(question for question in noisy(session, 30) if question.check)
        assert first.why == "Is this right?"
    with Session.create(tmp_path / "right.clew", X, n_clusters=3) as session:
        assert not any(question.check for question in told(session, Y, 60))


def test_another_seed_leads_to_the_same_question_before_and_after_opening_anew(store_url):
    session = Session.create(store_url, X, n_clusters=3, strategy="random-pairs")
    session.set(random_state=9)
    live = session._state.known.driver._look_ahead()
    session = reopened(session, store_url)
    assert session._state.known.driver._look_ahead() == live
    session.close()


# -- data --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    frame = pd.DataFrame({"key": [f"{n:03}" for n in range(24)], "a": X[:, 0], "b": X[:, 1], "note": ["x", "y"] * 12})
    frame.to_csv(tmp_path / "data.csv", index=False)
    return frame


def test_a_table_is_referred_to_and_changes_are_told(store_url, table, tmp_path):
    data = tmp_path / "data.csv"
    session = Session.create(store_url, data, id_column="key", n_clusters=3)
    session.import_answers([("001", "004", "same"), ("001", "005", "different"), (7, "010", "same")][:2])
    assert not session.changes
    assert str(session.changes) == "The data is as it was."
    assert session.row("001")["note"] == "y"
    assert session.describe().splitlines()[0].startswith("column")
    before = session.labels()
    session.close()

    changed = table.drop(index=[5]).sample(frac=1, random_state=0)
    changed.loc[3, "a"] += 1
    new = pd.DataFrame({"key": ["new"], "a": [X[0, 0]], "b": [X[0, 1]], "note": ["x"]})
    pd.concat([changed, new]).assign(more=1).to_csv(data, index=False)
    session = Session.open(store_url)
    changes = session.changes
    assert (changes.added, changes.missing, changes.changed) == (["new"], ["005"], ["003"])
    assert changes.new_columns == ["more"]
    assert str(changes) == (
        "The data has changed: 1 row is new (new); 1 row is missing (005); 1 row has other values (003); "
        "1 column is new (more)."
    )
    assert len(session.answers()) == 2
    assert session.constraints.cannot_link.tolist() == []  # its row is missing
    assert "005" not in session.labels()
    with pytest.raises(ParameterError, match="'005' is not in the data now"):
        session.move("005")
    assert session.add_rows() == ["new"]
    assert session.add_rows() == []
    labels = session.labels()
    assert labels["new"] == labels["000"] == before["000"]
    session.close()

    table.to_csv(data, index=False)
    with Session.open(store_url) as session:
        assert session.changes.missing == ["new"]
        assert session.constraints.cannot_link.tolist() == [[1, 5]]


def test_data_that_moved_is_found_beside_the_project_or_told(tmp_path, table):
    (tmp_path / "one").mkdir()
    (tmp_path / "data.csv").rename(tmp_path / "one" / "data.csv")
    Session.create(tmp_path / "one" / "p.clew", tmp_path / "one" / "data.csv", id_column="key").close()
    (tmp_path / "one").rename(tmp_path / "two")
    with Session.open(tmp_path / "two" / "p.clew") as session:
        assert len(session.ids) == 24
    (tmp_path / "two" / "data.csv").rename(tmp_path / "elsewhere.csv")
    with pytest.raises(FileError, match=r"is gone. Say where it is now"):
        Session.open(tmp_path / "two" / "p.clew")
    Session.open(tmp_path / "two" / "p.clew", tmp_path / "elsewhere.csv").close()
    with Session.open(tmp_path / "two" / "p.clew") as session:
        assert len(session.ids) == 24


def test_frames_are_kept_in_the_project(store_url, table):
    session = Session.create(store_url, table, id_column="key", n_clusters=3)
    before = session.labels(), session.row("003")
    new = table.assign(key=[f"n{n}" for n in range(24)])[:4]
    ids = session.add_rows(new)
    assert ids == ["n0", "n1", "n2", "n3"]
    labels = session.labels(refit=False)
    assert [labels[f"n{n}"] for n in range(4)] == [labels[f"{n:03}"] for n in range(4)]
    with pytest.raises(ParameterError, match="Row 'n0' is known already"):
        session.add_rows(new)
    with pytest.raises(ClewError, match="lacks the column 'b'"):
        session.add_rows(new.drop(columns="b"))
    session = reopened(session, store_url)
    assert session.labels(refit=False) == labels
    assert session.row("003") == before[1]
    assert session.row("n2")["note"] == "x"
    session.close()


def test_rows_without_ids_are_known_by_position(store_url):
    session = Session.create(store_url, X[:20], n_clusters=3)
    assert session.ids == list(range(20))
    assert session.add_rows(X[20:]) == ["new-20", "new-21", "new-22", "new-23"]
    before = session.labels()
    assert before["new-21"] == before[0]
    session = reopened(session, store_url)
    assert session.labels() == before
    session.close()


def test_texts_become_vectors_out_of_the_box(store_url):
    words = ["the cat sat on the mat", "a cat and a mat", "stocks fell on monday", "monday stocks and bonds"] * 4
    frame = pd.DataFrame({"id": range(16), "text": [f"{word} {n}" for n, word in enumerate(words)]})
    with Session.create(store_url, frame, id_column="id", n_clusters=2) as session:
        labels = session.labels()
        assert labels[0] == labels[1] != labels[2] == labels[3]


def test_what_is_known_beforehand_counts(store_url):
    prior = Constraints([(0, 3)], [(0, 1)], labels=[-1] * 22 + [0, 1], n_samples=24)
    session = Session.create(store_url, X, n_clusters=3, constraints=prior)
    assert session.constraints.must_link.tolist() == [[0, 3]]
    session.import_answers([(3, 1, "same")])
    assert "given at the start" in session.conflicts()[0].message
    before = everything(session)
    session = reopened(session, store_url)
    assert everything(session) == before
    session.close()
    with pytest.raises(ConstraintError):
        Session.create(f"{store_url}2", X, constraints={"must_link": [(0, 1)], "cannot_link": [(0, 1)]})


# -- files -------------------------------------------------------------------------------------------------------------


def test_exports_come_back(store_url, table, tmp_path):
    with Session.create(store_url, tmp_path / "data.csv", id_column="key", n_clusters=3) as session:
        session.import_answers([("001", "004", "same"), ("001", "005", "different"), ("002", "003", "unsure")])
        session.name_cluster(0, "=first")
        for suffix in (".csv", ".jsonl", ".parquet"):
            for what in ("labels", "constraints", "answers"):
                session.export(what, tmp_path / f"{what}{suffix}")
        labels = pd.read_parquet(tmp_path / "labels.parquet")
        assert dict(zip(labels["id"], labels["cluster"], strict=True)) == session.labels()
        assert "'=first" in (tmp_path / "labels.csv").read_text()
        ids = np.array(session.ids, dtype=object)
        for suffix in (".csv", ".jsonl", ".parquet"):
            assert Constraints.from_file(tmp_path / f"constraints{suffix}", ids=ids) == session.constraints
        lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
        assert [(line["id_1"], line["id_2"], line["answer"]) for line in lines] == [
            ("001", "004", "same"), ("001", "005", "different"), ("002", "003", "unsure")
        ]  # fmt: skip
        with pytest.raises(ParameterError, match="what='songs'"):
            session.export("songs", tmp_path / "songs.csv")
        answers = session.answers()
    with Session.create(store_url, tmp_path / "data.csv", id_column="key", name="copy") as other:
        for suffix in (".csv", ".jsonl", ".parquet"):
            assert other.import_answers(tmp_path / f"answers{suffix}") == (3 if suffix == ".csv" else 0)
        assert [(one.left, one.right, one.answer, one.time) for one in other.answers()] == [
            (one.left, one.right, one.answer, one.time) for one in answers
        ]


def test_exported_labels_have_every_row_and_say_noise(store_url, tmp_path):
    rows = [[row / 10] for row in range(20)] + [[90.0]]
    with Session.create(store_url, rows, method="constrained-dbscan") as session:
        session.export("labels", tmp_path / "labels.csv")
        assert 20 not in session.labels()
    labels = pd.read_csv(tmp_path / "labels.csv", keep_default_na=False)
    assert labels["id"].tolist() == list(range(21))
    assert labels["cluster"].tolist() == [0] * 20 + [-1]
    assert labels["name"].tolist() == [""] * 20 + ["noise"]


def test_files_of_other_tools_are_imported(store_url, table, tmp_path):
    splink = tmp_path / "splink.csv"
    splink.write_text("unique_id_l,unique_id_r,clerical_match_score\n001,004,1.0\n001,005,0.0\n")
    with Session.create(store_url, tmp_path / "data.csv", id_column="key") as session:
        assert session.import_answers(splink) == 2
        assert [record.answer for record in session.answers()] == ["same", "different"]
        bad = tmp_path / "bad.csv"
        bad.write_text("id_1,id_2,answer\n001,004,same\n001,nobody,same\n")
        version = session.version
        with pytest.raises(ClewError, match="nobody"):
            session.import_answers(bad)
        assert session.version == version


def test_provenance_names_the_events(session):
    session.import_answers([(0, 3, "same")], annotator="ann")
    (event,) = session.provenance((3, 0))
    assert (event.kind, event.annotator) == ("answer", "ann")
    assert session.provenance((0, 1)) == []


def test_clusters_have_typical_and_borderline_rows(session):
    for cluster in session.clusters():
        assert cluster.size == 8
        members = partition(session.labels())[cluster.id]
        assert set(cluster.typical) <= members
        assert set(cluster.borderline) <= members
    session.name_cluster(1, "fish")
    told(session, Y, 10)
    assert {cluster.name for cluster in session.clusters()} == {None, "fish"}


def test_a_closed_session_says_so(store_url):
    session = Session.create(store_url, X)
    session.close()
    for call in (session.ask, session.labels, session.fit, session.progress):
        with pytest.raises(FileError, match="This session is closed"):
            call()


def test_lists_of_numbers_are_shown_where_they_are_curves(tmp_path):
    rng = np.random.default_rng(0)
    steps = np.linspace(0, 6, 40)
    lines = [
        {"id": f"r{row}", "curve": np.sin(steps + row).round(3).tolist(), "embedding": rng.normal(size=40).tolist()}
        for row in range(8)
    ]
    data = tmp_path / "curves.jsonl"
    data.write_text("\n".join(map(json.dumps, lines)) + "\n")
    with Session.create(tmp_path / "curves.clew", data, id_column="id", n_clusters=2) as session:
        assert session.row("r3") == {"id": "r3", "curve": lines[3]["curve"]}


def with_wrong_answers(session, wrong):
    """Forty answers about three blobs; gives the numbers of the wrong ones."""
    numbers = []
    for place in range(40):
        question = session.ask("ann")
        same = (question.left // 40 == question.right // 40) != (place in wrong)
        number = session.tell(question, "same" if same else "different").id
        numbers += [number] if place in wrong else []
    return numbers


def three_blobs():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(centre, 0.6, (40, 2)) for centre in ((0, 0), (10, 0), (0, 10))])


def test_the_right_one_of_two_opposite_answers_is_listed_with_its_own_probability(tmp_path):
    with Session.create(tmp_path / "blobs.clew", three_blobs(), n_clusters=3) as session:
        with_wrong_answers(session, ())
        first = session.answers()[0]
        opposite = {"same": "different", "different": "same"}[first.answer]
        session.import_answers([(first.left, first.right, opposite)], annotator="cy")
        wrong, right = (item for item in session.review() if (item.left, item.right) == (first.left, first.right))
        assert (wrong.annotator, right.annotator) == ("cy", "ann")
        assert wrong.suspicion > 0.9 and right.suspicion < 0.1 and right.likely == right.answer
        assert "ann said the opposite about the same pair." in wrong.reasons
        assert right.reasons == ("Another person says the opposite.",)
        quick = [(item.annotator, item.suspicion > 0.9) for item in session.review(quick=True)]
        assert quick == [("cy", True), ("ann", False)]


def test_wrong_answers_lead_the_review_with_the_likely_right_answer(tmp_path):
    """No check question finds them before."""
    with Session.create(tmp_path / "blobs.clew", three_blobs(), n_clusters=3, check_share=0) as session:
        wrong = with_wrong_answers(session, (20, 30))
        found = session.review()
        assert sorted(item.answer_id for item in found[:2]) == wrong
        assert [(item.answer, item.likely) for item in found[:2]] == [("different", "same")] * 2
        assert all(0.5 < item.suspicion < 1 for item in found[:2])
        assert "the chance that the two belong together is" in found[0].reasons[0]
        for item in found + session.review(quick=True):  # one number, one meaning
            opposite = {"same": "different", "different": "same"}[item.answer]
            assert item.likely == (opposite if item.suspicion > 0.5 else item.answer)
            assert item.suspicion >= 0.05
        session.fit()
        assert {item.answer_id for item in session.review(quick=True)} >= set(wrong)


def test_an_answer_that_was_kept_is_not_reviewed_again(tmp_path):
    path = tmp_path / "blobs.clew"
    with Session.create(path, three_blobs(), n_clusters=3) as session:
        kept, other = with_wrong_answers(session, (20, 30))
        session.fit()
        record = session.confirm(kept, annotator="ben")
        assert (record.confirmed, record.revised, record.answer) == ("ben", False, "different")
        assert not session.is_stale
    with Session.open(path) as session:
        for quick in (False, True):
            assert kept not in [item.answer_id for item in session.review(quick=quick)]
        assert other in [item.answer_id for item in session.review()]
        assert session.undo("ben").kind == "confirm"
        assert kept in [item.answer_id for item in session.review()]
        session.confirm(kept)
        session.revise(kept, "same")
        assert next(one for one in session.answers() if one.id == kept).confirmed is None
        with pytest.raises(ClewError, match="There is no answer 999"):
            session.confirm(999)


def test_a_kept_answer_that_contradicts_is_listed_all_the_same(tmp_path):
    with Session.create(tmp_path / "few.clew", [[0.0], [0.1], [5.0], [5.1]], n_clusters=2) as session:
        session.import_answers([(0, 1, "same"), (1, 2, "same"), (0, 2, "different")], annotator="ann")
        waiting = session.conflicts()[0]
        session.confirm(waiting.answers[0])
        assert waiting.answers[0] in [item.answer_id for item in session.review()]


def test_clusters_are_those_of_auto_while_another_strategy_takes_over(store_url):
    rows, y = make_moons(200, noise=0.05, random_state=0)
    with Session.create(store_url, rows, n_clusters=2) as session:
        for _ in range(12):
            question = session.ask()
            session.tell(question, "same" if y[question.left] == y[question.right] else "different")
        before = session.labels()
        assert same_partition(list(before.values()), y)
        session.set(strategy={"name": "ability-to-separate", "parameters": {}, "automatic": True})
        assert session.fit() == before


def test_rows_of_one_direction_are_alike_by_cosine(store_url):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    rows = np.array([[1.0, 0.2], [0.2, 1.0]])[y] * rng.uniform(0.1, 50, size=(60, 1))
    with Session.create(store_url, rows, n_clusters=2, metric="cosine") as session:
        assert same_partition(list(session.labels().values()), y)


@pytest.mark.parametrize("change", ["revise", "confirm"])
def test_a_change_of_an_answer_is_undone_after_the_answer_itself(store_url, change):
    X, _ = blobs()
    with Session.create(store_url, X, n_clusters=3) as session:
        question = session.ask("ann")
        said = session.tell(question, "same", annotator="ann")
        if change == "revise":
            session.revise(said.id, "different", annotator="bob")
        else:
            session.confirm(said.id, annotator="bob")
        assert session.undo("ann").seq == said.id
        assert session.undo("bob").kind == change
        assert session.answers() == []
    with Session.open(store_url) as session:
        assert session.answers() == []
