"""Impact scores of constraints from Lagrangian duals: how much each constraint costs the clustering.

Randel, Aloise, Blanchard and Hertz 2021 (`randel2021`), thesis chapter 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._validation import as_generator, number
from clew._words import counted
from clew.audit._answers import constraints_from
from clew.audit._models import Model, chance_together, prepare
from clew.audit._plots import bars, lines
from clew.audit._statements import NamedStatements, distinct, named_statements
from clew.constraints import Constraints
from clew.exceptions import DataError, ParameterError
from clew.solvers.lagrangian import Dual, dual_ascent
from clew.solvers.medoid_program import dual_by_program

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# If all other constraints cost nothing, a constraint is suspect if it costs more than this share of the cost of moving
# a typical row. docs/decisions.md shows how F1 depends on it.
TOLERANCE = 0.2
# A constraint is free if its price is below this share of the cost of moving a typical row, the size of the last steps.
FREE = 1e-3
MAX_ITER = 300
# Largest number of rows for the linear program, whose size grows with its square. It then takes up to a minute.
MOST_ROWS_OF_PROGRAM = 200


@dataclass(frozen=True)
class Impact:
    """Cost of every constraint; the result of `impact`.

    A score is 0 if the constraint costs nothing. Otherwise it is minus the cost, in the unit of the criterion.

    Attributes
    ----------
    must_link_score, cannot_link_score : ndarray of shape (n_pairs,)
    label_score : ndarray of shape (n_samples,) or None
        Score of each given class, 0 for rows without one; None if no classes are given.
    must_group_score, cannot_group_score : ndarray of shape (n_samples, n_columns) or None
        Score of each row's membership in its group, 0 for rows without a group; None if no groups are given.
    must_link_multipliers, cannot_link_multipliers : ndarray of shape (n_pairs, n_clusters)
        The parts of each score: one for each cluster, or with ``solver="lp"`` one for each candidate medoid.
    unit : float
        Cost of moving a typical row to its second-best cluster: the median over all rows.
    tolerance : float
        The value of `limit` if no constraint costs anything.
    labels : ndarray of shape (n_samples,)
        The clustering without constraints, from which the scores start.
    lower_bound, upper_bound : float
        Bounds on the cost of a clustering that satisfies all constraints; infinite if none was found.
    history : ndarray of shape (n_rounds, 2)
        Bound of each round, and best bound so far.
    converged : bool
        Whether the bound had converged before `max_iter`. If not, scores are preliminary, and `message` says so.
    model : str
        "kmeans", "kmedoids", or the class of the fitted model.
    must_link_chance, cannot_link_chance : ndarray of shape (n_pairs,) or None
        Probability that the fitted model puts both rows of the pair in one cluster; None without a fitted model.
    """

    constraints: Constraints
    n_clusters: int
    model: str
    must_link_score: FloatArray
    cannot_link_score: FloatArray
    label_score: FloatArray | None
    must_group_score: FloatArray | None
    cannot_group_score: FloatArray | None
    must_link_multipliers: FloatArray
    cannot_link_multipliers: FloatArray
    unit: float
    tolerance: float
    labels: npt.NDArray[np.int64]
    lower_bound: float
    upper_bound: float
    history: FloatArray
    converged: bool
    must_link_chance: FloatArray | None = None
    cannot_link_chance: FloatArray | None = None

    @property
    def limit(self) -> float:
        """Price above which a constraint is suspect, in units of the cost of moving a typical row.

        It is `tolerance` times the square of the share of free constraints: the more constraints cost something, the
        lower the limit.
        """
        scores = [self.must_link_score, self.cannot_link_score]
        for kind in ("label", "must_group", "cannot_group"):
            of_rows, given = getattr(self, f"{kind}_score"), getattr(self.constraints, f"{kind}s")
            if of_rows is not None:
                scores.append(of_rows.ravel()[given.ravel() >= 0])
        prices = -np.concatenate(scores) / self.unit
        free = (1 + np.count_nonzero(prices <= FREE)) / (1 + len(prices))  # 1 if there are no pairs
        return float(self.tolerance * free**2)

    def _suspect(self, scores: FloatArray) -> BoolArray:
        return scores < -self.limit * self.unit

    @property
    def must_link_suspect(self) -> BoolArray:
        """Which must-links look wrong."""
        return self._suspect(self.must_link_score)

    @property
    def cannot_link_suspect(self) -> BoolArray:
        """Which cannot-links look wrong."""
        return self._suspect(self.cannot_link_score)

    @property
    def label_suspect(self) -> BoolArray | None:
        """Which given classes look wrong."""
        return None if self.label_score is None else self._suspect(self.label_score)

    @property
    def total(self) -> float:
        """Sum of the scores of all pairs, each once: the score of a whole set (thesis 5.4.4)."""
        must, _ = distinct(self.constraints.must_link, self.constraints.must_link_confidence)
        cannot, _ = distinct(self.constraints.cannot_link, self.constraints.cannot_link_confidence)
        return float(self.must_link_score[must].sum() + self.cannot_link_score[cannot].sum())

    @property
    def fraction_suspect(self) -> float:
        """Share of suspect pairs."""
        n_pairs = len(self.must_link_score) + len(self.cannot_link_score)
        return float(self.must_link_suspect.sum() + self.cannot_link_suspect.sum()) / max(n_pairs, 1)

    @property
    def fraction_free(self) -> float:
        """Share of pairs that cost nothing."""
        scores = np.concatenate([self.must_link_score, self.cannot_link_score])
        return float(np.count_nonzero(scores >= -FREE * self.unit) / max(len(scores), 1))

    @property
    def fraction_free_multipliers(self) -> float:
        """Share of the multipliers of pairs that are 0; there is one for each pair and cluster (thesis Eq. 6.20)."""
        parts = np.concatenate([self.must_link_multipliers, self.cannot_link_multipliers])
        return float(np.count_nonzero(parts >= -FREE * self.unit) / max(parts.size, 1))

    @property
    def message(self) -> str:
        """The result in one or two sentences."""
        rows = self._statements()
        n_suspect = sum(row["suspect"] for row in rows)
        some = counted(len(rows), "constraint")
        verb = "looks" if 1 in (n_suspect, len(rows)) else "look"
        told = f"{n_suspect} of {some} {verb} wrong for {counted(self.n_clusters, 'cluster')}."
        if not self.converged:
            rounds = counted(len(self.history), "round")
            told += f" Partial: the bound was still rising after {rounds}. Raise max_iter."
        return told

    def __str__(self) -> str:
        return self.message

    def _statements(self) -> list[dict[str, Any]]:
        name = self.constraints.describe_row
        found: list[dict[str, Any]] = []

        def add(kind: str, place: int, score: float, *rows: int) -> None:
            found.append(
                {"kind": kind, "index": place, "rows": tuple(name(row) for row in rows), "score": float(score)}
            )

        for kind in ("must_link", "cannot_link"):
            scores = getattr(self, f"{kind}_score")
            chances = getattr(self, f"{kind}_chance")
            for place, pair in enumerate(getattr(self.constraints, kind).tolist()):
                add(kind, place, scores[place], *pair)
                if chances is not None:
                    found[-1]["chance"] = float(chances[place])
        if self.label_score is not None and self.constraints.labels is not None:
            for row in np.flatnonzero(self.constraints.labels >= 0).tolist():
                add("label", row, self.label_score[row], row)
        for kind in ("must_group", "cannot_group"):
            scores, groups = getattr(self, f"{kind}_score"), getattr(self.constraints, f"{kind}s")
            if scores is not None:
                groups = groups.reshape(len(groups), -1)
                for row, column in np.argwhere(groups >= 0).tolist():
                    add(kind, row, scores[row, column], row)
        limit = self.limit
        for statement in found:
            statement["price"] = abs(statement["score"]) / self.unit
            statement["suspect"] = statement["price"] > limit
        return found

    def table(self) -> list[dict[str, Any]]:
        """One dict for each constraint, the most suspicious first, ready for a data frame.

        The keys are `kind`, `index` (position among its kind), `rows` (the user's ids), `score`, `price` (minus the
        score, in units of the cost of moving a typical row), `suspect`, `rank` from 1 on, and `sentence`. With a fitted
        model, pairs also have `chance`, the probability that the model puts both rows in one cluster.
        """
        rows = sorted(self._statements(), key=lambda row: row["score"])
        for rank, row in enumerate(rows, start=1):
            row["rank"] = rank
            row["sentence"] = _sentence(row)
        return rows

    def plot(self, ax: Any = None, *, most: int = 30) -> Any:
        """Draw the prices of the first constraints of the table as bars and return the figure, without showing it.

        Parameters
        ----------
        ax : matplotlib axes, optional
        most : int
            Largest number of bars.
        """
        rows = self.table()[:most]
        return bars(
            [" – ".join(map(str, row["rows"])) + f"  {_WORDS[row['kind']]}" for row in rows],
            [row["price"] for row in rows],
            [row["suspect"] for row in rows],
            xlabel="price, in moves of a typical row",
            title=self.message,
            limit=self.limit,
            ax=ax,
        )

    def plot_trace(self, ax: Any = None) -> Any:
        """Draw the bound over the rounds and return the figure, without showing it."""
        rounds = np.arange(1, len(self.history) + 1)
        return lines(
            rounds,
            {"bound of the round": self.history[:, 0], "best so far": self.history[:, 1]},
            xlabel="round",
            ylabel="lower bound",
            title=f"{'Flat' if self.converged else 'Still rising'} after {counted(len(self.history), 'round')}",
            ax=ax,
        )


_WORDS = {
    "must_link": "same",
    "cannot_link": "different",
    "label": "class",
    "must_group": "must-group",
    "cannot_group": "cannot-group",
}


def _sentence(row: dict[str, Any]) -> str:
    names = " and ".join(map(str, row["rows"]))
    said = {
        "must_link": f"{names} are said to belong together",
        "cannot_link": f"{names} are said to differ",
        "label": f"{names} is said to belong to its class",
        "must_group": f"{names} is said to belong to its group",
        "cannot_group": f"{names} is said to differ from its group",
    }[row["kind"]]
    cost = f"{row['price']:.2g} times as much as moving a typical row"
    if row["price"] == 0:
        told = f"{said}, which costs nothing."
    elif row["suspect"]:
        told = f"{said}, but that costs {cost}: look again."
    else:
        told = f"{said}, which costs little: {cost}."
    if "chance" in row:
        told += f" By the model, the chance that they are together is {row['chance']:.0%}."
    return told


def impact(
    X: Any,
    constraints: Any,
    n_clusters: int,
    model: Any = "kmeans",
    *,
    metric: Any = "euclidean",
    tolerance: float = TOLERANCE,
    solver: str = "subgradient",
    max_iter: int = MAX_ITER,
    random_state: Any = 0,
) -> Impact:
    r"""Estimate what the clustering would save without each constraint.

    Constraints may be contradictory or infeasible. The list of suspects is most useful in that case.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Or sequences with ``metric="edit"``, or a square matrix of distances with ``metric="precomputed"``.
    constraints : Constraints, labels, dict, frame, sparse matrix, path, or list of answers as in `review`
        See `Constraints.of`. Pairs, confidences, labels, must-groups and cannot-groups are priced; soft groups and
        triplets are ignored.
    n_clusters : int
    model : {"kmeans", "kmedoids"} or fitted estimator, default="kmeans"
        The criterion: squared distances to means, or distances to medoids. With a fitted model that has probabilities,
        such as `ConstrainedGaussianMixture`, a row costs minus the logarithm of its probability in a cluster, and the
        clusters are not changed. The probabilities are those of `review`, but at least 0.001.
    metric : str, callable or array, default="euclidean"
        Metric of k-medoids: "euclidean", "manhattan", "chebyshev", "mahalanobis", "cosine", "edit", "precomputed", a
        function of two rows, or a square matrix.
    tolerance : float, default=0.2
        A constraint is suspect if it costs more than this share of the cost of moving a typical row. The limit is lower
        if many constraints cost something (`Impact.limit`). With 0, every cost is suspect.
    solver : {"subgradient", "lp"}, default="subgradient"
        "lp" computes the multipliers of k-medoids exactly, by a linear program in which rows may be split between
        medoids [1]_ (section 5.4.1 of the thesis). Its `lower_bound` is proven. "subgradient" finds more wrong pairs,
        because it does not split rows. "lp" takes up to 200 rows.
    max_iter : int, default=300
        Largest number of rounds. If it is reached, `converged` is False and `message` says so.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    Impact

    Notes
    -----
    The constraints are relaxed into the criterion with a multiplier per constraint and cluster [1]_, Eq. 5.10:

    .. math:: L(\eta, \lambda, \gamma) = \min_x f(x) + \sum_{CL, c} \eta^c_{ij} (1 + \epsilon - x_i^c - x_j^c)
              + \sum_{ML, c} \lambda^c_{ij} (\epsilon + x_i^c - x_j^c) + \gamma^c_{ij} (\epsilon + x_j^c - x_i^c)

    with multipliers <= 0, raised by subgradient steps until L is flat. The score of a pair is the sum of its best
    multipliers (Eq. 5.17); a repeated pair is priced once, at its highest confidence. A pair with confidence p < 1 may
    be broken at p / (1 - p) times `unit`, which bounds its multipliers. A class or must-group becomes an anchor point,
    and each of its rows is tied to the anchor. The cost of the anchor in a cluster is the sum, over its rows, of the
    extra cost compared with their best cluster (the bounds include it). A cannot-group is one constraint on the number
    of its rows in each cluster. Nothing is expanded to pairs.

    Time O(t (n k d + m k)) for t rounds and m pairs; memory O(n k + m k) beyond a copy of X. K-medoids stores distances
    to all rows for up to 5,700 rows, and to a random sample beyond.
    Departs from [1]_: epsilon is 0.75, not 0.5, so that correct constraints never share the price of a wrong one at the
    end of a chain. The inner minimum is a local one, from the last solution and earlier ones, so L may be a little too
    high. The steps of a constraint depend on the cost of moving its rows and shrink by a fixed factor, because a
    distant upper bound (or none) makes the paper's steps too long. A constraint is suspect by a tolerance, not by the
    sign of its score.

    References
    ----------
    .. [1] R. Randel, D. Aloise, S. J. Blanchard, A. Hertz (2021). "A Lagrangian-based score for assessing the quality
       of pairwise constraints in semi-supervised clustering." Data Mining and Knowledge Discovery 35.

    Examples
    --------
    >>> from clew.audit import impact
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]
    >>> found = impact(X, {"must_link": [(0, 1), (2, 3)], "cannot_link": [(0, 5)]}, n_clusters=2)
    >>> found.must_link_suspect
    array([False,  True])
    >>> print(found.table()[0]["sentence"])
    2 and 3 are said to belong together, but that costs 0.55 times as much as moving a typical row: look again.
    """
    check_options(tolerance, max_iter)
    if solver not in ("subgradient", "lp"):
        raise ParameterError(f"solver={solver!r} in impact: expected 'subgradient' or 'lp'.")
    if solver == "lp" and model != "kmedoids":
        named = repr(model) if isinstance(model, str) else type(model).__name__
        raise ParameterError(f"solver='lp' with model={named}: the linear program is only for model='kmedoids'.")
    prepared = prepare(X, n_clusters, model, metric, as_generator(random_state))
    if solver == "lp" and prepared.n_rows > MOST_ROWS_OF_PROGRAM:
        raise DataError(
            f"solver='lp' takes up to {MOST_ROWS_OF_PROGRAM} rows, and X has {prepared.n_rows}. "
            "Use solver='subgradient', or a sample of the rows."
        )
    known = constraints_from(constraints, prepared.n_rows)
    return impact_of(prepared, known, tolerance, max_iter, by_program=solver == "lp")


def filter_by_impact(found: Impact, fraction: float = 0.0, *, keep_free: bool = False) -> Constraints:
    """Keep the pairs that change the clustering, without the most suspicious ones (thesis section 6.6).

    A pair with impact 0 holds anyway, so it adds no information. A pair with a very low impact may be wrong. The pairs
    in between are the useful ones. On three public sets, the thesis found 0.7 to 0.8 a good fraction for a deep model.

    Parameters
    ----------
    found : Impact
        The result of `impact`, which holds the constraints.
    fraction : float, default=0
        Share of the pairs with negative impact to drop, the lowest first: floor(fraction * count) pairs. A repeated
        pair counts once.
    keep_free : bool, default=False
        Whether pairs with impact 0 are kept.

    Returns
    -------
    Constraints
        Labels, groups, soft groups and triplets are not changed.

    Examples
    --------
    >>> from clew.audit import filter_by_impact, impact
    >>> X = [[0.0], [1.0], [3.8], [6.0], [9.0], [10.0]]
    >>> found = impact(X, {"must_link": [(0, 1), (2, 3), (1, 5)]}, n_clusters=2)
    >>> filter_by_impact(found).must_link.tolist()
    [[2, 3], [1, 5]]
    >>> filter_by_impact(found, 0.5).must_link.tolist()
    [[2, 3]]
    """
    if not isinstance(found, Impact):
        raise ParameterError(f"filter_by_impact takes the result of impact, not a {type(found).__name__}.")
    if not number(0, 1).accepts(fraction):
        raise ParameterError(f"fraction={fraction!r} in filter_by_impact: expected a number from 0 to 1.")
    known = found.constraints
    must, must_of = distinct(known.must_link, known.must_link_confidence)
    cannot, cannot_of = distinct(known.cannot_link, known.cannot_link_confidence)
    scores = np.concatenate([found.must_link_score[must], found.cannot_link_score[cannot]])
    costly = np.flatnonzero(scores < -FREE * found.unit)
    kept = np.full(len(scores), keep_free)
    kept[costly] = True
    kept[costly[np.argsort(scores[costly], kind="stable")][: int(fraction * len(costly))]] = False
    of_must, of_cannot = kept[: len(must)][must_of], kept[len(must) :][cannot_of]
    return known._replace(
        must_link=known.must_link[of_must],
        must_link_confidence=known.must_link_confidence[of_must],
        cannot_link=known.cannot_link[of_cannot],
        cannot_link_confidence=known.cannot_link_confidence[of_cannot],
    )


def check_options(tolerance: Any, max_iter: Any) -> None:
    """Raise if the tolerance or the limit on rounds is invalid."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float | np.number) or not tolerance >= 0:
        raise ParameterError(f"tolerance={tolerance!r} in impact: expected a number >= 0.")
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise ParameterError(f"max_iter={max_iter!r} in impact: expected an integer >= 1.")


