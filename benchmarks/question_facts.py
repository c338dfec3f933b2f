"""What the papers say of questions, printed beside what happens here.

`python -m benchmarks.question_facts [--quick] [--publish]`

Basu 2004, Figures 4 to 12: NMI of PCKMeans with one start (as there), documents as TF-IDF rows by cosines, on all rows
and on rows set aside. Vu 2012, Figures 5 to 7: Rand index at small numbers of questions, and constraints per question.
The survey, section 4: how many guesses of a committee are right.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from benchmarks._harness import RESULTS, Report, environment, publish
from benchmarks.questions import published
from clew import MPCKMeans, PCKMeans
from clew.active import SAME, AbilityToSeparate, Committee, ExploreConsolidate, MinMax, Oracle, Questions, RandomPairs
from clew.active._learning_curve import learning_curve
from clew.active._questions import run

DOCUMENTS = ("news_sim3", "news_diff3", "news_all20", "classic3")
CLASSIC_SIZES = (200, 100, 100)  # Cisi, Cranfield and Medline as in Basu 2004, section 5.1
VU_SETS = ("iris", "soybean_small", "glass", "breast_wdbc", "image_segmentation")
# The paper sets the number of neighbours by experiment for each set; ours is the default but for the largest.
VU_NEIGHBOURS = {"image_segmentation": 20}
VU_BUDGETS = (2, 5, 10, 20, 50)


def rows(*, quick: bool) -> Iterator[dict[str, Any]]:
    yield from active_beats_random(quick=quick)
    yield from consolidating_beats_exploring(quick=quick)
    yield from weights(quick=quick)
    yield from separating_beats_min_max(quick=quick)
    yield from separating_with_a_metric(quick=quick)
    yield from propagation(quick=quick)
    yield from guesses(quick=quick)


# -- Basu 2004 -------------------------------------------------------------------------------------------------------


@cache
def data(name: str) -> tuple[Any, Any]:
    """Numbers as they are; documents as TF-IDF rows; of classic3 the 400 documents of the paper's sizes."""
    X, y = published(name)
    if name not in DOCUMENTS:
        return X, y
    if name == "classic3":
        rng = np.random.default_rng(0)
        drawn = [rng.choice(np.flatnonzero(y == place), size, False) for place, size in enumerate(CLASSIC_SIZES)]
        kept = np.sort(np.concatenate(drawn))
        X, y = [X[row] for row in kept], y[kept]
    return TfidfVectorizer(stop_words="english", min_df=3, max_features=16_000).fit_transform(X), y


def nmi(name: str, strategy: Any, *, penalty: Any = "auto", **settings: Any) -> Any:
    X, y = data(name)
    if name in DOCUMENTS:
        model = PCKMeans(metric="cosine", penalty=penalty, n_init=1)
    else:
        model = PCKMeans(penalty=2.0 if penalty == "auto" else penalty, n_init=1)  # the paper's w = 1
    return learning_curve(X, y, strategy, n_clusters=len(np.unique(y)), clusterer=model, scores=["NMI"], **settings)


def active_beats_random(*, quick: bool) -> Iterator[dict[str, Any]]:
    sets = ("iris",) if quick else ("iris", *DOCUMENTS)
    for name in sets:
        budgets = (10, 25) if quick else (100, 250, 500, 1000) if name == "news_all20" else (25, 50, 100, 200)
        seeds = range(1) if quick else range(2) if name == "news_all20" else range(5)
        for protocol, where in (("all", "all rows"), ("basu2004", "set aside")):
            if name == "news_all20" and protocol == "basu2004":
                seeds = range(1)
            settings = {"budgets": budgets, "seeds": seeds, "protocol": protocol}
            active, chance = nmi(name, ExploreConsolidate(), **settings), nmi(name, RandomPairs(), **settings)
            yield compared(
                "Basu Fig. 4-10: active above random", f"{name}, {where}", "NMI", "active", active, "random", chance
            )


def consolidating_beats_exploring(*, quick: bool) -> Iterator[dict[str, Any]]:
    for name in ("iris",) if quick else ("news_diff3", "news_sim3"):
        budgets, seeds = ((10, 25), range(1)) if quick else ((25, 50, 100, 200), range(10))
        settings = {"budgets": budgets, "seeds": seeds, "protocol": "basu2004"}
        both = nmi(name, ExploreConsolidate(), **settings)
        explore = nmi(name, ExploreConsolidate(consolidate=False), **settings)
        yield compared(
            "Basu Fig. 12: consolidating above exploring only", f"{name}, set aside", "NMI", "both", both, "explore",
            explore,
        )  # fmt: skip


def weights(*, quick: bool) -> Iterator[dict[str, Any]]:
    for name in ("iris",) if quick else ("iris", "news_sim3"):
        budgets, seeds = ((10, 25), range(1)) if quick else ((25, 50, 100, 200), range(5))
        settings = {"budgets": budgets, "seeds": seeds, "protocol": "basu2004"}
        usual = nmi(name, ExploreConsolidate(), **settings)
        for word, penalty in (("seeds only", 0.0), ("hard", 1e6)):
            other = nmi(name, ExploreConsolidate(), penalty=penalty, **settings)
            yield compared(
                "Basu 5.4: the weight matters little", f"{name}, set aside", "NMI", "usual", usual, word, other
            ) | {"holds": f"{abs(usual.area - other.area):.3f} apart"}


