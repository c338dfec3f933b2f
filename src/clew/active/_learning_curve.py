"""How good the clusters get with the number of questions: simulated runs of a strategy against known classes.

The held-out protocol is that of Basu, Banerjee and Mooney 2004 (`basu2004`), section 5.3.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import KFold

from clew._base import ConstrainedClusterer
from clew._validation import check_matrix
from clew.active._oracle import Oracle
from clew.active._questions import Questions, Strategy, run
from clew.constraints import Constraints
from clew.evaluation import (
    adjusted_rand_score,
    matching_accuracy,
    normalized_mutual_info,
    pairwise_scores,
    rand_score,
)
from clew.exceptions import DataError, MissingExtraError, ParameterError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_N_FOLDS = 10

_SCORES: dict[str, Callable[[Any, Any], float]] = {
    "ari": adjusted_rand_score,
    "nmi": normalized_mutual_info,
    "pairwise_f": lambda labels_true, labels_pred: pairwise_scores(labels_true, labels_pred).f,
    "rand": rand_score,
    "accuracy": matching_accuracy,
}
_NAMES = {"ari": "ARI", "nmi": "NMI", "pairwise_f": "pairwise F", "rand": "Rand", "accuracy": "accuracy"}
_USUAL_SCORES = {"all": ("ari",), "basu2004": ("nmi", "pairwise_f")}


@dataclass(frozen=True)
class LearningCurve:
    """Scores of one strategy at some numbers of questions; see `learning_curve`.

    Attributes
    ----------
    strategy : str
        Its class.
    protocol : str
    budgets : tuple of ints
        Numbers of questions.
    seeds : tuple of ints
    scores : dict
        Name of a score → array of shape (n_budgets, n_seeds); the first one is what `table`, `mean` and `area` show.
    asked : ndarray of shape (n_budgets, n_seeds)
        Questions answered; fewer than the budget where the strategy had nothing left to ask. With folds, their mean.
    """

    strategy: str
    protocol: str
    budgets: tuple[int, ...]
    seeds: tuple[int, ...]
    scores: dict[str, FloatArray]
    asked: FloatArray

    @property
    def table(self) -> FloatArray:
        """The first score: a row for each budget, a column for each seed."""
        return next(iter(self.scores.values()))

    @property
    def mean(self) -> FloatArray:
        """The first score at each budget, its mean over the seeds."""
        return self.table.mean(axis=1)

    @property
    def area(self) -> float:
        """Area under `mean` over the logarithm of the number of questions, divided by its width."""
        width = np.log(self.budgets)
        if len(width) == 1:
            return float(self.mean[0])
        return float(np.sum(np.diff(width) * (self.mean[1:] + self.mean[:-1]) / 2) / (width[-1] - width[0]))

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each budget and seed, ready for a data frame."""
        return [
            {
                "strategy": self.strategy,
                "questions": budget,
                "seed": seed,
                "asked": float(self.asked[place, column]),
                **{name: float(values[place, column]) for name, values in self.scores.items()},
            }
            for place, budget in enumerate(self.budgets)
            for column, seed in enumerate(self.seeds)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and lists, ready for JSON."""
        return {
            "strategy": self.strategy,
            "protocol": self.protocol,
            "budgets": list(self.budgets),
            "seeds": list(self.seeds),
            "scores": {name: values.tolist() for name, values in self.scores.items()},
            "asked": self.asked.tolist(),
            "mean": self.mean.tolist(),
            "area": self.area,
        }

    def plot(self, ax: Any = None, *, score: str | None = None) -> Any:
        """Draw the mean over the seeds and a band from the worst to the best seed.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw, for several curves in one picture; a new figure unless given.
        score : str, optional
            Which one, the first unless given.

        Returns
        -------
        matplotlib figure
            Not shown.

        Raises
        ------
        MissingExtraError
            matplotlib is not installed.
        """
        name = next(iter(self.scores)) if score is None else score
        if name not in self.scores:
            raise ParameterError(f"score={score!r}: this curve has {', '.join(self.scores)}.")
        axes = _new_axes() if ax is None else ax
        values = self.scores[name]
        (line,) = axes.plot(self.budgets, values.mean(axis=1), marker="o", label=self.strategy)
        if len(self.seeds) > 1:
            band = values.min(axis=1), values.max(axis=1)
            axes.fill_between(self.budgets, *band, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set_xscale("log")
        axes.set_xticks(self.budgets, [str(budget) for budget in self.budgets])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("questions")
        axes.set_ylabel(_NAMES[name])
        axes.legend(frameon=False)
        return axes.get_figure()


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("The plot needs matplotlib: pip install 'clew[plot]'.") from error
    return Figure(figsize=(6, 4), layout="constrained").subplots()


def learning_curve(
    X: Any,
    y: Any,
    strategy: Strategy | Callable[[], Strategy],
    *,
    n_clusters: int | None = None,
    clusterer: ConstrainedClusterer | None = None,
    budgets: Sequence[int] = (10, 25, 50, 100, 200),
    protocol: str = "all",
    noise: float = 0.0,
    unsure: float = 0.0,
    seeds: Iterable[int] = range(5),
    scores: Sequence[str] | None = None,
) -> LearningCurve:
    """Ask a simulated person who knows the classes, and score the clusters along the way.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        True classes; rows with -1 have none: questions about them are answered "unsure", and they are not scored.
    strategy : Strategy, or a class or function without arguments that makes one
        For example ``ExploreConsolidate`` or ``ExploreConsolidate(consolidate=False)``.
    n_clusters : int, optional
        Number of clusters, where the strategy and the clusterer may know it.
    clusterer : estimator, optional
        Makes the clusters from what is known, as in `Questions`; where its `random_state` is None, the seed is used.
    budgets : sequence of ints, default=(10, 25, 50, 100, 200)
        Numbers of questions at which to score, rising. Where questions run out, the last value is carried on.
    protocol : {"all", "basu2004"}, default="all"
        "all" asks about all rows and scores all rows. "basu2004" sets each tenth of the rows aside in turn, asks about
        the others only, clusters all rows, scores the tenth that was set aside, and averages over the ten.
    noise, unsure : float, default=0.0
        Probability of a wrong answer, and of "don't know"; see `Oracle`.
    seeds : iterable of ints, default=range(5)
        One run each; same seed, same run.
    scores : sequence of {"ari", "nmi", "pairwise_f", "rand", "accuracy"}, optional
        "ari" for "all" and "nmi", "pairwise_f" for "basu2004" unless given.

    Returns
    -------
    LearningCurve

    Notes
    -----
    Folds are drawn anew for each seed; the paper has one set of ten. Guesses of the strategy count as in
    `Questions.labels`. With "basu2004" the clusterer always makes the clusters, also where a strategy has clusters of
    its own, since those know nothing of the rows set aside.

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2004). "Active semi-supervision for pairwise constrained clustering."
       SDM. Section 5.3.

    Examples
    --------
    >>> from clew.active import ExploreConsolidate, learning_curve
    >>> from clew.datasets import load_iris
    >>> iris = load_iris()
    >>> curve = learning_curve(
    ...     iris.X, iris.y, ExploreConsolidate, n_clusters=3, budgets=(10, 100), seeds=range(2)
    ... )
    >>> curve.table.shape
    (2, 2)
    >>> bool(curve.mean[1] > curve.mean[0])
    True
    """
    asker = _strategy(strategy)
    steps, runs = _budgets(budgets), _seeds(seeds)
    if protocol not in _USUAL_SCORES:
        raise ParameterError(f"protocol={protocol!r}: expected {' or '.join(map(repr, _USUAL_SCORES))}.")
    names = _score_names(_USUAL_SCORES[protocol] if scores is None else scores)
    rows, classes = check_matrix(X), _classes(y)
    if rows.shape[0] != classes.size:
        raise DataError(f"X has {rows.shape[0]} rows and y {classes.size} classes: expected one class per row.")
    if protocol == "basu2004" and classes.size < _N_FOLDS:
        raise DataError(f"X has {classes.size} rows: protocol='basu2004' needs at least {_N_FOLDS}.")
    simulation = _Simulation(rows, classes, asker, n_clusters, clusterer, noise, unsure, steps, names)
    one_seed = simulation.on_all_rows if protocol == "all" else simulation.held_out
    # Seeds x budgets x (questions answered, scores in order).
    found = np.array([one_seed(seed) for seed in runs])
    values = {name: found[:, :, place].T for place, name in enumerate(names, start=1)}
    return LearningCurve(_name(asker), protocol, steps, runs, values, found[:, :, 0].T)


@dataclass(frozen=True)
class _Simulation:
    """What the runs of all seeds share."""

    X: Any
    y: npt.NDArray[Any]
    strategy: Strategy
    n_clusters: int | None
    clusterer: ConstrainedClusterer | None
    noise: float
    unsure: float
    budgets: tuple[int, ...]
    scores: tuple[str, ...]

    def on_all_rows(self, seed: int) -> list[list[float]]:
        """Ask about all rows, score all rows."""
        questions = self._questions(self.X, seed)
        return list(self._along(questions, self._oracle(self.y, seed), questions.labels, _rows_with_class(self.y)))

    def held_out(self, seed: int) -> FloatArray:
        """Basu 2004, section 5.3: constraints from nine tenths of the rows, scores on the tenth; the mean of ten."""
        folds = KFold(_N_FOLDS, shuffle=True, random_state=seed).split(self.y)
        scored = ((train, test[np.isin(test, _rows_with_class(self.y))]) for train, test in folds)
        return np.mean([self._fold(train, test, seed) for train, test in scored if test.size], axis=0)

    def _fold(self, train: IntArray, test: IntArray, seed: int) -> list[list[float]]:
        questions = self._questions(self.X[train], seed)

        def labels() -> npt.NDArray[Any]:
            known = lifted(questions.constraints | questions.guesses, train, self.y.size)
            return np.asarray(questions._model(questions.view).fit(self.X, constraints=known).labels_)

        return list(self._along(questions, self._oracle(self.y[train], seed), labels, test))

    def _questions(self, X: Any, seed: int) -> Questions:
        model = None if self.clusterer is None else clone(self.clusterer)
        if model is not None and model.get_params().get("random_state", seed) is None:
            model.set_params(random_state=seed)
        return Questions(X, self.strategy, self.n_clusters, model, random_state=seed)

    def _oracle(self, y: npt.NDArray[Any], seed: int) -> Oracle:
        return Oracle(y, noise=self.noise, unsure=self.unsure, random_state=seed)

    def _along(
        self, questions: Questions, oracle: Oracle, labels: Callable[[], npt.NDArray[Any]], scored: IntArray
    ) -> Iterator[list[float]]:
        """Questions answered and scores, at each budget."""
        result: list[float] = []
        for budget in self.budgets:
            n_more = run(questions, oracle, budget - len(questions.answers))
            if n_more or not result:
                found = labels()[scored]
                result = [_SCORES[name](self.y[scored], found) for name in self.scores]
            yield [len(questions.answers), *result]


def lifted(pairs: Constraints, rows: IntArray, n_samples: int) -> Constraints:
    """Pairs among some rows as pairs among all rows: row i of `pairs` is row ``rows[i]``."""
    return Constraints(
        rows[pairs.must_link],
        rows[pairs.cannot_link],
        must_link_confidence=pairs.must_link_confidence,
        cannot_link_confidence=pairs.cannot_link_confidence,
        n_samples=n_samples,
    )


def _strategy(given: Any) -> Strategy:
    """The strategy itself, made where a factory was given: something that can be called without arguments."""
    if not callable(given):
        raise ParameterError(f"strategy={given!r}: expected a query strategy such as ExploreConsolidate().")
    try:
        inspect.signature(given).bind()
    except TypeError:
        if isinstance(given, type):
            raise ParameterError(f"{given.__name__} needs arguments. Pass an instance, {given.__name__}(…).") from None
        return given
    made = given()
    if not callable(made):
        raise ParameterError(f"strategy={given!r} makes {made!r}: expected it to make a query strategy.")
    return made


def _name(strategy: Any) -> str:
    return getattr(strategy, "__name__", type(strategy).__name__)


def _budgets(given: Sequence[int]) -> tuple[int, ...]:
    found = tuple(given)
    if (
        not found
        or not all(_is_integer(one) and one >= 1 for one in found)
        or any(second <= first for first, second in pairwise(found))
    ):
        raise ParameterError(f"budgets={given!r}: expected rising integers >= 1, such as (10, 25, 50).")
    return tuple(int(one) for one in found)


def _seeds(given: Iterable[int]) -> tuple[int, ...]:
    found = tuple(given)
    if not found or not all(_is_integer(one) and one >= 0 for one in found):
        raise ParameterError(f"seeds={given!r}: expected integers >= 0, such as range(5).")
    return tuple(int(one) for one in found)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _score_names(given: Sequence[str]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    unknown = [name for name in names if name not in _SCORES]
    if unknown or not names:
        raise ParameterError(f"scores={given!r}: expected some of {', '.join(_SCORES)}.")
    return names


def _classes(y: Any) -> npt.NDArray[Any]:
    classes = np.asarray(y)
    if classes.ndim != 1:
        raise DataError(f"y has shape {classes.shape}: expected one class per row (1-D).")
    if not _rows_with_class(classes).size:
        raise DataError("y names no class: there is nothing to score. Give the true class of at least one row.")
    return classes


def _rows_with_class(classes: npt.NDArray[Any]) -> IntArray:
    return np.flatnonzero(classes != -1) if classes.dtype.kind in "iuf" else np.arange(classes.size)
