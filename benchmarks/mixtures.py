"""What soft knowledge is worth to a Gaussian mixture, and what a round of EM under constraints costs.

The protocols of Law, Topchy and Jain 2004 (3.1 and 3.2), ten tables of our own with wrong pairs, and the time of one
more round beside scikit-learn's GaussianMixture. For counts of words: what feedback is worth, and what a fit costs.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import mean, median
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import Report, in_fresh_process, judged
from benchmarks._published import not_run, published_data
from clew import ConstrainedGaussianMixture, Constraints, FeedbackNaiveBayes, SoftGroupMixture
from clew.evaluation import normalized_mutual_info_score

# Errors in per cent that Law et al. print, for no, soft and hard knowledge.
PUBLISHED = {"Iris": "6.7 / 2.7 / 8", "Wine": "5.6 / 3.4 / 3.4"}
# The protocol of the paper has 20 random halves; more of them tell chance from effect.
N_HALVES = 150
BAR = 2.0
N_TABLES = 10
# Texts, the number of pairs that are told about them, and the number of draws of pairs.
TEXTS = {"news_sim3": (200, 10), "newsgroups20": (1_000, 1)}


def run(*, quick: bool) -> Report:
    rows = []
    for name, published in PUBLISHED.items():
        errors = halves(name, 2 if quick else N_HALVES)
        for n_repeats in (2,) if quick else (20, N_HALVES):
            found = {word: 100 * mean(each[:n_repeats]) for word, each in errors.items()}
            found["median"] = " / ".join(f"{100 * median(each[:n_repeats]):.1f}" for each in errors.values())
            rows.append({"data": f"{name}, {n_repeats} halves", **found, "published": published})
    for number in range(1 if quick else N_TABLES):
        X, y, n_clusters = drawn(number)
        errors = on_halves(X, y, n_clusters, "full", [[number, repeat] for repeat in range(1 if quick else 3)])
        found = {word: 100 * mean(each) for word, each in errors.items()}
        found["median"] = " / ".join(f"{100 * median(each):.1f}" for each in errors.values())
        rows.append({"data": f"drawn {number}, {len(errors['none'])} halves", **found, "published": "-"})
    for number in range(1 if quick else N_TABLES):
        X, y, pairs, strengths, n_clusters = table(number)
        models = fitted(X, pairs, strengths, n_clusters, "full", n_init=2 if quick else 5)
        found = {word: 100 * error(y, model.labels_) for word, model in models.items()}
        rows.append(
            {
                "data": f"table {number}, {round(100 * (1 - strengths[0]))} % wrong",
                **found,
                "median": "-",
                "published": "-",
            }
        )
    columns = {
        "data": "data", "none": "none, %", "soft": "soft, %", "hard": "hard, %", "median": "medians",
        "published": "published",
    }  # fmt: skip
    notes = [
        "Share of rows outside the class of their cluster: without knowledge, with must-links that have a strength "
        "(`SoftGroupMixture`), and with the same must-links as certain ones (`ConstrainedGaussianMixture`).",
        "Iris, Wine, drawn tables: pairs of the least clear rows, each wrong with one minus its strength; error on the "
        "other half. Other tables: 60 random pairs. Clusters of both kinds of tables overlap and differ in size.",
        "The published figures are whole numbers of rows of a half (5, 2 and 6 of 75; 5, 3 and 3 of 89), which "
        "suggests medians.",
    ]
    return Report("mixtures", "Uncertain must-links in a Gaussian mixture", columns, rows, notes)


def run_rounds(*, quick: bool) -> Report:
    n_rows, n_repeats = (2_000, 1) if quick else (100_000, 5)
    value = in_fresh_process(ratio, n_rows=n_rows, n_repeats=n_repeats)
    row = {"n_rows": n_rows, "ratio": value, **judged(value, None if quick else BAR)}
    columns = {"n_rows": "rows", "ratio": "ratio", "bar": "bar", "verdict": ""}
    notes = [
        "One more round of ConstrainedGaussianMixture over one of scikit-learn's GaussianMixture: 16 columns, 10 "
        "clusters, diagonal covariances, 1 % of the rows in pairs; one thread, median over repetitions in turn."
    ]
    return Report("mixture-rounds", "A round of EM under constraints", columns, [row], notes)


def run_words(*, quick: bool) -> Report:
    title, data = "Word weights moved by feedback", published_data()
    if data is None and not quick:
        return not_run("words", title)
    if quick:
        rng = np.random.default_rng(0)
        y = np.arange(60) % 3
        counts = rng.poisson(np.where(y[:, None] == np.arange(12) % 3, 3.0, 0.5)).astype(float)
        sets = {"drawn": (counts, y, 20, 1)}
    else:
        sets = {name: (*word_counts(data, name), *amounts) for name, amounts in TEXTS.items()}
    rows = []
    for name, (X, y, n_pairs, n_draws) in sets.items():
        scores: dict[str, list[float]] = {"none": [], "start": [], "feedback": []}
        for seed in range(n_draws):
            known = Constraints.sample(y, n_pairs, balance=0.5, random_state=seed)
            model = FeedbackNaiveBayes(int(y.max()) + 1, random_state=seed)
            for word, step, given in (("none", 1.0, None), ("start", 0.0, known), ("feedback", 1.0, known)):
                seconds = _seconds(model.set_params(step=step).fit, X, constraints=given, clock=time.process_time)
                scores[word].append(normalized_mutual_info_score(y, model.labels_))
        rows.append(
            {"data": name, "n_rows": X.shape[0], "n_words": X.shape[1], "n_clusters": model.n_clusters,
             "n_pairs": n_pairs, "n_draws": n_draws, **{word: mean(found) for word, found in scores.items()},
             "seconds": seconds, "scores": scores}
        )  # fmt: skip
    columns = {
        "data": "data", "n_rows": "rows", "n_words": "words", "n_clusters": "clusters", "n_pairs": "pairs",
        "n_draws": "draws", "none": "without", "start": "weights of 1", "feedback": "with feedback",
        "seconds": "CPU, s",
    }  # fmt: skip
    notes = [
        "NMI of `FeedbackNaiveBayes` without pairs, with pairs that only help to start, and with pairs that move word "
        "weights too: means over draws of right pairs, half of them must-links. Processor seconds of the last fit."
    ]
    return Report("words", title, columns, rows, notes)


def word_counts(data: Any, name: str) -> tuple[Any, Any]:
    """Counts of the words that are neither rare nor in every second text, and the class of each text."""
    texts, y = data.load(name)
    return CountVectorizer(stop_words="english", min_df=3, max_df=0.5).fit_transform(texts), y


def error(y: Any, labels: Any) -> float:
    """Share of rows outside the class of their cluster, for the best one-to-one match of clusters and classes."""
    table = np.zeros((labels.max() + 1, y.max() + 1))
    np.add.at(table, (labels, y), 1)
    return 1 - float(table[linear_sum_assignment(-table)].sum()) / len(y)


def fitted(X: Any, pairs: Any, confidence: Any, n_clusters: int, kind: str, *, n_init: int = 10) -> dict[str, Any]:
    """The mixture without knowledge, with soft and with hard must-links."""
    options = {"covariance_type": kind, "n_init": n_init, "random_state": 0, "max_iter": 1000}
    n_rows = len(X)
    return {
        "none": SoftGroupMixture(n_clusters, **options).fit(X),
        "soft": SoftGroupMixture(n_clusters, **options).fit(
            X, constraints=Constraints(pairs, must_link_confidence=confidence, n_samples=n_rows)
        ),
        "hard": ConstrainedGaussianMixture(n_clusters, **options).fit(
            X, constraints=Constraints(pairs, n_samples=n_rows)
        ),
    }


def four_gaussians(seed: int) -> tuple[Any, Any, Any, Any]:
    """Section 3.1: rows, the side of each, and noisy pairs of one side with their strengths."""
    rng = np.random.default_rng(seed)
    centers = np.array([[1.5, 2.5], [-1.5, 2.5], [-1.5, -2.5], [1.5, -2.5]])
    blob = np.repeat([0, 1, 2, 3], 200)
    X = centers[blob] + rng.normal(size=(800, 2))
    pairs, strengths = [], []
    for anchor in rng.choice(800, 50, replace=False):
        for partner in rng.choice(np.flatnonzero(blob == 3 - blob[anchor]), 7, replace=False):
            if rng.random() < 0.05:
                continue
            strength = rng.uniform(0.6, 1)
            other = rng.integers(800) if rng.random() < 1 - strength else partner
            if other != anchor:
                pairs.append((anchor, other))
                strengths.append(strength)
    return X, np.isin(blob, [0, 3]).astype(int), np.array(pairs), np.array(strengths)


def ambiguous_pairs(X: Any, y: Any, n_pairs: int, rng: Any) -> tuple[Any, Any]:
    """Section 3.2: the rows whose class is least clear, each paired with a row near the centre of its class.

    A pair has a strength drawn from [0.6, 1], and joins a random row instead with one minus that probability.
    """
    classes = np.unique(y)
    densities = np.column_stack([
        GaussianMixture(1, reg_covar=1e-2).fit(X[y == one]).score_samples(X) + np.log((y == one).mean())
        for one in classes
    ])  # fmt: skip
    own = densities[np.arange(len(y)), y]
    clear = own - np.logaddexp.reduce(densities, axis=1)
    pairs, strengths = [], []
    for row in np.argsort(clear)[:n_pairs]:
        members = np.flatnonzero(y == y[row])
        near = members[np.argsort(-densities[members, y[row]])[:5]]
        strength = rng.uniform(0.6, 1)
        partner = rng.integers(len(y)) if rng.random() < 1 - strength else rng.choice(near[near != row])
        if partner != row:
            pairs.append((row, partner))
            strengths.append(strength)
    return np.array(pairs), np.array(strengths)


def halves(name: str, n_repeats: int) -> dict[str, list[float]]:
    """Errors on the test half, by kind of knowledge."""
    X, y = (load_iris if name == "Iris" else load_wine)(return_X_y=True)
    if name == "Wine":
        X = StandardScaler().fit_transform(X)
    return on_halves(X, y, 3, "full" if name == "Iris" else "diag", range(n_repeats))


def on_halves(X: Any, y: Any, n_clusters: int, kind: str, seeds: Any) -> dict[str, list[float]]:
    """Errors on the test half for each seed, by kind of knowledge (section 3.2)."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        pairs, strengths = ambiguous_pairs(X[train], y[train], round(0.05 * len(y)), rng)
        for word, model in fitted(X[train], pairs, strengths, n_clusters, kind).items():
            found.setdefault(word, []).append(error(y[test], model.predict(X[test])))
    return found