def impact_of(
    model: Model,
    constraints: Constraints,
    tolerance: float = TOLERANCE,
    max_iter: int = MAX_ITER,
    *,
    by_program: bool = False,
) -> Impact:
    """Compute `impact` on prepared data."""
    unit = model.unit
    must, must_of = distinct(constraints.must_link, constraints.must_link_confidence)
    cannot, cannot_of = distinct(constraints.cannot_link, constraints.cannot_link_confidence)
    once = constraints._replace(
        must_link=constraints.must_link[must],
        must_link_confidence=constraints.must_link_confidence[must],
        cannot_link=constraints.cannot_link[cannot],
        cannot_link_confidence=constraints.cannot_link_confidence[cannot],
    )
    named = named_statements(once, unit)
    if by_program and model.distances is not None:
        dual = dual_by_program(model.distances, model.n_clusters, named.tied, named.anchors, named.statements)
        labels = None
    else:
        criterion = model.criterion(named.tied, named.anchors)
        dual = dual_ascent(criterion, model.centers, named.statements, max_iter=int(max_iter))
        labels = model.labels
    of_must, of_cannot, of_labels, of_must_groups, of_cannot_groups = _scores(once, named, dual, labels)
    return Impact(
        constraints,
        model.n_clusters,
        model.name,
        of_must[must_of],
        of_cannot[cannot_of],
        of_labels,
        of_must_groups,
        of_cannot_groups,
        (0.0 - np.abs(dual.pulls))[must_of],
        (0.0 - dual.prices)[cannot_of],
        unit=unit,
        tolerance=float(tolerance),
        labels=model.labels,
        lower_bound=dual.lower_bound,
        upper_bound=dual.upper_bound,
        history=dual.history,
        converged=dual.converged,
        must_link_chance=_chances(model, constraints.must_link),
        cannot_link_chance=_chances(model, constraints.cannot_link),
    )


