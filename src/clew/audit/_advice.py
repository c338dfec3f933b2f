"""What the constraints speak for: a number of clusters, a distance, one set of answers rather than another.

Thesis (`randel2021`) sections 5.4.1 and 5.4.4; section 6.4 (`randel2021b`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._validation import BOOLEAN, as_generator
from clew._words import counted
from clew.audit._distances import VECTOR_METRICS, distance_matrix
from clew.audit._impact import impact_of
from clew.audit._models import Model, prepare
from clew.audit._plots import BEST, bars, lines
from clew.constraints import Constraints
from clew.exceptions import ConstraintError, DataError, ParameterError

FloatArray = npt.NDArray[np.float64]

# Subsets of the constraints that a metric is judged on, and the least size of one.
_BAGS, _LEAST_BAG = 20, 5


def metric_fitness(
    X: Any,
    constraints: Any,
    n_clusters: int,
    metric: Any = "euclidean",
    *,
    segments: int | None = None,
    random_state: Any = 0,
) -> float:
    """Share of the constraints that clusters under a metric keep at no cost: thesis Eq. 6.20, as a share.

    Parameters
    ----------
    X : array-like, sparse matrix, sequences (``metric="edit"``) or distances (``metric="precomputed"``)
    constraints : Constraints, dict, frame or path
        Given pairs count.
    n_clusters : int
    metric : str, callable or square array, default="euclidean"
        "euclidean", "manhattan", "chebyshev", "mahalanobis", "cosine", "edit", "precomputed", a function of two rows,
        or a square matrix.
    segments : int, optional
        For time series: cut the columns into so many runs and add up the distances of the runs.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from clew.audit import metric_fitness
    >>> X = [[1.0, 0.0], [9.0, 0.0], [0.0, 1.0], [0.0, 9.0]]
    >>> metric_fitness(X, {"must_link": [(0, 1), (2, 3)]}, 2, "cosine")
    1.0
    """
    if segments is not None and not callable(metric) and not (isinstance(metric, str) and metric in VECTOR_METRICS):
        named = f"metric={metric!r}" if isinstance(metric, str) else "a matrix as metric"
        raise ParameterError(f"segments={segments!r} with {named}: only columns of X can be cut into runs.")
    model = _medoid_model(X, metric, segments, n_clusters, as_generator(random_state))
    known = Constraints.of(constraints, n_samples=model.n_rows)
    _require_pairs(known, "metric_fitness")
    return impact_of(model, known).fraction_free


def _medoid_model(X: Any, metric: Any, segments: int | None, n_clusters: int, rng: np.random.Generator) -> Model:
    if segments is None:
        return prepare(X, n_clusters, "kmedoids", metric, rng)
    return prepare(None, n_clusters, "kmedoids", distance_matrix(X, metric, segments=segments)[0], rng)


def _require_pairs(known: Constraints, name: str) -> None:
    if not len(known.must_link) + len(known.cannot_link):
        raise ConstraintError(f"{name} needs pairs; these constraints hold none.")


@dataclass(frozen=True)
class MetricAdvice:
    """How well metrics fit the constraints; made by `advise_metric`.

    Attributes
    ----------
    metrics : tuple of str
    fitness : ndarray of shape (n_metrics, n_bags)
        `metric_fitness` on each subset of the constraints.
    """

    metrics: tuple[str, ...]
    fitness: FloatArray

    @property
    def best(self) -> str:
        """The metric with the highest mean fitness; of equals the first."""
        return self.metrics[int(self.fitness.mean(axis=1).argmax())]

    @property
    def message(self) -> str:
        """The advice in a sentence."""
        means = self.fitness.mean(axis=1)
        order = np.argsort(-means, kind="stable")
        told = f"{self.best} fits best: it keeps {means[order[0]]:.0%} of the constraints at no cost"
        if len(order) == 1:
            return f"{told}."
        gains = self.fitness[order[0]] - self.fitness[order[1]]
        sure = gains.mean() > 2 * gains.std() / np.sqrt(len(gains))
        next_best = f"{self.metrics[order[1]]} keeps {means[order[1]]:.0%}"
        return f"{told}; {next_best}." if sure else f"{told}; {next_best}, which is hardly a difference."

    def __str__(self) -> str:
        return self.message

    def table(self) -> list[dict[str, Any]]:
        """One dict for each metric, the fittest first: `metric`, `fitness`, `spread` and `wins`.

        `wins` counts the subsets on which no other metric is fitter.
        """
        winners = (self.fitness == self.fitness.max(axis=0)).sum(axis=1)
        rows = [
            {"metric": name, "fitness": float(row.mean()), "spread": float(row.std()), "wins": int(winners[place])}
            for place, (name, row) in enumerate(zip(self.metrics, self.fitness, strict=True))
        ]
        return sorted(rows, key=lambda row: -float(row["fitness"]))

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean fitness of each metric; returns the figure, not shown."""
        rows = self.table()
        marked = [place == 0 for place in range(len(rows))]
        names, values = [row["metric"] for row in rows], [row["fitness"] for row in rows]
        xlabel = "share of constraints kept at no cost"
        return bars(names, values, marked, xlabel=xlabel, title=self.message, colour=BEST, ax=ax)


