"""Choose a metric by the constraints, and rank sets of constraints.

Thesis (`randel2021`) section 5.4.4; section 6.4 (`randel2021b`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._distances import VECTOR_METRICS, distance_matrix
from clew._validation import BOOLEAN, as_generator, words
from clew.audit._answers import constraints_from
from clew.audit._impact import Impact, impact_of
from clew.audit._models import Model, prepare
from clew.audit._plots import BEST, bars
from clew.constraints import Constraints
from clew.exceptions import ConstraintError, DataError, ParameterError

FloatArray = npt.NDArray[np.float64]

# Smallest probability, or share of the subsets, at which advice is called sure.
SURE = 0.8
# Number of subsets of the constraints on which metrics are compared, and smallest size of a subset.
_BAGS, _LEAST_BAG = 20, 5


def metric_fitness(
    X: Any,
    constraints: Any,
    n_clusters: int,
    metric: Any = "euclidean",
    *,
    segments: int | None = None,
    per: str = "constraint",
    random_state: Any = 0,
) -> float:
    """Share of the constraints that clusters under a metric satisfy at no cost (thesis section 6.4, Eq. 6.20).

    Parameters
    ----------
    X : array-like, sparse matrix, sequences (``metric="edit"``) or distances (``metric="precomputed"``)
    constraints : Constraints, dict, frame, path, or list of answers as in `review`
        Only given pairs are used.
    n_clusters : int
    metric : str, callable or square array, default="euclidean"
        "euclidean", "manhattan", "chebyshev", "mahalanobis", "cosine", "edit", "precomputed", a function of two rows,
        or a square matrix.
    segments : int, optional
        For time series: split the columns into this many segments and add up the distances of the segments.
    per : {"constraint", "multiplier"}, default="constraint"
        Count constraints that cost nothing, or multipliers that are 0, one for each constraint and cluster.
        The thesis counts multipliers. Nearly all of them are 0 if there are many clusters.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from clew.audit import metric_fitness
    >>> X = [[1.0, 0.0], [9.0, 0.0], [0.0, 1.0], [0.0, 9.0]]
    >>> metric_fitness(X, {"must_link": [(0, 1), (2, 3)]}, 2, "cosine")
    1.0
    """
    _check_per(per)
    if segments is not None and not callable(metric) and not (isinstance(metric, str) and metric in VECTOR_METRICS):
        named = f"metric={metric!r}" if isinstance(metric, str) else "a matrix as metric"
        raise ParameterError(f"segments={segments!r} with {named}: only columns of X can be split into segments.")
    model = _medoid_model(X, metric, segments, n_clusters, as_generator(random_state))
    known = constraints_from(constraints, model.n_rows)
    require_pairs(known, "metric_fitness")
    return _fitness(impact_of(model, known), per)


def _fitness(found: Impact, per: str) -> float:
    return found.fraction_free_multipliers if per == "multiplier" else found.fraction_free


def _check_per(per: Any) -> None:
    if not words("constraint", "multiplier").accepts(per):
        raise ParameterError(f"per={per!r}: expected 'constraint' or 'multiplier'.")


def _medoid_model(X: Any, metric: Any, segments: int | None, n_clusters: int, rng: np.random.Generator) -> Model:
    if segments is None:
        return prepare(X, n_clusters, "kmedoids", metric, rng)
    return prepare(None, n_clusters, "kmedoids", distance_matrix(X, metric, segments=segments)[0], rng)


def require_pairs(known: Constraints, name: str) -> None:
    """Raise if the constraints contain no pairs."""
    if not len(known.must_link) + len(known.cannot_link):
        raise ConstraintError(f"{name} needs pairs; these constraints hold none.")


@dataclass(frozen=True)
class MetricAdvice:
    """Fitness of several metrics; the result of `advise_metric`.

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
        """The metric with the highest mean fitness; ties go to the first."""
        return self.metrics[int(self.fitness.mean(axis=1).argmax())]

    @property
    def wins(self) -> FloatArray:
        """Share of the subsets on which each metric has the highest fitness; ties are shared."""
        winners = self.fitness == self.fitness.max(axis=0)
        return np.asarray((winners / winners.sum(axis=0)).mean(axis=1))

    @property
    def sure(self) -> bool:
        """Whether the best metric wins on at least 80 % of the subsets."""
        return bool(self.wins[self.metrics.index(self.best)] >= SURE)

    @property
    def message(self) -> str:
        """The advice in words, and how sure it is."""
        first, *others = self.table()
        kept = f"it keeps {first['fitness']:.0%} of the constraints at no cost"
        if not others:
            return f"Only {first['metric']} was tried: {kept}."
        next_best = f"{others[0]['metric']} keeps {others[0]['fitness']:.0%}"
        wins = f"is the best on {first['wins']:.0%} of random subsets of them"
        if self.sure:
            return f"{first['metric']} fits best: {kept} and {wins}; {next_best}."
        return f"The answers cannot tell which fits best. {first['metric']} leads: {kept} and {wins}; {next_best}."

    def __str__(self) -> str:
        return self.message

    def table(self) -> list[dict[str, Any]]:
        """One dict per metric, best first: `metric`, `fitness`, `spread` and `wins`."""
        rows = [
            {"metric": name, "fitness": float(row.mean()), "spread": float(row.std()), "wins": float(wins)}
            for name, row, wins in zip(self.metrics, self.fitness, self.wins, strict=True)
        ]
        return sorted(rows, key=lambda row: -float(row["fitness"]))

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean fitness of each metric and return the figure, without showing it."""
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
    per: str = "constraint",
    random_state: Any = 0,
) -> MetricAdvice:
    """Compare metrics by how well they fit the constraints.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), or sequences
    constraints : Constraints, dict, frame, path, or list of answers as in `review`
    n_clusters : int
    metrics : sequence of str, or dict of name to metric, optional
        Default: Euclidean, Manhattan, Chebyshev, Mahalanobis and cosine. The values of a dict may be names, functions
        or square matrices, as in `metric_fitness`.
    segments : int, optional
        As in `metric_fitness`.
    n_bags : int, default=20
        Number of random subsets of the constraints on which the metrics are compared.
    per : {"constraint", "multiplier"}, default="constraint"
        As in `metric_fitness`.
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
    _check_per(per)
    if metrics is None:
        metrics = VECTOR_METRICS
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise ParameterError(f"metrics={metrics!r}: expected several names, or a dict of names to metrics.")
    if not isinstance(metrics, Mapping) and not all(isinstance(name, str) for name in metrics):
        raise ParameterError("metrics contains a value that is not a name. Pass functions and matrices in a dict.")
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
                f"Metric {name!r} has {model.n_rows} rows, but {next(iter(named))!r} has {models[0].n_rows}. "
                "Give distances of the same rows."
            )
    known = constraints_from(constraints, models[0].n_rows)
    require_pairs(known, "advise_metric")
    bags = [_bag(known, rng) for _ in range(n_bags)]
    fitness = [[_fitness(impact_of(model, bag), per) for bag in bags] for model in models]
    return MetricAdvice(tuple(named), np.array(fitness))


