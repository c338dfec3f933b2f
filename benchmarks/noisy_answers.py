"""How clusters fare if some answers are wrong: mean ARI of `Auto` by the number of answers and the share of wrong ones.

`python -m benchmarks noisy-answers`. Each finished cell (a set, a seed, an error rate, who answers) is kept in
noisy-answers.csv and is not computed again, so that a run can be stopped and continued. After Ctrl-C, the table has the
seeds that are finished.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks._harness import RESULTS, Report
from benchmarks.questions import data, efficiency, say
from clew.active import Auto, Oracle, Questions
from clew.evaluation import adjusted_rand_score

SETS = ("iris", "wine", "seeds", "breast_cancer", "digits")
RATES, N_SEEDS = (0.05, 0.1, 0.2), 5
BUDGETS = (25, 50, 100, 200, 400)
# Right answers are scored at more budgets, to find the number of right answers that is worth as much.
RIGHT_BUDGETS = (5, 10, 15, 20, 25, 35, 50, 75, 100, 150, 200, 400)
# Goals: the least mean ARI at 100, 200 and 400 answers, the largest fall from one budget to the next, and how far three
# people may be below three people whose rates are known, at 100, 200 and 400 answers.
GOALS = {0.1: (0.93, 0.96, 0.98), 0.2: (0.82, 0.88, 0.93)}
MOST_FALL, MOST_BELOW_KNOWN = 0.01, 0.02
# Who answers: one person, whose error rate is told to `Questions` or not, or three people, whose rates are estimated,
# or known for comparison.
TOLD, NOT_TOLD, PEOPLE, KNOWN_PEOPLE = "told", "not told", "three people", "three people, rates known"
PERSON_RATES = (0.02, 0.2, 0.3)
MEAN_RATE = round(sum(PERSON_RATES) / len(PERSON_RATES), 4)


class Cell(NamedTuple):
    """One simulated run: the error rate 0 stands for right answers."""

    name: str
    seed: int
    rate: float
    who: str

    @property
    def budgets(self) -> tuple[int, ...]:
        return BUDGETS if self.rate else RIGHT_BUDGETS


def run(*, quick: bool) -> Report:
    """Fill the missing cells, then the table: a line for each error rate, told and not told, and for three people."""
    sets, seeds = (SETS[:1], range(1)) if quick else (SETS, range(N_SEEDS))
    rates = RATES[1:2] if quick else RATES
    people = [(MEAN_RATE, PEOPLE), (MEAN_RATE, KNOWN_PEOPLE)]
    kinds = [(0.0, NOT_TOLD), *product(rates, (NOT_TOLD,)), *people, *product(rates, (TOLD,))]
    cells = [Cell(name, seed, *kind) for kind in kinds for seed in seeds for name in sets]
    path = RESULTS / f"noisy-answers{'-quick' if quick else ''}.csv"
    if quick:
        path.unlink(missing_ok=True)
    try:
        fill(path, cells)
    except KeyboardInterrupt:
        say("Stopped. The table has the seeds that are finished; the same command continues.")
    return summary(read(path), kinds, seeds, sets)


def fill(path: Path, cells: Sequence[Cell]) -> None:
    """Compute the cells that the file does not have, and add a line for each budget."""
    for cell in cells:
        if cell in read(path):
            continue
        started = time.process_time()
        found = list(scores(cell))
        seconds = time.process_time() - started
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [[*cell, budget, f"{ari:.6f}", f"{seconds:.1f}"] for budget, ari in found]
        with path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
        values = ", ".join(f"{ari:.3f}" for _, ari in found)
        say(f"{cell.name} seed {cell.seed}, {cell.rate:.0%} wrong, {cell.who}: {values} in {seconds:.0f} s")


def read(path: Path) -> dict[Cell, NDArray[np.float64]]:
    """ARI at each budget, by cell. A cell that a killed run left incomplete is missing."""
    found: dict[Cell, list[float]] = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for line in csv.reader(file):
                if len(line) == 7:
                    cell = Cell(line[0], int(line[1]), float(line[2]), line[3])
                    found.setdefault(cell, []).append(float(line[5]))
    return {cell: np.array(values) for cell, values in found.items() if len(values) == len(cell.budgets)}


def scores(cell: Cell) -> Iterator[tuple[int, float]]:
    """Budgets with the ARI after so many answers; after the last question the last ARI is carried on."""
    X, y = data(cell.name)
    questions = Questions(
        X,
        Auto(random_state=cell.seed),
        n_clusters=len(np.unique(y)),
        random_state=cell.seed,
        error_rate=None if cell.who == NOT_TOLD else cell.rate,
    )
    rates = PERSON_RATES if cell.who in (PEOPLE, KNOWN_PEOPLE) else (cell.rate,)
    people = [
        Oracle(y, noise=rate, random_state=np.random.default_rng([cell.seed, who])) for who, rate in enumerate(rates)
    ]
    known = {who: (rate, rate) for who, rate in enumerate(rates)}
    with ExitStack() as stack:
        if cell.who == KNOWN_PEOPLE:
            estimate = "clew.active._posterior.estimate_rates"
            stack.enter_context(mock.patch(estimate, return_value=known))
        for budget in cell.budgets:
            while len(questions.answers) < budget and (question := questions.ask()) is not None:
                who = len(questions.answers) % len(people)
                questions.tell(question, people[who](question), annotator=f"person {who}")
            yield budget, adjusted_rand_score(y, questions.labels())


def summary(
    found: dict[Cell, NDArray[np.float64]],
    kinds: Sequence[tuple[float, str]],
    seeds: Sequence[int],
    sets: Sequence[str],
) -> Report:
    """Mean ARI over sets and finished seeds at each budget, the largest fall between budgets, and the efficiency."""
    rows = []
    right: NDArray[np.float64] | None = None
    done = {kind: [s for s in seeds if all(Cell(n, s, *kind) in found for n in sets)] for kind in kinds}

    def mean_of(kind: tuple[float, str], some: Sequence[int]) -> NDArray[np.float64]:
        return np.mean([found[Cell(name, seed, *kind)] for seed in some for name in sets], axis=0)

    for rate, who in (kind for kind in kinds if done[kind]):
        mean = mean_of((rate, who), done[rate, who])
        if not rate:
            right = mean
            mean = mean[[RIGHT_BUDGETS.index(budget) for budget in BUDGETS]]
        row = {"wrong": f"{rate:.0%}", "who": who if rate else "-", "seeds": str(len(done[rate, who]))}
        row |= {f"ari_{budget}": f"{ari:.3f}" for budget, ari in zip(BUDGETS, mean, strict=True)}
        row["fall"] = f"{max(float((mean[:-1] - mean[1:]).max()), 0):.3f}"
        goals = GOALS.get(rate)
        is_met = goals is None or (np.all(mean[2:] >= goals) and float(row["fall"]) <= MOST_FALL)
        both = [seed for seed in done[rate, who] if seed in done.get((rate, KNOWN_PEOPLE), ())]
        if who == PEOPLE and both:
            goals = mean_of((rate, KNOWN_PEOPLE), both)[2:] - MOST_BELOW_KNOWN
            is_met = np.all(mean_of((rate, who), both)[2:] >= goals)
        row["goal"] = "-" if goals is None else "met" if is_met else "missed"
        row["efficiency"] = (
            "-"
            if right is None
            else " / ".join(
                f"{efficiency(ari, budget, rate, right, RIGHT_BUDGETS):.2f}"
                for budget, ari in zip(BUDGETS, mean, strict=True)
            )
        )
        rows.append(row)
    columns = {
        "wrong": "wrong", "who": "rate", "seeds": "seeds", **{f"ari_{budget}": str(budget) for budget in BUDGETS},
        "fall": "largest fall", "goal": "goals", "efficiency": "efficiency",
    }  # fmt: skip
    notes = [
        f"Mean ARI of `Auto` over {', '.join(sets)} and the seeds, after {BUDGETS[0]} to {BUDGETS[-1]}",
        "answers; the number of classes is known. Told: `error_rate=` is the share of wrong answers. Largest fall:",
        "of the mean, from one number of answers to the next. Efficiency at n answers: the number of right answers",
        "that reach the same mean ARI, divided by n (1 - H(p)), where H(p) is the entropy of an answer's correctness.",
        f"Three people give a third of the answers each; {', '.join(f'{rate:.0%}' for rate in PERSON_RATES)} of theirs",
        "are wrong. Goals: "
        f"{'; '.join(f'{p:.0%} wrong {g[0]} / {g[1]} / {g[2]}' for p, g in GOALS.items())} at 100 / 200 / 400,",
        f"and no fall beyond {MOST_FALL}. Three people: at most {MOST_BELOW_KNOWN} below known rates.",
    ]
    return Report("noisy-answers", "ARI if answers are wrong", columns, rows, notes)