def advise_metric(
    X: Any,
    constraints: Any,
    n_clusters: int,
    metrics: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    segments: int | None = None,
    n_bags: int = _BAGS,
    random_state: Any = 0,
) -> MetricAdvice:
    """Tell which distance the constraints speak for.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), or sequences
    constraints : Constraints, dict, frame or path
    n_clusters : int
    metrics : sequence of str, or dict of name to metric, optional
        Euclidean, Manhattan, Chebyshev, Mahalanobis and cosine unless given. In a dict, anything that `metric_fitness`
        takes: names, functions, square matrices.
    segments : int, optional
        As in `metric_fitness`.
    n_bags : int, default=20
        Random subsets of the constraints, of random sizes, that every metric is judged on.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    MetricAdvice

    Examples
    --------
    >>> import numpy as np
    >>> from clew import Constraints
    >>> from clew.audit import advise_metric
    >>> angle, length = np.repeat([0.2, 1.3], 20), np.tile(np.arange(1.0, 21.0), 2)
    >>> X = np.column_stack([length * np.cos(angle), length * np.sin(angle)])
    >>> known = Constraints.sample(np.repeat([0, 1], 20), 40, random_state=0)
    >>> advise_metric(X, known, 2, ["euclidean", "cosine"]).best
    'cosine'
    """
    if metrics is None:
        metrics = VECTOR_METRICS
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise ParameterError(f"metrics={metrics!r}: expected several names, or a dict of names to metrics.")
    if not isinstance(metrics, Mapping) and not all(isinstance(name, str) for name in metrics):
        raise ParameterError("metrics holds something that is no name. Name functions and matrices in a dict.")
    named = dict(metrics) if isinstance(metrics, Mapping) else {name: name for name in metrics}
    if not named:
        raise ParameterError("metrics is empty: name at least one.")
    if isinstance(n_bags, bool) or not isinstance(n_bags, int | np.integer) or n_bags < 1:
        raise ParameterError(f"n_bags={n_bags!r} in advise_metric: expected an integer >= 1.")
    rng = as_generator(random_state)
    models = [_medoid_model(X, metric, segments, n_clusters, rng) for metric in named.values()]
    for name, model in zip(named, models, strict=True):
        if model.n_rows != models[0].n_rows:
            raise DataError(
                f"Metric {name!r} is about {model.n_rows} rows, {next(iter(named))!r} about {models[0].n_rows}."
            )
    known = Constraints.of(constraints, n_samples=models[0].n_rows)
    _require_pairs(known, "advise_metric")
    bags = [_bag(known, rng) for _ in range(n_bags)]
    fitness = [[impact_of(model, bag).fraction_free for bag in bags] for model in models]
    return MetricAdvice(tuple(named), np.array(fitness))


def _bag(known: Constraints, rng: np.random.Generator) -> Constraints:
    """A random part of the pairs, of a random size."""
    n_must, n_pairs = len(known.must_link), len(known.must_link) + len(known.cannot_link)
    size = int(rng.integers(min(_LEAST_BAG, n_pairs), n_pairs + 1))
    chosen = np.sort(rng.choice(n_pairs, size, replace=False))
    return Constraints(
        known.must_link[chosen[chosen < n_must]],
        known.cannot_link[chosen[chosen >= n_must] - n_must],
        n_samples=known.n_rows,
    )


