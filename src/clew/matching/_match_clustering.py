"""Cluster records that describe the same thing: learn a model of pairs, then apply correlation clustering.

Fellegi and Sunter 1969 (`fellegi1969`) for the mixture; Bansal et al. 2004 (`bansal2004`) for the clusters.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from clew._base import Capabilities, ConstrainedClusterer, cluster_names, warn_caller
from clew._persistence import Learned, State
from clew._validation import NONE, RANDOM_STATE, Allowed, above, at_most, integer, number, texts
from clew.constraints import Closure, Constraints, label_clusters
from clew.constraints._arrays import group_columns, nothing_together
from clew.datasets import Table
from clew.exceptions import ClewWarning, FileError, ParameterError
from clew.graph._correlation_clustering import correlation_clustering
from clew.graph._signed_graph import signed_graph
from clew.matching._comparison import Comparer, Records, Vectors
from clew.matching._explanation import explanation
from clew.matching._fellegi_sunter import Evidence
from clew.matching._pair_model import Candidates, Measures, PairModel, build_candidates, known_answers
from clew.matching._records import Field, as_cells, check_columns, compared_fields, fields_of

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Number of extra random starts, for parts of the graph whose clusters are not proved optimal.
_N_INIT, _EXACT_SIZE = 5, 0


class MatchClustering(ConstrainedClusterer):
    r"""Finds many small groups of rows that describe the same thing, such as duplicate records.

    Similar rows become candidate pairs. A model estimates the probability that the two rows of a pair match: at first
    from the data alone, and better with every must-link and cannot-link. Correlation clustering of the log-odds makes
    the groups, so their number need not be known. Use it for tables of records (people, products, addresses), and for
    vectors that form small groups. For a few large groups use `GraphPropagation`.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of nearest rows with which each row forms candidate pairs. Groups may be larger.
    columns : list of str, optional
        Columns of a table to compare. Default: all but columns that have only one value, and columns that are named
        like ids ("id", "customer_id", "key") and have no value twice.
    keys : list of str, optional
        Columns such as a phone number: rows with equal values become candidates. Rows that share a rare value of a
        compared column are candidates anyway.
    prior_strength : float, default=40.0
        Weight of the estimate made without answers, as a number of answers.
    missing_weight : float, default=-1.0
        Log-odds of pairs that are not candidates. A negative value keeps chains of pairs from joining many rows.
    min_confidence : float, default=0
        Constraints with a lower confidence are left out. All others are hard.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Group of each row; known classes keep their numbers.
    n_clusters_ : int
    pairs_ : ndarray of shape (n_pairs, 2)
        The candidate pairs.
    pair_probabilities_ : ndarray of shape (n_pairs,)
        Probability that the two rows of each pair match.
    row_probabilities_ : ndarray of shape (n_samples,)
        Probability that each row belongs to its group, from its mean log-odds with the group's other rows. For a row
        alone in its group: the probability that it matches none of its candidates.
    columns_ : ndarray of str
        The columns that are compared. Empty for vectors.
    column_kinds_ : ndarray of str
        How each of these columns is read: "text", "number" or "date".
    coefficients_, intercept_ : ndarray of shape (n_pair_features,) and float
        Coefficients and intercept of the pair model.
    means_, scales_ : ndarray of shape (n_pair_features,)
        Means and standard deviations that standardise the features of pairs.
    evidence_ : ndarray of shape (n_columns + 3, n_levels)
        Weights of evidence of the mixture. Every entry of the first row is the intercept. The other rows hold the
        weight of each level of agreement: one row per column, one for the similarity of whole rows, and one for this
        similarity relative to the best candidate.
    neighbour_similarities_ : ndarray of shape (n_samples, n_neighbors)
        Similarities of each row to its neighbours, largest first.
    distance_unit_ : float
        Unit in which distances between vectors are measured.
    fitted_cells_, fitted_rows_ : ndarray
        The compared cells of a table, or the vectors.
    cluster_labels_, cluster_sizes_ : ndarray of shape (n_clusters_,)
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all are hard, including cannot-groups ("one record per source"). A warning says if
    cannot-groups have one value for all rows, because every row is alone then. X is a table or an array of vectors. A
    `Table`, a list of dicts, and a frame with a column of text or dates are tables. A frame that holds only numbers is
    an array of vectors.

    Candidates are the nearest rows by TF-IDF of letter n-grams over the whole row, rows that share a rare value, rows
    that share two values which rarely occur together, and rows that share a key. Two rows that both likely match the
    same third row also become candidates. Vectors are compared by distance, and by its ratio to the distances of their
    neighbours. Cells are compared by n-gram cosine, edit distance, Jaro-Winkler similarity, shared words, shared
    numbers, equality, rarity of the shared value, and the difference of numbers and dates. A missing cell is a value of
    its own.

    Without answers, the probabilities come from Fellegi and Sunter's mixture [1]_ over levels of agreement, fitted by
    EM. The weight of evidence is multiplied by 0.7, because columns depend on each other. With answers, the
    probabilities come from a logistic regression on all features with a ridge penalty. In this regression, 2,000
    candidates with the mixture's probabilities count as `prior_strength` answers.

    Time O(n v + p d²) for n rows, v entries of the index per row (10,000 at most) and p pairs with d features; memory
    O(p d).

    References
    ----------
    .. [1] I. P. Fellegi, A. B. Sunter (1969). "A theory for record linkage." Journal of the American Statistical
       Association 64(328).
    .. [2] N. Bansal, A. Blum, S. Chawla (2004). "Correlation clustering." Machine Learning 56.

    Examples
    --------
    >>> from clew import MatchClustering
    >>> people = [{"name": "Ann Meyer", "city": "Bonn"}, {"name": "Anne Meyer", "city": "Bonn"},
    ...           {"name": "Bob Smith", "city": "Rome"}, {"name": "Bob Smyth", "city": "Rome"},
    ...           {"name": "Zoe Adler", "city": "Oslo"}]
    >>> model = MatchClustering(random_state=0).fit(people)
    >>> model.labels_
    array([0, 0, 1, 1, 2])
    >>> print(model.explain(0, 1))
    city is equal; name differs by one letter; the same with probability 0.98
    """

    _capabilities = Capabilities(
        labels="hard",
        must_link="hard",
        cannot_link="hard",
        sparse=True,
        tables=True,
        any_shape=True,
        needs_n_clusters=False,
        predicts=True,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_neighbors": integer(1),
        "columns": NONE | texts(),
        "keys": NONE | texts(),
        "prior_strength": above(0),
        "missing_weight": at_most(0),
        "min_confidence": number(0, 1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        "n_clusters_": Learned("integer", low=1, counts="clusters"),
        **ConstrainedClusterer._learned_attributes,
        "labels_": Learned("label", (("rows",),), low=0),
        "pairs_": Learned("integer", (("pairs", 2),), low=0, below="rows", empty=True),
        "pair_probabilities_": Learned("real", (("pairs",),), low=0, empty=True),
        "row_probabilities_": Learned("real", (("rows",),), low=0),
        "columns_": Learned("text", (("compared",),), empty=True),
        "column_kinds_": Learned("text", (("compared",),), empty=True),
        "coefficients_": Learned("real", (("features",),)),
        "intercept_": Learned("real"),
        "means_": Learned("real", (("features",),)),
        "scales_": Learned("real", (("features",),), low=0),
        "evidence_": Learned("real", ((None, None),)),
        "neighbour_similarities_": Learned("real", (("rows", None),), low=0),
        "distance_unit_": Learned("real", low=0),
        "fitted_cells_": Learned("text", (("rows", "compared"),), optional=True),
        "fitted_rows_": Learned("real", (("rows", "columns"),), optional=True, sparse=True),
    }

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        columns: Any = None,
        keys: Any = None,
        prior_strength: float = 40.0,
        missing_weight: float = -1.0,
        min_confidence: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.columns = columns
        self.keys = keys
        self.prior_strength = prior_strength
        self.missing_weight = missing_weight
        self.min_confidence = min_confidence
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[MatchClustering]:
        return [cls(random_state=0), cls(4, prior_strength=10.0, missing_weight=0.0, random_state=0)]

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        for column in group_columns(constraints.cannot_groups):
            if len(column) > 1 and column[0] >= 0 and (column == column[0]).all():
                warn_caller(nothing_together("cannot_groups"), ClewWarning)
        matcher = Matcher.of(X, self.n_neighbors, self.columns, self.keys)
        closed = constraints.closure()
        candidates = build_candidates(matcher.rows, matcher.fields, matcher.keys, np.random.default_rng(0))
        found = match_clustering(candidates, closed, self.prior_strength, self.missing_weight, rng)
        self._remember(X, matcher, candidates, found)
        self.n_clusters_ = int(found.clusters.max()) + 1
        self.cluster_labels_ = label_clusters(found.clusters[closed.first_row], closed, self.n_clusters_)
        self.cluster_sizes_ = np.bincount(found.clusters)
        return self.cluster_labels_[found.clusters]

    def _remember(self, X: Any, matcher: Matcher, candidates: Candidates, found: Matches) -> None:
        """Set the learned attributes that `predict` and `explain` read."""
        measures = candidates.measures
        self.pairs_, self.pair_probabilities_ = candidates.pairs, expit(found.log_odds)
        self.row_probabilities_ = row_probabilities(candidates.pairs, found.decided, found.clusters)
        self.coefficients_, self.intercept_ = found.coefficients[:-1], float(found.coefficients[-1])
        self.means_, self.scales_ = measures.means, measures.scales
        self.evidence_ = measures.evidence.as_matrix()
        self.columns_ = np.array([field.name for field in matcher.fields], dtype=object)
        self.column_kinds_ = np.array([field.kind for field in matcher.fields], dtype=object)
        self.neighbour_similarities_ = matcher.rows.scores
        self.distance_unit_ = matcher.rows.scale if isinstance(matcher.rows, Vectors) else 1.0
        for name in ("fitted_cells_", "fitted_rows_"):
            self.__dict__.pop(name, None)
        if isinstance(X, Table):
            self.fitted_cells_ = np.column_stack([as_cells(X.column(name)) for name in self.columns_])
        else:
            self.fitted_rows_ = X.copy()

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Find the group of each new row: the fitted group it matches best, or a new number if it matches none.

        New rows are compared with fitted rows only. Equal new rows that match no fitted row get the same number.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
        """
        X = self._check_new_rows(X)
        rows = self._with_new_rows(X)
        n_fitted = rows.n_fitted
        new = np.arange(n_fitted, rows.n_rows)
        groups = self._group_numbers()
        labels = np.full(len(new), -1, dtype=np.int64)
        keys = rows.keys()
        votes: dict[bytes, Counter[int]] = {}
        for key, group in zip(keys[:n_fitted], groups.tolist(), strict=True):
            votes.setdefault(key, Counter())[group] += 1
        near = rows.neighbours_of(new)
        pairs = np.column_stack([near.ravel(), np.repeat(new, near.shape[1])])
        pairs = pairs[pairs[:, 0] >= 0]
        best = best_groups(pairs, self._log_odds(rows, pairs), groups, n_fitted, len(new), self.missing_weight)
        fresh: dict[bytes, int] = {}
        for place, key in enumerate(keys[n_fitted:]):
            if key in votes:
                labels[place] = votes[key].most_common(1)[0][0]
            elif best[place] >= 0:
                labels[place] = best[place]
            else:
                labels[place] = fresh.setdefault(key, int(groups.max()) + 1 + len(fresh))
        return self._named(labels)

    def explain(self, first: int, second: int) -> str:
        """Say in a sentence how two fitted rows compare, and how likely they match.

        Parameters
        ----------
        first, second : int
            Row positions in the fitted data.
        """
        check_is_fitted(self)
        for row in (first, second):
            if not 0 <= row < len(self.labels_):
                raise ParameterError(f"Row {row} is out of range: {len(self.labels_)} rows were fitted.")
        rows = self._with_new_rows(None)
        pairs = np.sort(np.array([[first, second]], dtype=np.int64))
        log_odds = self._log_odds(rows, pairs)
        fields = rows.fields if isinstance(rows, Records) else []
        return explanation(fields, int(pairs[0, 0]), int(pairs[0, 1]), float(expit(log_odds[0])))

    @classmethod
    def _from_state(cls, path: str | os.PathLike[str], state: State) -> Self:
        """Also refuse a file without rows, and evidence or coefficients that do not fit the columns."""
        model = super()._from_state(path, state)
        if not state.learned:
            return model
        kept = {"fitted_cells_", "fitted_rows_"} & state.learned.keys()
        if len(kept) != 1 or len(model.evidence_) != len(model.columns_) + 3:
            what = "evidence_ does not fit the columns" if len(kept) == 1 else "fitted_rows_ is missing"
            raise FileError(f"{path} cannot be used: {what}. Save the estimator again.")
        n_features = len(model._with_new_rows(None).compare(np.empty((0, 2), dtype=np.int64)).features)
        if n_features + 1 != len(model.coefficients_):
            raise FileError(f"{path} cannot be used: coefficients_ does not fit the columns. Save the estimator again.")
        return model

    def _with_new_rows(self, X: Any) -> Records | Vectors:
        """Return the fitted rows, followed by the rows of X."""
        n_fitted = len(self.neighbour_similarities_)
        if hasattr(self, "fitted_cells_"):
            cells = self.fitted_cells_
            if X is not None:
                cells = np.concatenate([cells, np.column_stack([as_cells(X.column(name)) for name in self.columns_])])
            names = self.columns_.tolist()
            table = Table("the rows", dict(zip(names, cells.T, strict=True)), tuple(names), len(cells))
            fields = fields_of(table, names, dict(zip(names, self.column_kinds_.tolist(), strict=True)))
            return Records(fields, n_fitted, self.n_neighbors, self.neighbour_similarities_)
        rows = self.fitted_rows_
        if X is not None:
            rows = sparse.vstack([rows, X]).tocsr() if sparse.issparse(rows) else np.concatenate([rows, X])
        return Vectors(rows, n_fitted, self.n_neighbors, self.neighbour_similarities_, self.distance_unit_)

    def _log_odds(self, rows: Comparer, pairs: IntArray) -> FloatArray:
        measures = Measures(Evidence.of_matrix(self.evidence_), self.means_, self.scales_)
        features = measures.features_of(rows, pairs)
        return np.asarray(features[:, :-1].astype(np.float64) @ self.coefficients_ + self.intercept_)

    def _group_numbers(self) -> IntArray:
        """Group of each fitted row as a number, even if classes have names."""
        if not hasattr(self, "classes_"):
            return np.asarray(self.labels_, dtype=np.int64)
        number_of = {name: place for place, name in enumerate(self.classes_.tolist())}
        return np.array([number_of[name] for name in self.labels_.tolist()], dtype=np.int64)

    def _named(self, labels: IntArray) -> npt.NDArray[Any]:
        """Labels with class names, if the user named the classes; new groups are new-1, new-2, and so on."""
        if not hasattr(self, "classes_"):
            return labels
        return cluster_names(self.classes_, labels, ())[labels]


