"""`clew.audit.review`: evidence, words and refusals."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from clew import ConstrainedGaussianMixture, Constraints, COPKMeans
from clew.active import Answer
from clew.audit import advise_n_clusters, difficulty, informativeness, review
from clew.audit._ensemble import left_out
from clew.exceptions import ConstraintError, DataError, ParameterError

CLAIMS = {"same": "belong together", "different": "are different"}

Y = np.repeat(np.arange(3), 15)


@pytest.fixture(scope="module")
def blobs():
    return np.random.default_rng(0).normal(size=(45, 2)) + 12.0 * np.array([[0, 0], [1, 0], [0, 1]])[Y]


@pytest.fixture(scope="module")
def answers():
    known = Constraints.sample(Y, 40, balance=0.5, random_state=0)
    right = [(pair, "same") for pair in known.must_link.tolist()]
    return right + [(pair, "different") for pair in known.cannot_link.tolist()]


def by_index(found):
    return {doubt.index: doubt for doubt in found.doubts}


def test_turned_answers_come_first_with_the_likely_right_one(blobs, answers):
    told = list(answers)
    turned = {3: "different", 17: "different", 30: "same"}
    for place, word in turned.items():
        told[place] = (told[place][0], word)
    found = review(blobs, told, 3, ids=[f"r{row}" for row in range(45)])
    assert {doubt.index for doubt in found.doubts[:3]} == set(turned)
    for doubt in found.doubts[:3]:
        assert doubt.suspicion > 0.5 and doubt.likely != doubt.answer == turned[doubt.index]
        assert doubt.rows == tuple(f"r{row}" for row in told[doubt.index][0])
        assert f"the chance that the two {CLAIMS[doubt.likely]} is" in doubt.reasons[0]
    suspicions = [doubt.suspicion for doubt in found.doubts]
    assert suspicions == sorted(suspicions, reverse=True) and min(suspicions) >= 0 and max(suspicions) <= 1
    assert str(found).startswith("3 of 40 answers are more likely wrong than right")
    assert found.table()[0]["rank"] == 1 and len(found) == 40


def test_the_same_input_gives_the_same_list(blobs, answers):
    assert review(blobs, answers, 3).doubts == review(blobs, answers, 3).doubts


def test_a_contradiction_raises_the_suspicion_of_its_answers(blobs, answers):
    (first, second), _ = answers[0]
    third = next(row for row in np.flatnonzero(Y[first] == Y).tolist() if row not in (first, second))
    loop = [((second, third), "same"), ((first, third), "different")]
    alone = by_index(review(blobs, [*answers[1:], loop[0]], 3))[len(answers) - 1]
    doubts = by_index(review(blobs, [*answers, *loop], 3))
    blamed = doubts[len(answers)]
    assert blamed.suspicion > alone.suspicion
    assert "contradicts other answers" in blamed.reasons[0]
    assert doubts[len(answers) + 1].suspicion > blamed.suspicion  # the data speak against the cannot-link


def test_reasons_do_not_speak_for_an_answer_that_is_likely_wrong():
    """A chain of plausible answers with one contradiction: its weakest link is blamed although the data is for it."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(size=(40, 1)), axis=0) * 3
    pairs = [sorted(rng.choice(40, 2, replace=False).tolist()) for _ in range(6)]
    told = [(pair, "same" if X[pair[1], 0] - X[pair[0], 0] < 2 else "different") for pair in pairs]
    chain = [0, 10, 20, 30, 39]
    told += [((one, two), "same") for one, two in pairwise(chain)] + [((0, 39), "different")]
    wrong = [doubt for doubt in review(X, told, 2).doubts if doubt.likely != doubt.answer]
    assert any("alone, the chance that it is right would be" in reason for doubt in wrong for reason in doubt.reasons)
    for doubt in wrong:
        assert not any(f"the two are {doubt.answer} with a chance" in reason for reason in doubt.reasons)


def test_other_functions_take_the_answers_of_a_review(blobs, answers):
    known = Constraints.sample(Y, 40, balance=0.5, random_state=0)
    told = [{"pair": pair, "answer": word} for pair, word in answers]
    for form in (answers, told, [*answers, ((0, 1), "unsure")]):
        assert advise_n_clusters(blobs, form, [2, 3]).table() == advise_n_clusters(blobs, known, [2, 3]).table()
        assert informativeness(blobs, form, 3) == informativeness(blobs, known, 3)
        assert difficulty(form) == difficulty(known)
    with pytest.raises(ConstraintError, match=r"answers\[0\] says 'perhaps': expected same, different or unsure"):
        advise_n_clusters(blobs, [((0, 1), "perhaps")])


