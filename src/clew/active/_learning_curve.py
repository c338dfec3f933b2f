"""Learning curves: scores of the clusters against the number of questions, from simulated runs with known classes.

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

from clew._base import ConstrainedClusterer, warn_caller
from clew._validation import check_matrix
from clew.active._oracle import Oracle
from clew.active._questions import Questions, run
from clew.active._strategy import Strategy
from clew.constraints import Constraints
from clew.evaluation import (
    adjusted_rand_score,
    matching_accuracy,
    normalized_mutual_info_score,
    pairwise_scores,
    rand_score,
)
from clew.exceptions import DataError, MissingExtraError, ParameterError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_N_FOLDS = 10

# Functions of the true classes, the clusters, and the answered pairs.
_SCORES: dict[str, Callable[[Any, Any, Constraints], float]] = {
    "ARI": lambda true, found, stated: adjusted_rand_score(true, found),
    "NMI": lambda true, found, stated: normalized_mutual_info_score(true, found),
    "pairwise F": lambda true, found, stated: pairwise_scores(true, found, stated).f,
    "Rand": lambda true, found, stated: rand_score(true, found),
    "accuracy": lambda true, found, stated: matching_accuracy(true, found),
}
_OLD_NAMES = {"ari": "ARI", "nmi": "NMI", "pairwise_f": "pairwise F", "rand": "Rand"}
_USUAL_SCORES = {"all": ("ARI",), "basu2004": ("NMI", "pairwise F")}


@dataclass(frozen=True)
class LearningCurve:
    """Scores of one strategy at several numbers of questions; see `learning_curve`.

    Attributes
    ----------
    strategy : str
        Name of the strategy's class.
    protocol : str
    budgets : tuple of ints
        Numbers of questions.
    seeds : tuple of ints
    scores : dict
        For each name of a score, as in `clew.evaluation.evaluate`, an array of shape (n_budgets, n_seeds). `values`,
        `mean` and `area` use the first score.
    asked : ndarray of shape (n_budgets, n_seeds)
        Number of questions answered, below the budget if the strategy had no question left. With folds: the mean.
    """

    strategy: str
    protocol: str
    budgets: tuple[int, ...]
    seeds: tuple[int, ...]
    scores: dict[str, FloatArray]
    asked: FloatArray

    @property
    def values(self) -> FloatArray:
        """The first score as an array: one row per budget, one column per seed."""
        return next(iter(self.scores.values()))

    @property
    def mean(self) -> FloatArray:
        """Mean of the first score over the seeds, at each budget."""
        return self.values.mean(axis=1)

    @property
    def area(self) -> float:
        """Area under `mean` over the logarithm of the number of questions, divided by its width."""
        width = np.log(self.budgets)
        if len(width) == 1:
            return float(self.mean[0])
        return float(np.sum(np.diff(width) * (self.mean[1:] + self.mean[:-1]) / 2) / (width[-1] - width[0]))

    def table(self) -> list[dict[str, Any]]:
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
            Axes to draw on, for several curves in one figure. Default: a new figure.
        score : str, optional
            Name of the score. Default: the first one.

        Returns
        -------
        matplotlib figure
            The figure. Call its `show` or `savefig` yourself.

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
        axes.set_ylabel(name)
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
    """Ask a simulated annotator who knows the classes, and score the clusters at each budget.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        True classes. Rows with -1 have no class: questions about them are answered "unsure", and they are not scored.
    strategy : Strategy, or a class or function without arguments that makes one
        For example ``ExploreConsolidate`` or ``ExploreConsolidate(consolidate=False)``.
    n_clusters : int, optional
        Number of clusters, if the strategy and the clusterer may use it.
    clusterer : estimator, optional
        Makes the clusters from the constraints, as in `Questions`. If its `random_state` is None, the seed is used.
    budgets : sequence of ints, default=(10, 25, 50, 100, 200)
        Numbers of questions at which to score, in rising order. If questions run out, the last score is repeated.
    protocol : {"all", "basu2004"}, default="all"
        "all" asks about all rows and scores all rows. "basu2004" is ten-fold cross-validation: it asks about the rows
        outside a fold only, clusters all rows, scores the fold, and averages over the ten folds.
    noise, unsure : float, default=0.0
        Probability of a wrong answer, and of "don't know"; see `Oracle`.
    seeds : iterable of ints, default=range(5)
        One run per seed. The same seed gives the same run.
    scores : sequence of {"ARI", "NMI", "pairwise F", "Rand", "accuracy"}, optional
        Default: "ARI" for the protocol "all", and "NMI", "pairwise F" for "basu2004". "pairwise F" leaves out the
        answered pairs (section 5.2 of [1]_). The other scores count all rows.

    Returns
    -------
    LearningCurve

    Notes
    -----
    Folds are drawn again for each seed, while the paper has one set of ten folds. Guesses of the strategy count as in
    `Questions.labels`. With "basu2004" the clusterer always makes the clusters, even if the strategy has its own
    clusterer, because the strategy does not see the held-out rows.

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2004). "Active semi-supervision for pairwise constrained clustering."
       SDM. Sections 5.2 and 5.3.

    Examples
    --------
    >>> from clew.active import ExploreConsolidate, learning_curve
    >>> from clew.datasets import load_iris
    >>> iris = load_iris()
    >>> curve = learning_curve(
    ...     iris.X, iris.y, ExploreConsolidate, n_clusters=3, budgets=(10, 100), seeds=range(2)
    ... )
    >>> curve.values.shape
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
    """Data and parameters shared by the runs of all seeds."""

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
        """Ask about all rows and score all rows."""
        questions, rows = self._questions(self.X, seed), np.arange(self.y.size)
        return list(self._along(questions, rows, questions.labels, _rows_with_class(self.y), seed))

    def held_out(self, seed: int) -> FloatArray:
        """Ten-fold cross-validation of Basu 2004, section 5.3: ask about nine folds, score the tenth, average."""
        folds = KFold(_N_FOLDS, shuffle=True, random_state=seed).split(self.y)
        scored = ((train, test[np.isin(test, _rows_with_class(self.y))]) for train, test in folds)
        return np.mean([self._fold(train, test, seed) for train, test in scored if test.size], axis=0)

    def _fold(self, train: IntArray, test: IntArray, seed: int) -> list[list[float]]:
        questions = self._questions(self.X[train], seed)

        def labels() -> npt.NDArray[Any]:
            known = lifted(questions.constraints | questions.guesses, train, self.y.size)
            return np.asarray(questions._model(questions.view).fit(self.X, constraints=known).labels_)

        return list(self._along(questions, train, labels, test, seed))

    def _questions(self, X: Any, seed: int) -> Questions:
        model = None if self.clusterer is None else clone(self.clusterer)
        if model is not None and model.get_params().get("random_state", seed) is None:
            model.set_params(random_state=seed)
        return Questions(X, self.strategy, self.n_clusters, model, random_state=seed)

    def _along(
        self, questions: Questions, asked: IntArray, labels: Callable[[], npt.NDArray[Any]], scored: IntArray, seed: int
    ) -> Iterator[list[float]]:
        """Ask about the rows `asked`. Returns the number of answers and the scores at each budget."""
        oracle = Oracle(self.y[asked], noise=self.noise, unsure=self.unsure, random_state=seed)
        result: list[float] = []
        for budget in self.budgets:
            n_more = run(questions, oracle, budget - len(questions.answers))
            if n_more or not result:
                found = labels()[scored]
                stated = lifted(questions.stated, asked, self.y.size).restrict(scored)
                result = [_SCORES[name](self.y[scored], found, stated) for name in self.scores]
            yield [len(questions.answers), *result]