class Matcher(NamedTuple):
    """Rows that can be compared, their compared columns, and the columns that serve as keys."""

    rows: Records | Vectors
    fields: list[Field]
    keys: list[Field]

    @classmethod
    def of(cls, X: Any, n_neighbors: int, columns: Any = None, keys: Any = None) -> Matcher:
        """Read a table or an array of vectors."""
        if not isinstance(X, Table):
            if columns is not None or keys is not None:
                raise ParameterError(
                    "columns and keys name columns of a table, but X is an array of vectors. A frame counts as an "
                    "array if all of its columns are numbers: convert them to text to compare them one by one."
                )
            return cls(Vectors(X, X.shape[0], n_neighbors), [], [])
        check_columns(X, columns, "columns")
        check_columns(X, keys, "keys")
        fields = compared_fields(X, columns)
        key_fields = [] if keys is None else fields_of(X, keys)
        return cls(Records(fields, X.n_rows, n_neighbors), fields, key_fields)


class Matches(NamedTuple):
    """Result of `match_clustering`: the cluster of each row, coefficients, and the log-odds of the candidates.

    `decided` are the log-odds after constraints have replaced the log-odds of the pairs that they decide.
    """

    clusters: IntArray
    coefficients: FloatArray
    log_odds: FloatArray
    decided: FloatArray