@dataclass(frozen=True)
class ClusterNumberAdvice:
    """How well numbers of clusters fit the constraints; made by `advise_n_clusters`.

    Attributes
    ----------
    candidates : tuple of int
    fitness : ndarray of shape (n_candidates,)
        Share of the constraints that each of them keeps at no cost.
    """

    candidates: tuple[int, ...]
    fitness: FloatArray

    @property
    def best(self) -> int:
        """The number with the highest fitness; of equals the first."""
        return self.candidates[int(self.fitness.argmax())]

    @property
    def message(self) -> str:
        """The advice in a sentence."""
        highest = self.fitness.max()
        equals = [k for k, share in zip(self.candidates, self.fitness, strict=True) if share == highest]
        fit, keep = ("fits", "it keeps") if self.best == 1 else ("fit", "they keep")
        told = f"{counted(self.best, 'cluster')} {fit} best: {keep} {highest:.0%} of the constraints at no cost"
        return f"{told}; so do {', '.join(map(str, equals[1:]))}." if len(equals) > 1 else f"{told}."

    def __str__(self) -> str:
        return self.message

    def table(self) -> list[dict[str, Any]]:
        """One dict for each number of clusters: `n_clusters` and `fitness`."""
        return [
            {"n_clusters": k, "fitness": float(share)} for k, share in zip(self.candidates, self.fitness, strict=True)
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw the fitness over the number of clusters; returns the figure, not shown."""
        curve = {"fitness": self.fitness}
        ylabel = "share of constraints kept at no cost"
        return lines(self.candidates, curve, xlabel="clusters", ylabel=ylabel, title=self.message, ax=ax)


def advise_n_clusters(
    X: Any,
    constraints: Any,
    candidates: Sequence[int] = range(2, 11),
    model: str = "kmeans",
    *,
    metric: Any = "euclidean",
    random_state: Any = 0,
) -> ClusterNumberAdvice:
    """Tell how many clusters the constraints speak for: with the right number, the most cost nothing.

    Thesis section 5.4.1, Figure 5.3, where a constraint that costs anything is called wrong.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraints : Constraints, dict, frame or path
    candidates : sequence of int, default=range(2, 11)
        Numbers of clusters to try.
    model, metric, random_state
        As in `impact`.

    Returns
    -------
    ClusterNumberAdvice

    Examples
    --------
    >>> import numpy as np
    >>> from clew import Constraints
    >>> from clew.audit import advise_n_clusters
    >>> y = np.repeat([0, 1, 2], 20)
    >>> X = np.column_stack([9.0 * y, np.tile(np.linspace(-1, 1, 20), 3)])
    >>> advise_n_clusters(X, Constraints.sample(y, 40, random_state=0), range(2, 6)).best
    3
    """
    if not isinstance(candidates, Iterable):
        raise ParameterError(f"candidates={candidates!r}: expected several numbers of clusters, as in range(2, 8).")
    numbers = tuple(candidates)
    if not numbers:
        raise ParameterError("candidates is empty: name at least one number of clusters.")
    rng = as_generator(random_state)
    shares = []
    for k in numbers:
        prepared = prepare(X, k, model, metric, rng)
        known = Constraints.of(constraints, n_samples=prepared.n_rows)
        _require_pairs(known, "advise_n_clusters")
        shares.append(impact_of(prepared, known).fraction_free)
    return ClusterNumberAdvice(tuple(int(k) for k in numbers), np.array(shares))


@dataclass(frozen=True)
class SetRanking:
    """Sets of constraints, the most useful first; made by `rank_constraint_sets`.

    Attributes
    ----------
    order : ndarray
        Places of the sets, best first.
    scores : ndarray of shape (n_sets,)
        Sum of the impact scores of each set.
    """

    order: npt.NDArray[np.int64]
    scores: FloatArray

    def table(self) -> list[dict[str, Any]]:
        """One dict for each set, best first: `rank`, `index` and `score`."""
        return [
            {"rank": rank, "index": int(place), "score": float(self.scores[place])}
            for rank, place in enumerate(self.order.tolist(), start=1)
        ]


def rank_constraint_sets(
    X: Any,
    constraint_sets: Sequence[Any],
    n_clusters: int,
    model: str = "kmeans",
    *,
    correct: bool = True,
    metric: Any = "euclidean",
    random_state: Any = 0,
) -> SetRanking:
    """Rank whole sets of constraints by their impact: thesis section 5.4.4.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraint_sets : sequence of Constraints, dicts, frames or paths
    n_clusters : int
    model : {"kmeans", "kmedoids"}, default="kmeans"
    correct : bool, default=True
        Of correct constraints the most costly set teaches most and comes first; of doubtful ones the least costly does
        the least harm and comes first.
    metric, random_state
        As in `impact`.

    Returns
    -------
    SetRanking

    Examples
    --------
    >>> from clew.audit import rank_constraint_sets
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]
    >>> rank_constraint_sets(X, [{"must_link": [(0, 1)]}, {"must_link": [(2, 3)]}], 2).order
    array([1, 0])
    """
    if not isinstance(constraint_sets, Iterable) or isinstance(constraint_sets, Mapping | Constraints | str):
        raise ParameterError(f"constraint_sets is a {type(constraint_sets).__name__}: give a list of sets.")
    if hasattr(constraint_sets, "columns"):
        raise ParameterError("constraint_sets is one frame: give a list of sets.")
    if not BOOLEAN.accepts(correct):
        raise ParameterError(f"correct={correct!r} in rank_constraint_sets: expected {BOOLEAN.what}.")
    prepared = prepare(X, n_clusters, model, metric, as_generator(random_state))
    sets = [Constraints.of(each, n_samples=prepared.n_rows) for each in constraint_sets]
    scores = np.array([impact_of(prepared, each).total for each in sets], dtype=np.float64)
    return SetRanking(np.argsort(scores if correct else -scores, kind="stable"), scores)