def test_opposite_answers_about_one_pair_share_the_suspicion(blobs, answers):
    """Exactly one of them is wrong: the person who errs more, or the one whom the data contradicts."""
    pair, _ = answers[0]
    said = [{"pair": pair, "answer": word, "annotator": who} for word, who in (("same", "Ann"), ("different", "Cy"))]
    for rates in ({"Ann": 0.02, "Cy": 0.3}, {"Ann": 0.3, "Cy": 0.02}, {"Ann": 0.1, "Cy": 0.1}):
        found = review(blobs, [*answers[1:], *said], 3, error_rates=rates)
        ann, cy = (by_index(found)[len(answers) - 1 + place] for place in (0, 1))
        assert ann.suspicion + cy.suspicion < 1.1
        assert sum(doubt.likely != doubt.answer for doubt in (ann, cy)) == 1
        assert "Cy said the opposite about the same pair." in ann.reasons
        assert "Ann said the opposite about the same pair." in cy.reasons


def test_a_check_question_confirms_or_denies(blobs, answers):
    pair, _ = answers[0]
    confirmed = by_index(review(blobs, [*answers, (pair, "same", None, "a", None, True)], 3))[0]
    denied = by_index(review(blobs, [*answers, {"pair": pair[::-1], "answer": "no", "is_check": True}], 3))[0]
    assert confirmed.suspicion < by_index(review(blobs, answers, 3))[0].suspicion < denied.suspicion
    assert any("the other way at a check question" in reason for reason in denied.reasons)


def test_an_annotator_who_errs_is_known_by_it(blobs, answers):
    turned = [(pair, "different" if word == "same" else "same") for pair, word in answers[::4]]
    told = [(pair, word, 1.0, "careful", "monday") for pair, word in answers]
    told += [(pair, word, 1.0, "hasty", "friday") for pair, word in turned]
    found = review(blobs, told, 3)
    assert found.error_rates["hasty"] > 3 * found.error_rates["careful"]
    assert found.doubts[0].annotator == "hasty" and found.doubts[0].time == "friday"
    assert any("hasty seems to be wrong" in reason for reason in found.doubts[0].reasons)


def test_confidence_and_present_clusters_count(blobs, answers):
    pair, word = answers[0]
    sure = by_index(review(blobs, answers, 3))[0].suspicion
    doubtful = by_index(review(blobs, [(pair, word, 0.3), *answers[1:]], 3))[0]
    assert doubtful.suspicion > sure and "confidence 0.3" in " ".join(doubtful.reasons)
    apart = np.arange(45)
    assert by_index(review(blobs, answers, 3, labels=apart))[0].suspicion > sure
    assert by_index(review(blobs, answers, 3, labels=Y))[0].suspicion < sure


def test_a_fitted_mixture_counts_by_its_chance_for_the_pair(blobs, answers):
    told = list(answers)
    told[3] = (told[3][0], "different")
    mixture = ConstrainedGaussianMixture(3, random_state=0).fit(blobs)
    without, with_model = (by_index(review(blobs, told, 3, model=model)) for model in (None, mixture))
    assert with_model[3].suspicion > without[3].suspicion
    assert "By the model, the chance that the two belong together is 100%." in with_model[3].reasons
    assert not any("The model" in reason for doubt in without.values() for reason in doubt.reasons)
    assert all(with_model[place].suspicion <= without[place].suspicion for place in range(len(told)) if place != 3)
    # A sure model is worth as much as its clusters; an even one says nothing.
    sure, even = np.eye(3)[Y], np.tile([0.5, 0.5], (45, 1))
    assert review(blobs, told, 3, model=Probable(probabilities_=sure)).doubts[0].suspicion == pytest.approx(
        review(blobs, told, 3, labels=Y).doubts[0].suspicion
    )
    assert by_index(review(blobs, told, 3, model=Probable(probabilities_=even))) == without


class Probable(SimpleNamespace):
    """A model that knows the probabilities of its own rows alone."""


def test_models_without_probabilities_or_of_other_rows_are_refused(blobs, answers):
    with pytest.raises(ParameterError, match="model=COPKMeans has no probabilities"):
        review(blobs, answers, 3, model=COPKMeans(3, random_state=0).fit(blobs))
    with pytest.raises(ParameterError, match=r"model=Probable have shape \(44, 3\), but X has 45 rows"):
        review(blobs, answers, 3, model=Probable(probabilities_=np.ones((44, 3)) / 3))


def test_forms_of_answers(blobs, answers):
    known = Constraints([pair for pair, word in answers if word == "same"],
                        [pair for pair, word in answers if word == "different"], n_samples=45)  # fmt: skip
    expected = [doubt.suspicion for doubt in review(blobs, answers, 3).doubts]
    assert [doubt.suspicion for doubt in review(blobs, known, 3).doubts] == expected
    words = [(pair, Answer.of(word)) for pair, word in answers]
    assert [doubt.suspicion for doubt in review(blobs, words, 3).doubts] == expected
    unsure = review(blobs, [((0, 1), "unsure"), ((0, 2), "same")], 3)
    assert [doubt.index for doubt in unsure.doubts] == [1]
    assert review(blobs, [], 3).doubts == ()