def match_clustering(
    candidates: Candidates, closed: Closure, strength: float, missing_weight: float, rng: np.random.Generator
) -> Matches:
    """Train the pair model on the pairs that constraints decide, then cluster the rows by the candidates' log-odds."""
    model = PairModel.of(candidates, strength)
    answers = known_answers(candidates.pairs, closed)
    coefficients = model.fit(candidates.features[answers.places], answers.same, answers.weights)
    log_odds = model.log_odds(coefficients)
    clusters = grouped(candidates.pairs, log_odds, closed, missing_weight, rng)
    return Matches(clusters, coefficients, log_odds, answers.decide(log_odds))


def grouped(
    pairs: IntArray, log_odds: FloatArray, closed: Closure, missing_weight: float, rng: np.random.Generator
) -> IntArray:
    """Cluster the rows by correlation clustering of the log-odds; clusters are numbered by their first rows."""
    n_rows = len(closed.component_of)
    weights = np.where(log_odds == 0, 1e-9, log_odds)
    upper = sparse.coo_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(n_rows, n_rows))
    found = correlation_clustering(signed_graph(upper, closed, -float(missing_weight)), _N_INIT, _EXACT_SIZE, rng)
    labels = found.labels[closed.component_of]
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place].astype(np.int64)


def row_probabilities(pairs: IntArray, log_odds: FloatArray, clusters: IntArray) -> FloatArray:
    """Probability that each row belongs to its cluster; for a row alone, that it matches none of its candidates."""
    n_rows = len(clusters)
    together = clusters[pairs[:, 0]] == clusters[pairs[:, 1]]
    ends, values = np.concatenate(pairs[together].T), np.tile(log_odds[together], 2)
    n_inside = np.bincount(ends, minlength=n_rows)
    means = np.bincount(ends, values, minlength=n_rows) / np.maximum(n_inside, 1)
    strongest = np.full(n_rows, -np.inf)
    for rows in pairs.T:
        np.maximum.at(strongest, rows, log_odds)
    alone = np.bincount(clusters)[clusters] == 1
    return np.where(alone, expit(-strongest), np.where(n_inside > 0, expit(means), 1.0))


def best_groups(
    pairs: IntArray, log_odds: FloatArray, groups: IntArray, n_fitted: int, n_new: int, missing_weight: float
) -> IntArray:
    """For each new row, the fitted group with the largest sum of log-odds, or -1 if no sum is above 0."""
    best = np.full(n_new, -1, dtype=np.int64)
    if not len(pairs):
        return best
    _, group_of = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group_of)
    keys, place = np.unique((pairs[:, 1] - n_fitted) * len(sizes) + group_of[pairs[:, 0]], return_inverse=True)
    new, group = np.divmod(keys, len(sizes))
    totals = np.bincount(place, log_odds) + missing_weight * (sizes[group] - np.bincount(place))
    order = np.lexsort((group, -totals, new))
    first = order[np.unique(new[order], return_index=True)[1]]
    first = first[totals[first] > 0]
    best[new[first]] = np.unique(groups)[group[first]]
    return best