def drawn(number: int) -> tuple[Any, Any, int]:
    """One of ten tables for the protocol of section 3.2."""
    return _overlapping(np.random.default_rng([32, number]))


def table(number: int) -> tuple[Any, Any, Any, Any, int]:
    """One of ten tables with random pairs, of which 10, 20 or 30 % are wrong."""
    rng = np.random.default_rng([22, number])
    X, y, n_clusters = _overlapping(rng)
    wrong = (0.1, 0.2, 0.3)[number % 3]
    pairs = []
    while len(pairs) < 60:
        one, two = rng.integers(len(y), size=2)
        if one != two and (y[one] == y[two]) == (rng.random() >= wrong):
            pairs.append((one, two))
    return X, y, np.array(pairs), np.full(60, 1 - wrong), n_clusters


def _overlapping(rng: Any) -> tuple[Any, Any, int]:
    """Two to five Gaussian clusters that overlap and differ in size, with two to seven columns."""
    n_clusters, n_columns = int(rng.integers(2, 6)), int(rng.integers(2, 8))
    sizes = rng.multinomial(300, rng.dirichlet(np.full(n_clusters, 3.0))) + 20
    y = np.repeat(np.arange(n_clusters), sizes)
    centers = rng.normal(size=(n_clusters, n_columns)) * rng.uniform(1.0, 2.5)
    X = centers[y] + rng.normal(size=(len(y), n_columns)) * rng.uniform(0.5, 1.5, size=(n_clusters, n_columns))[y]
    return X, y, n_clusters