def _bag(known: Constraints, rng: np.random.Generator) -> Constraints:
    """A random subset of the pairs, of a random size."""
    n_must, n_pairs = len(known.must_link), len(known.must_link) + len(known.cannot_link)
    size = int(rng.integers(min(_LEAST_BAG, n_pairs), n_pairs + 1))
    chosen = np.sort(rng.choice(n_pairs, size, replace=False))
    return Constraints(
        known.must_link[chosen[chosen < n_must]],
        known.cannot_link[chosen[chosen >= n_must] - n_must],
        n_samples=known.n_rows,
    )


@dataclass(frozen=True)
class SetRanking:
    """Sets of constraints, most useful first; the result of `rank_constraint_sets`.

    Attributes
    ----------
    order : ndarray
        Positions of the sets, best first.
    scores : ndarray of shape (n_sets,)
        Sum of the impact scores of each set.
    """

    order: npt.NDArray[np.int64]
    scores: FloatArray

    def table(self) -> list[dict[str, Any]]:
        """One dict per set, best first: `rank`, `index` and `score`."""
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
    """Rank sets of constraints by their total impact (thesis section 5.4.4).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraint_sets : sequence of Constraints, dicts, frames or paths
    n_clusters : int
    model : {"kmeans", "kmedoids"}, default="kmeans"
    correct : bool, default=True
        Whether the constraints are known to be correct. Then the set with the highest cost comes first, because it adds
        the most information. Otherwise the set with the lowest cost comes first, because it does the least harm.
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
    sets = [constraints_from(each, prepared.n_rows) for each in constraint_sets]
    scores = np.array([impact_of(prepared, each).total for each in sets], dtype=np.float64)
    return SetRanking(np.argsort(scores if correct else -scores, kind="stable"), scores)
