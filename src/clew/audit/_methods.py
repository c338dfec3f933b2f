"""Advise on methods: compare their capabilities with a table and its constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestCentroid

from clew._base import Capabilities, all_estimators
from clew._registry import method_name
from clew._validation import check_matrix
from clew._words import counted, listed
from clew.constraints import Constraints
from clew.density import ConstrainedDBSCAN

# Largest number of rows in the random sample that is used to find the shape of clusters.
_MOST_ROWS = 2000
# Clusters count as round if at most this share of their rows is nearer to the centre of another cluster.
_MOST_MISPLACED = 0.05
# Beyond this many rows, a matrix of all distances takes more than 3 GB.
_MOST_FOR_MATRIX = 20_000
# If a smaller share of rows is outside dense regions, groups have at least five rows and are not pairs of duplicates.
_MOST_OUTSIDE = 0.5
# A network learns little from fewer rows, and columns are few enough for distances below this number.
_LEAST_FOR_NETWORK, _LEAST_COLUMNS_FOR_NETWORK = 1000, 50
_KINDS = {"labels": "labels", "must_link": "must-links", "cannot_link": "cannot-links"}


@dataclass(frozen=True)
class TableFacts:
    """Facts about a table and its constraints; made by `advise_methods`.

    Attributes
    ----------
    n_rows, n_columns : int
    sparse : bool
    counts : bool
        Whether all numbers are whole and at least 0, as counts of words are.
    n_regions : int
        Dense regions that DBSCAN finds with the automatic radius, in at most 2,000 rows.
    noise : float
        Share of the rows outside of dense regions.
    misplaced : float
        Share of the rows in dense regions that are nearer to the centre of another region: 0 for round clusters.
    given : tuple of str
        Kinds of constraints that are given: labels, must_link, cannot_link, triplets, soft_groups.
    doubtful : bool
        Whether some pairs have a confidence below 1.
    contradictory : bool
        Whether constraints contradict each other.
    """

    n_rows: int
    n_columns: int
    sparse: bool
    counts: bool
    n_regions: int
    noise: float
    misplaced: float
    given: tuple[str, ...]
    doubtful: bool
    contradictory: bool

    @property
    def shape(self) -> str:
        """Whether clusters look "round", of "any" shape, or "unknown" if there is one dense region or none."""
        if self.n_regions < 2:
            return "unknown"
        return "round" if self.misplaced <= _MOST_MISPLACED else "any"

    def __str__(self) -> str:
        rows = f"{counted(self.n_rows, 'row')}, {counted(self.n_columns, 'column')}"
        regions = f"{counted(self.n_regions, 'dense region')}, {self.noise:.0%} of the rows outside"
        shape = {
            "round": "Clusters look round: nearly every row is nearest to the centre of its own region.",
            "any": f"Clusters are not round: {self.misplaced:.0%} of the rows are nearest to another region's centre.",
            "unknown": "Density says nothing about the shape of clusters.",
        }[self.shape]
        known = (
            "No constraints are given." if not self.given else f"Given: {listed([*map(_named, self.given)], 'and')}."
        )
        if self.contradictory:
            known += " They contradict each other."
        elif self.doubtful:
            known += " Some pairs have a confidence below 1."
        return f"{rows}; {regions}. {shape} {known}"


@dataclass(frozen=True)
class Suitability:
    """Whether one method suits ("yes", "with care" or "no"), and why."""

    method: str
    suits: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method}: {self.suits}. {' '.join(self.reasons)}"


@dataclass(frozen=True)
class MethodAdvice:
    """The result of `advise_methods`: facts about the table, and every clusterer, the most suitable first."""

    facts: TableFacts
    methods: tuple[Suitability, ...]

    def table(self) -> list[dict[str, Any]]:
        """One dict per method: method, suits, reasons."""
        return [{"method": one.method, "suits": one.suits, "reasons": list(one.reasons)} for one in self.methods]

    def __str__(self) -> str:
        return "\n".join([str(self.facts), *map(str, self.methods)])


def advise_methods(X: Any, constraints: Any = None, *, random_state: int = 0) -> MethodAdvice:
    """Say which clusterers suit a table and its constraints, and why.

    The size of the table, its sparsity, the shape of dense regions and the kinds of constraints are compared with the
    capabilities of each method with its default parameters. Only a sample is clustered, by `ConstrainedDBSCAN` without
    constraints.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraints : Constraints, labels, dict, frame, sparse matrix, path or None
    random_state : int, default=0
        Seed of the sample of a large table.

    Returns
    -------
    MethodAdvice

    Examples
    --------
    >>> from clew.audit import advise_methods
    >>> advice = advise_methods([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]], {"cannot_link": [(0, 5)]})
    >>> [one.suits for one in advice.methods if one.method == "cop-kmeans"]
    ['yes']
    """
    rows = check_matrix(X)
    known = Constraints.of(constraints, n_samples=rows.shape[0])
    facts = table_facts(rows, known, random_state)
    found = [suitability(method_name(cls), cls(), facts) for cls in all_estimators("clusterer")]
    order = ("yes", "with care", "no")
    return MethodAdvice(facts, tuple(sorted(found, key=lambda one: (order.index(one.suits), one.method))))


def table_facts(X: Any, known: Constraints, random_state: int) -> TableFacts:
    """Collect facts about the constraints and about the rows, or a sample of them."""
    n_rows, n_columns = X.shape
    chosen = np.arange(n_rows)
    if n_rows > _MOST_ROWS:
        chosen = np.sort(np.random.default_rng(random_state).choice(n_rows, _MOST_ROWS, replace=False))
    sample = X[chosen]
    labels = ConstrainedDBSCAN(min_samples=min(5, len(chosen))).fit(sample).labels_
    inside = np.flatnonzero(labels >= 0)
    regions = np.unique(labels[inside])
    misplaced = 0.0
    if len(regions) > 1:
        nearest = NearestCentroid().fit(sample[inside], labels[inside]).predict(sample[inside])
        misplaced = float((nearest != labels[inside]).mean())
    closed = known.closure()
    given = {
        "labels": known.labels is not None and bool((known.labels >= 0).any()),
        "must_link": len(known.must_link) > 0 or known.must_groups is not None,
        "cannot_link": len(known.cannot_link) > 0 or known.cannot_groups is not None,
        "triplets": len(known.triplets) > 0,
        "soft_groups": known.soft_groups is not None and known.soft_groups.nnz > 0,
    }
    return TableFacts(
        n_rows,
        n_columns,
        sparse.issparse(X),
        _are_counts(X),
        len(regions),
        1 - len(inside) / len(chosen),
        misplaced,
        tuple(kind for kind, is_given in given.items() if is_given),
        bool((known.must_link_confidence < 1).any() or (known.cannot_link_confidence < 1).any()),
        closed.contradictory,
    )


def _are_counts(X: Any) -> bool:
    values = X.data if sparse.issparse(X) else X
    return bool((values >= 0).all() and (values == np.floor(values)).all())


def suitability(name: str, estimator: Any, facts: TableFacts) -> Suitability:
    """Compare the capabilities of a method with the facts about a table."""
    can = estimator.capabilities
    no, care, good = _obstacles(can, facts), _cautions(can, facts), _merits(can, facts)
    if not type(estimator)._is_installed():
        no.append(f"It needs an extra that is missing: pip install 'clew[{can.extra}]'.")
    if estimator._measures_angles and not facts.sparse:
        care.append("It compares rows by the cosine, which suits texts and embeddings.")
    suits = "no" if no else "with care" if care else "yes"
    return Suitability(name, suits, tuple(no or care + good or ["No reason against it was found."]))


def _obstacles(can: Capabilities, facts: TableFacts) -> list[str]:
    found = []
    if can.pairwise is not None:
        found.append("It takes a square matrix, not a table.")
    if can.counts and not facts.counts:
        found.append("It takes counts, such as word counts, and this table holds other numbers.")
    if facts.sparse and not can.sparse:
        found.append("It does not take sparse rows.")
    if can.quadratic and facts.n_rows > _MOST_FOR_MATRIX:
        found.append(f"It stores all distances between rows, which is too much beyond {_MOST_FOR_MATRIX:,} rows.")
    if facts.contradictory and can.must_link == "hard" and not can.prices_doubt:
        found.append("It refuses constraints that contradict each other.")
    return found


def _cautions(can: Capabilities, facts: TableFacts) -> list[str]:
    found = []
    unused = [_named(kind) for kind in facts.given if getattr(can, kind) == "ignored"]
    if unused:
        found.append(f"It ignores {listed(unused, 'and')}.")
    seeds = [_named(kind) for kind in facts.given if getattr(can, kind) == "seeds"]
    if seeds:
        found.append(f"It uses {listed(seeds, 'and')} only to initialise the clusters.")
    if facts.shape == "any" and not can.any_shape:
        found.append("It looks for round clusters.")
    if can.tables and facts.noise < _MOST_OUTSIDE:
        found.append("It is made for very many small groups, and most of these rows lie in dense regions.")
    if can.embeds and not _suits_network(facts):
        found.append("It trains a network, for thousands of rows such as images and long texts.")
    if facts.doubtful and can.must_link == "hard" and not can.prices_doubt:
        found.append("It treats doubtful pairs as certain: set min_confidence.")
    if facts.contradictory and can.prices_doubt:
        found.append("It refuses contradictions among certain pairs.")
    return found


def _merits(can: Capabilities, facts: TableFacts) -> list[str]:
    found = []
    hard = [_named(kind) for kind in facts.given if getattr(can, kind) == "hard"]
    soft = [_named(kind) for kind in facts.given if getattr(can, kind) == "soft"]
    if hard:
        found.append(f"It keeps all {listed(hard, 'and')}.")
    if soft:
        found.append(f"It prices violated {listed(soft, 'and')}.")
    if facts.shape == "any" and can.any_shape:
        found.append("It finds clusters of any shape.")
    if facts.shape == "round" and not can.any_shape and not can.counts:
        found.append("It looks for round clusters, as these are.")
    if can.embeds and _suits_network(facts):
        found.append("It learns an embedding, which suits images and long texts.")
    if not can.needs_n_clusters:
        found.append("It needs no number of clusters.")
    if can.noise:
        found.append("It leaves rows out as noise.")
    return found


def _suits_network(facts: TableFacts) -> bool:
    return facts.n_rows >= _LEAST_FOR_NETWORK and facts.n_columns >= _LEAST_COLUMNS_FOR_NETWORK


def _named(kind: str) -> str:
    return _KINDS.get(kind, kind.replace("_", " "))