# -- Vu 2012 ---------------------------------------------------------------------------------------------------------


def separating_with_a_metric(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Section 4.4: the Rand index of MPC-KMeans after a few questions."""
    for name, n_questions, told in (("iris", 10, 0.957), ("soybean_small", 2, 1.0)):
        X, y = published(name)
        for word, model in (("shared metric", MPCKMeans()), ("metric for each", MPCKMeans(shared=False))):
            curve = learning_curve(
                X, y, AbilityToSeparate(), n_clusters=len(np.unique(y)), clusterer=model, scores=["rand"],
                budgets=(n_questions,), seeds=range(1 if quick else 10),
            )  # fmt: skip
            found = float(curve.mean[-1])
            yield {
                "fact": "Vu 4.4: ASC with MPC-KMeans",
                "where": f"{name}, {n_questions} questions, {word}",
                "figures": f"Rand {found:.3f}, published {told:.3f}",
                "holds": said(abs(found - told) <= 0.03),
            }


def separating_beats_min_max(*, quick: bool) -> Iterator[dict[str, Any]]:
    for name in VU_SETS[:1] if quick else VU_SETS:
        X, y = published(name)
        settings: dict[str, Any] = {
            "n_clusters": len(np.unique(y)), "budgets": VU_BUDGETS[:3] if quick else VU_BUDGETS,
            "seeds": range(1 if quick else 5), "scores": ["rand"],
        }  # fmt: skip
        asc = learning_curve(X, y, separating(name), **settings)
        min_max = learning_curve(X, y, MinMax(), **settings)
        yield compared("Vu Fig. 5-6: ASC above min-max at few questions", name, "Rand", "ASC", asc, "min-max", min_max)


def separating(name: str) -> AbilityToSeparate:
    return AbilityToSeparate(n_neighbors=VU_NEIGHBOURS.get(name))


def propagation(*, quick: bool) -> Iterator[dict[str, Any]]:
    for name in ("iris",) if quick else ("iris", "image_segmentation"):
        X, y = published(name)
        questions = Questions(X, separating(name), n_clusters=len(np.unique(y)), random_state=0)
        spent = run(questions, Oracle(y), 50)
        imputed = questions.view.imputed
        yield {
            "fact": "Vu Fig. 7: more constraints than questions",
            "where": name,
            "figures": f"{spent} questions, {len(imputed)} constraints propagated, {share_right(imputed, y):.1%} right",
            "holds": said(len(imputed) > spent),
        }


# -- the survey ------------------------------------------------------------------------------------------------------


def guesses(*, quick: bool) -> Iterator[dict[str, Any]]:
    for name in ("iris",) if quick else ("iris", "wine", "seeds", "breast_wdbc", "optical"):
        X, y = published(name)
        if name not in ("iris", "optical"):
            X = StandardScaler().fit_transform(X)
        questions = Questions(X, Committee(), n_clusters=len(np.unique(y)), random_state=0)
        run(questions, Oracle(y), 10)
        imputed = questions.view.imputed
        yield {
            "fact": "Survey 4: nine in ten guesses of the committee are right",
            "where": name,
            "figures": f"{len(imputed)} guesses, {share_right(imputed, y):.1%} right",
            "holds": said(share_right(imputed, y) >= 0.9),
        }


def share_right(imputed: Any, y: Any) -> float:
    return float(np.mean([(answer is SAME) == (y[one] == y[two]) for (one, two), (answer, _) in imputed.items()]))


# -- the table -------------------------------------------------------------------------------------------------------


def compared(fact: str, where: str, score: str, name: str, curve: Any, other_name: str, other: Any) -> dict[str, Any]:
    above = int((curve.mean > other.mean).sum())
    figures = "; ".join(
        f"{budget}: {a:.3f} / {b:.3f}" for budget, a, b in zip(curve.budgets, curve.mean, other.mean, strict=True)
    )
    return {
        "fact": fact,
        "where": where,
        "figures": f"{score} {name} / {other_name} at {figures}; area {curve.area:.3f} / {other.area:.3f}",
        "holds": f"{said(curve.area > other.area)}, above at {above} of {len(curve.budgets)}",
    }


def said(holds: bool) -> str:
    return "yes" if holds else "no"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.question_facts", description="What the papers say.")
    parser.add_argument("--quick", action="store_true", help="iris and one seed: shows that it runs")
    parser.add_argument("--publish", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in environment().items()), flush=True)
    found = []
    for row in rows(quick=options.quick):
        found.append(row)
        print(" | ".join(row.values()), flush=True)
    columns = {"fact": "fact", "where": "where", "figures": "figures", "holds": "holds"}
    report = Report("question-facts", "What the papers say of questions", columns, found)
    if options.publish:
        publish(report)
    print(f"\n{report.table()}\nwritten: {report.write(RESULTS, 'python -m benchmarks.question_facts')}")


if __name__ == "__main__":
    main()
