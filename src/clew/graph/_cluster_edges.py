"""Turn a table of scored pairs into a cluster for each id, and list the pairs to check next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._validation import as_generator, check_parameters
from clew.constraints import Constraints, key_of, label_clusters
from clew.constraints._arrays import distinct_pairs
from clew.datasets import as_table
from clew.exceptions import DataError, ParameterError
from clew.graph._correlation_clustering import CorrelationClustering, correlation_clustering
from clew.graph._signed_graph import SignedGraph, cost_of_parts, descended, merged, restricted, signed_graph, summed
from clew.solvers.coloring import CliqueGraph

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Accepted column names: clew's own, splink's, and common ones. The first that is found is used.
ID_COLUMNS = (("id_1", "id_2"), ("unique_id_l", "unique_id_r"), ("i", "j"))
SOURCE_COLUMNS = (("source_1", "source_2"), ("source_dataset_l", "source_dataset_r"))
PROBABILITY_COLUMNS = ("match_probability", "probability", "score")
WEIGHT_COLUMNS = ("weight", "match_weight")
# Columns of a file that are always read as text.
TEXT_COLUMNS = tuple(name for pair in (*ID_COLUMNS, *SOURCE_COLUMNS) for name in pair)
# Separator with which splink joins a source and an id that is unique only within the source.
_JOINED = "-__-"
# Probabilities are kept this far from 0 and 1, because a scored pair is never quite certain.
_LEAST_DOUBT = 1e-6
# Score of a pair that is not in the table: a little evidence against it, which adds up over many pairs.
_MISSING_PROBABILITY, _MISSING_WEIGHT = 0.4, -0.4
# The margin is computed for this many pairs per pair that is listed.
_CANDIDATES = 5


@dataclass(frozen=True, repr=False)
class EdgeClusters:
    """Result of `cluster_edges`.

    Attributes
    ----------
    ids : ndarray of shape (n_ids,)
        The ids, in the order given, or else in the order in which they occur in the edges.
    labels : ndarray of shape (n_ids,)
        Cluster of each id.
    objective, lower_bound : float
        Disagreements of the clusters with the weights, and a lower bound that holds for all clusters. See
        `CorrelationClustering`.
    constraints : Constraints
        The constraints about the ids, by position.
    """

    ids: npt.NDArray[Any]
    labels: IntArray
    objective: float
    lower_bound: float
    constraints: Constraints
    _pairs: _Pairs
    _graph: SignedGraph

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(np.unique(self.labels))

    def __repr__(self) -> str:
        return f"EdgeClusters({len(self.ids)} ids in {self.n_clusters} clusters, objective {self.objective:.6g})"

    def review(self, most: int = 20) -> list[dict[str, Any]]:
        """List the scored pairs that are most worth checking next, as rows of a table.

        The *margin* of a pair is how much the objective would rise if the pair were decided the other way. The *worth*
        is the number of rows that would change clusters, times the probability ``1 / (1 + exp(margin))`` of the other
        answer. Pairs that constraints decide are left out.

        Parameters
        ----------
        most : int, default=20
            Largest number of pairs in the list.
        """
        return _review(self, most)


class _Pairs(NamedTuple):
    """Distinct scored pairs: positions of the two ids, the score (the mean if scored repeatedly), and the weight."""

    ends: IntArray
    scores: FloatArray
    weights: FloatArray


def cluster_edges(
    edges: Any,
    *,
    ids: Any = None,
    constraints: Any = None,
    score: str | None = None,
    threshold: float | None = None,
    missing: float | None = None,
    one_per_source: bool = False,
    n_init: int | str = "auto",
    exact_size: int = 12,
    random_state: Any = 0,
) -> EdgeClusters:
    r"""Cluster ids by scored pairs, under hard constraints; the number of clusters need not be known.

    A pair with probability p has the weight :math:`\log\frac{p}{1 - p} - \log\frac{t}{1 - t}` for the threshold t. The
    clusters are chosen to disagree as little as possible with these weights (`CorrelationClustering`). Pairs without a
    score have the probability `missing`, so that a chain of pairs does not join ids that nothing else connects.

    Parameters
    ----------
    edges : frame, path, dict of columns, or list of dicts
        One scored pair per row. Ids are in ``id_1`` and ``id_2`` (or splink's ``unique_id_l`` and ``unique_id_r``), and
        probabilities in ``match_probability``, ``probability`` or ``score``. Without these, signed weights are in
        ``weight`` or ``match_weight``. Splink's table of predictions can be passed unchanged. If its ids are unique
        only within a source, an id is written ``source-__-id``, as splink does.
    ids : array-like, optional
        All ids, including those that are in no edge. Edges must not contain other ids. Default: the ids in `edges`.
    constraints : Constraints, dict, frame, path or None
        Must-links, cannot-links and groups that always hold; pairs are pairs of ids. See `Constraints.of`.
    score : str, optional
        Column of the scores. Scores in ``weight`` and ``match_weight`` are signed weights, all others probabilities.
    threshold : float, optional
        Scores above it are evidence for a match, and scores below it are evidence against one. Default: 0.5, or 0
        for weights.
    missing : float, optional
        Score of pairs that are not in the table, at most `threshold`. Default: 0.4, or -0.4 for weights. If it equals
        `threshold`, pairs that are not in the table have no effect.
    one_per_source : bool, default=False
        Allow at most one id of each source in a cluster. Sources are in the columns ``source_1`` and ``source_2`` (or
        splink's ``source_dataset_l`` and ``source_dataset_r``).
    n_init, exact_size
        As in `CorrelationClustering`.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from clew import cluster_edges
    >>> edges = {"id_1": ["a", "b", "c"], "id_2": ["b", "c", "d"], "score": [0.9, 0.6, 0.9]}
    >>> found = cluster_edges(edges)
    >>> dict(zip(found.ids.tolist(), found.labels.tolist()))
    {'a': 0, 'b': 0, 'c': 1, 'd': 1}
    >>> found.review(1)[0]["id_1"], found.review(1)[0]["id_2"]
    ('b', 'c')
    >>> cluster_edges(edges, constraints={"must_link": [("b", "c")]}).labels
    array([0, 0, 0, 0])
    """
    table = as_table(edges, text=TEXT_COLUMNS)
    name, is_probability = _score_column(table, score)
    threshold = (0.5 if is_probability else 0.0) if threshold is None else float(threshold)
    missing = (
        min(_MISSING_PROBABILITY if is_probability else _MISSING_WEIGHT, threshold)
        if missing is None
        else float(missing)
    )
    _check_settings(threshold, missing, is_probability)
    settings = CorrelationClustering(n_init=n_init, exact_size=exact_size, random_state=random_state)
    check_parameters(settings, settings._parameters)
    known_ids, ends, sources = _ends(table, ids, one_per_source)
    scores = _scores(table, name, is_probability)
    pairs = _distinct(ends, scores, threshold, is_probability)
    known = Constraints.of(constraints, ids=known_ids, n_samples=len(known_ids))
    if one_per_source:
        known = known | Constraints(cannot_groups=sources)
    known.require_consistent()
    closed = known.closure()
    gap = -(_weight(missing, is_probability) - _weight(threshold, is_probability))
    matrix = sparse.coo_array(
        (_stored(pairs.weights), (pairs.ends[:, 0], pairs.ends[:, 1])), shape=(len(known_ids),) * 2
    )
    graph = signed_graph(matrix, closed, gap)
    found = correlation_clustering(graph, n_init, int(exact_size), as_generator(random_state))
    clusters = np.unique(found.labels, return_inverse=True)[1]
    labels = label_clusters(clusters, closed, int(clusters.max(initial=-1)) + 1)[clusters[closed.component_of]]
    return EdgeClusters(known_ids, labels, found.cost, found.bound, known, pairs, graph)


def _named(table: Any, choices: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    return next((pair for pair in choices if all(name in table.columns for name in pair)), None)


def _score_column(table: Any, score: str | None) -> tuple[str, bool]:
    """Name of the score column, and whether the scores are probabilities."""
    if score is not None:
        table.column(score)  # raises for an unknown name
        return score, score not in WEIGHT_COLUMNS
    for name in (*PROBABILITY_COLUMNS, *WEIGHT_COLUMNS):
        if name in table.columns:
            return name, name in PROBABILITY_COLUMNS
    raise DataError(
        f"{table.source} has no column of scores: expected score, probability, match_probability, weight or "
        f"match_weight, but it has {', '.join(table.columns)}. Name the column: score=... (in the shell: --score)."
    )


def _check_settings(threshold: float, missing: float, is_probability: bool) -> None:
    allowed, what = ((0.0, 1.0), "between 0 and 1") if is_probability else ((-np.inf, np.inf), "a finite number")
    for name, value in (("threshold", threshold), ("missing", missing)):
        if not allowed[0] < value < allowed[1]:
            raise ParameterError(f"{name}={value:g}: expected {what}.")
    if missing > threshold:
        raise ParameterError(
            f"missing={missing:g} is above threshold={threshold:g}, so all pairs that are not in the table would be "
            "evidence for a single cluster. Lower missing."
        )


def _ends(table: Any, ids: Any, one_per_source: bool) -> tuple[npt.NDArray[Any], IntArray, IntArray | None]:
    """Return the ids, the positions of the two ids of each edge, and the source of each id as a number."""
    names, from_sources = _named(table, ID_COLUMNS), _named(table, SOURCE_COLUMNS)
    if names is None:
        raise DataError(
            f"{table.source} has no id columns: expected id_1 and id_2, or unique_id_l and unique_id_r, but it has "
            f"{', '.join(table.columns)}. Rename them."
        )
    if one_per_source and from_sources is None:
        raise DataError(
            f"{table.source} has no source columns: expected source_1 and source_2, or source_dataset_l and "
            "source_dataset_r. Add them, or pass cannot_groups in constraints."
        )
    keys = [_keys(table, name) for name in names]
    sources = [_keys(table, name) for name in from_sources] if from_sources is not None else None
    if sources is not None and _repeats(keys, sources, ids):
        keys = [
            [f"{source}{_JOINED}{key}" if source else key for source, key in zip(of, some, strict=True)]
            for of, some in zip(sources, keys, strict=True)
        ]
    position: dict[str, int] = {}
    if ids is None:
        both = [key for pair in zip(*keys, strict=True) for key in pair]
        flat = np.fromiter((position.setdefault(key, len(position)) for key in both), dtype=np.int64, count=len(both))
        ends = flat.reshape(-1, 2)
        known = _as_ids(position, table, names)
    else:
        known = np.asarray(ids)
        position = {key_of(value): place for place, value in enumerate(known.tolist())}
        if len(position) < len(known):
            raise DataError("ids contains an id twice. Give each id once.")
        ends = np.column_stack([[position.get(key, -1) for key in some] for some in keys]).astype(np.int64)
        if (ends < 0).any():
            row, side = (int(place[0]) for place in np.nonzero(ends < 0))
            raise DataError(
                f"{table.source} row {row}: {names[side]} is {keys[side][row]!r}, which is not among the "
                f"{len(known):,} ids. Correct it, or add the id."
            )
    same = ends[:, 0] == ends[:, 1]
    if same.any():
        row = int(np.flatnonzero(same)[0])
        raise DataError(f"{table.source} row {row} pairs {keys[0][row]!r} with itself. Remove the row.")
    return known, ends, _source_numbers(ends, sources, len(known), known) if one_per_source and sources else None


def _keys(table: Any, name: str) -> list[str]:
    """A column of ids as text; 7, 7.0 and "7" are the same id."""
    column = table.column(name)
    if _is_whole(column):
        return list(map(str, column.astype(np.int64).tolist()))
    keys = list(map(key_of, column.tolist()))
    if "" in keys and name in {name for pair in ID_COLUMNS for name in pair}:
        raise DataError(f"{table.source} row {keys.index('')}: {name} is empty. Fill it in, or remove the row.")
    return keys


def _is_whole(column: npt.NDArray[Any]) -> bool:
    return column.dtype.kind in "iuf" and bool((np.abs(column) < 2**53).all() and (column == np.floor(column)).all())


def _as_ids(position: dict[str, int], table: Any, names: tuple[str, str]) -> npt.NDArray[Any]:
    """The ids in order of position, as numbers if they are numbers in the table."""
    whole = all(_is_whole(table.column(name)) for name in names)
    try:
        return np.array(list(map(int, position)), dtype=np.int64) if whole else np.array(list(position), dtype=object)
    except ValueError:  # sources were put in front of the numbers
        return np.array(list(position), dtype=object)


def _repeats(keys: list[list[str]], sources: list[list[str]], ids: Any) -> bool:
    """Whether ids need their source in front: an id occurs in two sources, or the given ids contain sources."""
    if ids is not None and any(key in set(map(key_of, np.asarray(ids).tolist())) for key in keys[0][:1]):
        return False
    seen: dict[str, str] = {}
    return any(
        seen.setdefault(key, source) != source
        for side in (0, 1)
        for key, source in zip(keys[side], sources[side], strict=True)
    )


def _source_numbers(ends: IntArray, sources: list[list[str]], n_ids: int, ids: npt.NDArray[Any]) -> IntArray:
    """The source of each id as a number, -1 if it has none."""
    number: dict[str, int] = {"": -1}
    group = np.full(n_ids, -1, dtype=np.int64)
    for side in (0, 1):
        codes = np.fromiter((number.setdefault(name, len(number) - 1) for name in sources[side]), dtype=np.int64)
        group[ends[:, side]] = codes
        clash = group[ends[:, side]] != codes
        if clash.any():
            one = ids[ends[np.flatnonzero(clash)[0], side]]
            raise DataError(f"Id {one} has two sources in the edges. Make the ids unique, or correct the sources.")
    return group


def _scores(table: Any, name: str, is_probability: bool) -> FloatArray:
    column = table.column(name)
    if column.ndim != 1 or column.dtype.kind not in "iufb":
        bad = next((value for value in column.tolist() if not _is_number(value)), column.tolist()[0])
        raise DataError(f"Column {name!r} of {table.source} holds {bad!r}: expected numbers.")
    scores = np.asarray(column, dtype=np.float64)
    wrong = ~np.isfinite(scores) | (is_probability & ((scores < 0) | (scores > 1)))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        expected = "a probability from 0 to 1" if is_probability else "a finite number"
        weights = " If the column holds signed weights, call it weight." if is_probability else ""
        raise DataError(f"{table.source} row {row}: {name} is {scores[row]:g}, expected {expected}.{weights}")
    return scores


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _weight(scores: Any, is_probability: bool) -> Any:
    if not is_probability:
        return scores
    clipped = np.clip(scores, _LEAST_DOUBT, 1 - _LEAST_DOUBT)
    return np.log(clipped) - np.log1p(-clipped)


def _distinct(ends: IntArray, scores: FloatArray, threshold: float, is_probability: bool) -> _Pairs:
    """Distinct pairs, each with the mean of its scores and of its weights."""
    weights = _weight(scores, is_probability) - _weight(threshold, is_probability)
    scored = distinct_pairs(ends)
    counts = np.bincount(scored.pair_of)
    means = [np.bincount(scored.pair_of, values) / counts for values in (scores, weights)]
    return _Pairs(scored.pairs, *means)


def _stored(weights: FloatArray) -> FloatArray:
    """Replace weights of 0 by tiny ones, so that they stay stored: a score of no evidence differs from no score."""
    return np.where(weights == 0, np.finfo(np.float64).tiny, weights)


def _review(found: EdgeClusters, most: int) -> list[dict[str, Any]]:
    graph, unit_of = found._graph, found.constraints.closure().component_of
    units = unit_of[found._pairs.ends]
    labels = np.empty(graph.n_units, dtype=np.int64)
    labels[unit_of] = np.unique(found.labels, return_inverse=True)[1]
    rows = []
    for pair in _candidates(graph, units, labels, found._pairs.weights, _CANDIDATES * most).tolist():
        margin, n_changed = _margin(graph, labels, *units[pair].tolist())
        if np.isfinite(margin):
            first, second = found._pairs.ends[pair]
            together = bool(found.labels[first] == found.labels[second])
            rows.append(
                {
                    "id_1": found.ids[first],
                    "id_2": found.ids[second],
                    "score": float(found._pairs.scores[pair]),
                    "together": together,
                    "margin": margin,
                    "rows": n_changed,
                    "worth": n_changed / (1 + float(np.exp(min(margin, 700.0)))),
                }
            )
    return sorted(rows, key=lambda row: -row["worth"])[:most]


def _candidates(graph: SignedGraph, units: IntArray, labels: IntArray, weights: FloatArray, most: int) -> IntArray:
    """Pairs that may have a small margin: pairs of small weight, and pairs of weakly connected units or clusters."""
    sums = merged(graph, labels)
    source = graph.source
    inside = labels[source] == labels[graph.others]
    pull = summed(source[inside], graph.weights[inside], graph.n_units)
    pull -= graph.gap * graph.rows * (sums.rows[labels] - graph.rows)
    clusters = labels[units]
    together = clusters[:, 0] == clusters[:, 1]
    keys = sums.source * sums.n_units + sums.others
    wanted = clusters[:, 0] * sums.n_units + clusters[:, 1]
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    stored = ~together & (keys[place] == wanted) if len(keys) else np.zeros(len(wanted), dtype=bool)
    between = np.where(stored, sums.weights[place] if len(keys) else 0.0, 0.0)
    between -= graph.gap * sums.rows[clusters[:, 0]] * sums.rows[clusters[:, 1]]
    bound = np.where(together, pull[units].min(axis=1), -between)
    # A pair within a unit, or between cannot-linked units, is already decided.
    open_pairs = np.flatnonzero((units[:, 0] != units[:, 1]) & (together | stored))
    weakest = (open_pairs[np.argsort(values[open_pairs], kind="stable")[:most]] for values in (bound, np.abs(weights)))
    return np.unique(np.concatenate(list(weakest)))


def _margin(graph: SignedGraph, labels: IntArray, first: int, second: int) -> tuple[float, int]:
    """Cost of deciding a pair of units the other way, and the number of rows this moves, if other clusters stay."""
    inside = np.flatnonzero((labels == labels[first]) | (labels == labels[second]))
    part = graph._replace(part_of=np.zeros(graph.n_units, dtype=np.int64))
    problem = restricted(part, inside)
    old = np.unique(labels[inside], return_inverse=True)[1].astype(np.int64)
    ends = np.searchsorted(inside, [first, second])
    every = np.arange(problem.n_units)
    if labels[first] == labels[second]:
        changed = problem._replace(apart=_with_edge(problem.apart, ends))
        new = descended(changed, every, every)
    else:
        if int(ends[1]) in problem.apart.neighbours(int(ends[0])).tolist():
            return np.inf, 0
        joined = every.copy()
        joined[ends[1]] = ends[0]
        joined = np.unique(joined, return_inverse=True)[1].astype(np.int64)
        smaller = merged(problem, joined)
        new = descended(smaller, np.arange(smaller.n_units), np.arange(smaller.n_units))[joined]
    margin = float((cost_of_parts(problem, new) - cost_of_parts(problem, old))[0])
    overlap = sparse.coo_array((problem.rows, (old, new))).toarray()
    kept = min(overlap.max(axis=0).sum(), overlap.max(axis=1).sum())
    return max(margin, 0.0), int(problem.rows.sum() - kept)


def _with_edge(links: CliqueGraph, ends: IntArray) -> CliqueGraph:
    source = np.repeat(np.arange(links.n_vertices), np.diff(links.edge_ptr))
    pairs = np.vstack([np.column_stack([source, links.edges]), ends[None]])
    clique_of = np.repeat(np.arange(len(links.member_ptr) - 1), np.diff(links.member_ptr))
    return CliqueGraph.build(links.n_vertices, pairs, clique_of, links.members)