def ratio(n_rows: int, n_repeats: int) -> float:
    """Time of one more round over that of scikit-learn's GaussianMixture: medians of differences."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(n_rows, 16)), rng.integers(10, size=n_rows)
    rows = rng.permutation(n_rows)[: n_rows // 100].reshape(-1, 2)
    same = y[rows[:, 0]] == y[rows[:, 1]]
    known = Constraints(rows[same], rows[~same], n_samples=n_rows)
    init = X[:10]
    ratios = []
    for _ in range(n_repeats):
        seconds = []
        for rounds in (5, 25):
            theirs = GaussianMixture(10, covariance_type="diag", means_init=init, init_params="random_from_data",
                                     max_iter=rounds, tol=0, random_state=0)  # fmt: skip
            ours = ConstrainedGaussianMixture(10, covariance_type="diag", init=init, max_iter=rounds, tol=0)
            seconds.append([_seconds(theirs.fit, X), _seconds(ours.fit, X, constraints=known)])
        (few_theirs, few_ours), (many_theirs, many_ours) = seconds
        ratios.append((many_ours - few_ours) / (many_theirs - few_theirs))
    return median(ratios)


def _seconds(call: Any, *args: Any, clock: Callable[[], float] = time.perf_counter, **kwargs: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = clock()
        call(*args, **kwargs)
        return clock() - start