def test_plot_shows_the_first(blobs, answers):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    assert len(review(blobs, answers, 3).plot(most=7).axes[0].patches) == 7


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (((0, 99), "same"), r"answers\[0\] names row 99, but X has 45 rows"),
        (((0, 0), "same"), "row 0 with itself"),
        (((0,), "same"), "expected two row positions"),
        (((0, 1), "maybe"), r"answers\[0\] says 'maybe'"),
        ({"pair": (0, 1)}, "has no 'answer'"),
        (((0, 1), "same", 2.0), "confidence 2.0"),
        (((0, 1), "same", 1.0, ["ann"]), r"annotator \['ann'\]: expected a name"),
        (((0, 1), "same", 1.0, "ann", "noon", True, 7), "expected a dict, or a tuple of pair, answer"),
        (3, r"answers\[0\] is 3: expected a dict"),
        ("id_1", r"answers\[0\] is 'id_1': expected a dict"),  # so begins a frame
    ],
)
def test_bad_answers_are_named(blobs, answer, message):
    with pytest.raises(ConstraintError, match=message):
        review(blobs, [answer], 3)


def test_bad_rows_and_labels(blobs, answers):
    with pytest.raises(ConstraintError, match="answers is a NoneType: expected a list"):
        review(blobs, None, 3)
    with pytest.raises(DataError, match="n_clusters=46"):
        review(blobs, answers, 46)
    with pytest.raises(ParameterError, match=r"labels has shape \(2,\)"):
        review(blobs, answers, 3, labels=[0, 1])


def test_no_answers_is_a_result_too(blobs):
    found = review(blobs, [((0, 1), "unsure")], 3)
    assert len(found) == 0 and str(found).startswith("There are no answers to look at")
    assert str(review(blobs, [((0, 1), "different")], 3)).startswith("0 of 1 answer is more likely wrong")


def test_constraints_bring_their_ids(blobs):
    known = Constraints([(0, 1)], n_samples=45, ids=[f"r{row}" for row in range(45)])
    assert review(blobs, known, 3).doubts[0].rows == ("r0", "r1")
    assert review(blobs, known, 3, ids=[f"s{row}" for row in range(45)]).doubts[0].rows == ("s0", "s1")


def test_a_missing_annotator_is_nobody(blobs, answers):
    assert review(blobs, [(*answer, 1.0, float("nan")) for answer in answers], 3).error_rates == {}


def test_no_answer_about_a_pair_is_learned_from_when_it_is_judged():
    seen = []

    def judge(known):
        seen.append(known.copy())
        return np.zeros(len(known))

    pair_of = np.array([0, 1, 2, 0, 3, 4, 5, 0])
    left_out(pair_of, np.random.default_rng(0), judge)
    assert all(len(set(known[pair_of == 0])) == 1 for known in seen) and len(seen) == 10


def test_one_pair_answered_both_ways_is_defined(blobs):
    found = review(blobs, [((0, 1), word) for word in ("same", "different") * 5], 3)
    assert np.isfinite([doubt.suspicion for doubt in found.doubts]).all()


def test_known_error_rates_are_priors_and_names_in_another_case_are_one_person():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.normal(size=(40, 2)) + 3 * y[:, None]
    pairs = rng.choice(40, (30, 2))
    answers = [
        {"pair": pair.tolist(), "answer": "same" if y[pair[0]] == y[pair[1]] else "different", "annotator": who}
        for pair, who in zip(pairs[pairs[:, 0] != pairs[:, 1]], ["Ann", "ANN ", "Bob"] * 10, strict=False)
    ]
    plain = review(X, answers, 2)
    warned = review(X, answers, 2, error_rates={"ann": 0.4, "Bob": 0.0})
    assert warned.error_rates["Ann"] == warned.error_rates["ANN "] > plain.error_rates["Ann"]
    assert warned.error_rates["Bob"] < plain.error_rates["Bob"] + 1e-12
    before = {doubt.index: doubt.suspicion for doubt in plain.doubts}
    assert all(doubt.suspicion >= before[doubt.index] for doubt in warned.doubts if doubt.annotator != "Bob")


@pytest.mark.parametrize("wrong", [{"Ann": 0.5}, {"Ann": -0.1}, {"Ann": "often"}, {"Ann": float("nan")}, 0.1])
def test_error_rates_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError, match="error_rates"):
        review(np.arange(6.0)[:, None], [((0, 1), "same")], 2, error_rates=wrong)