def lifted(pairs: Constraints, rows: IntArray, n_samples: int) -> Constraints:
    """Renumber pairs of a subset of rows as pairs of all rows: row i of `pairs` is row ``rows[i]``."""
    return Constraints(
        rows[pairs.must_link],
        rows[pairs.cannot_link],
        must_link_confidence=pairs.must_link_confidence,
        cannot_link_confidence=pairs.cannot_link_confidence,
        n_samples=n_samples,
    )


def _strategy(given: Any) -> Strategy:
    """Return the given strategy, or call the given class or factory without arguments to make one."""
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
    for name in _OLD_NAMES.keys() & set(names):
        warn_caller(
            f"{name!r} is called {_OLD_NAMES[name]!r} now; version 0.2 refuses the old name.", DeprecationWarning
        )
    names = tuple(_OLD_NAMES.get(name, name) for name in names)
    unknown = [name for name in names if name not in _SCORES]
    if unknown or not names:
        raise ParameterError(f"scores={given!r}: expected some of {', '.join(_SCORES)}.")
    return names


def _classes(y: Any) -> npt.NDArray[Any]:
    classes = np.asarray(y)
    if classes.ndim != 1:
        raise DataError(f"y has shape {classes.shape}: expected one class per row (1-D).")
    if not _rows_with_class(classes).size:
        raise DataError("y has no class, so there is nothing to score. Give the true class of at least one row.")
    return classes


def _rows_with_class(classes: npt.NDArray[Any]) -> IntArray:
    return np.flatnonzero(classes != -1) if classes.dtype.kind in "iuf" else np.arange(classes.size)