def _chances(model: Model, pairs: npt.NDArray[np.int64]) -> FloatArray | None:
    """Probability that each pair is together, if the model is a fitted estimator."""
    return None if model.probabilities is None else chance_together(model.probabilities, pairs)


def _scores(
    constraints: Constraints, named: NamedStatements, dual: Dual, labels: npt.NDArray[np.int64] | None
) -> tuple[FloatArray, FloatArray, FloatArray | None, FloatArray | None, FloatArray | None]:
    """Scores by kind: minus the sum of the multipliers over the clusters (Eq. 5.17).

    A row of a cannot-group pays the price of the group in its own cluster, or without `labels` in all clusters.
    """
    pulls, prices = 0.0 - np.abs(dual.pulls).sum(axis=1), 0.0 - dual.prices.sum(axis=1)
    n_pairs, n_labels = len(constraints.must_link), len(named.label_rows)
    of_labels = of_must = of_cannot = None
    if constraints.labels is not None:
        of_labels = np.zeros(constraints.n_rows)
        of_labels[named.label_rows] = pulls[n_pairs : n_pairs + n_labels]
    if constraints.must_groups is not None:
        of_must = np.zeros((constraints.n_rows, _width(constraints.must_groups)))
        of_must[tuple(named.must_entries.T)] = pulls[n_pairs + n_labels :]
    if constraints.cannot_groups is not None:
        of_cannot = np.zeros((constraints.n_rows, _width(constraints.cannot_groups)))
        rows, columns, sets = named.cannot_entries.T
        paid = dual.prices[sets].sum(axis=1) if labels is None else dual.prices[sets, labels[rows]]
        of_cannot[rows, columns] = 0.0 - paid
    return pulls[:n_pairs], prices[: len(constraints.cannot_link)], of_labels, of_must, of_cannot


def _width(groups: npt.NDArray[np.int64]) -> int:
    return 1 if groups.ndim == 1 else groups.shape[1]
