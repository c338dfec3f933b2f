"""`Constraints`: an immutable set of must-links, cannot-links, labels and groups."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy import sparse

from clew._tables import write_table
from clew.constraints import _arrays, _feasibility, _repair, _restrict
from clew.constraints._arrays import FloatArray, IntArray, dense, freeze, group_columns
from clew.constraints._closure import Closure, closure, must_links
from clew.constraints._conflicts import Contradiction, find_conflicts
from clew.constraints._feasibility import Feasibility
from clew.constraints._geometry import pairs_closer_than, pairs_farther_than
from clew.constraints._inputs import arguments_from
from clew.constraints._near import NearNeighbours
from clew.constraints._records import records_of, row_lookup
from clew.constraints._repair import Repair
from clew.constraints._sampling import sample_pairs
from clew.exceptions import ConstraintError, ContradictoryConstraintsError, ParameterError
from clew.solvers.coloring import WORK_LIMIT


class Constraints:
    """An immutable set of constraints: rows that belong together, and rows that do not.

    Rows are positions. `of` and `from_file` translate the user's ids to positions. `len(c)` is the number of rows.
    ``c[rows]`` restricts the constraints to some rows and keeps all entailed pairs among them, so that scikit-learn
    slices constraints like any row-aligned metadata.

    Parameters
    ----------
    must_link, cannot_link : array-like of shape (n_pairs, 2)
        Pairs of row positions, in any order and direction. Repeated pairs are allowed.
    labels : array-like of shape (n_samples,), optional
        Class of each row, a number or a name. -1, NaN, None and "" mean unknown. Rows of one class belong together,
        rows of two classes do not. Methods use the same numbers or names in `labels_`. Named classes are numbered in
        sorted order.
    must_link_confidence, cannot_link_confidence : array-like or float, optional
        In (0, 1]; 1.0, the default, means certain.
    must_groups, cannot_groups : array-like of shape (n_samples,) or (n_samples, n_columns), optional
        Group of each row, a number or a name. -1, NaN, None and "" mean none. Rows that share a must-group belong
        together. Rows that share a cannot-group (two faces in one photo, two records of one source) do not. Names are
        numbered in sorted order. Groups are never expanded to pairs.
    soft_groups : sparse or dense matrix of shape (n_samples, n_groups), optional
        Membership strengths of rows in groups, in [0, 1] (Law 2004). Each row sums to at most 1.
    triplets : array-like of shape (n_triplets, 3), optional
        Rows (a, b, c): a is closer to b than to c.
    n_samples : int, optional
        Number of rows. Needed for `len` and slicing if no row-aligned argument is given.
    ids : array-like of shape (n_samples,), optional
        Unique ids of the rows, used in files and messages.
    classes : sequence of str, optional
        Name of each class number in `labels`. Default: taken from `labels` if these are names.

    Examples
    --------
    >>> from clew import Constraints
    >>> known = Constraints(must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)], n_samples=5)
    >>> known.closure().component_of
    array([0, 0, 0, 1, 2])
    >>> bool(known.check(2))
    True
    """

    must_link: IntArray
    cannot_link: IntArray
    must_link_confidence: FloatArray
    cannot_link_confidence: FloatArray
    labels: IntArray | None
    must_groups: IntArray | None
    cannot_groups: IntArray | None
    soft_groups: sparse.csr_array | None
    triplets: IntArray
    n_samples: int | None
    ids: np.ndarray[Any, Any] | None
    classes: np.ndarray[Any, Any] | None

    def __init__(
        self,
        must_link: Any = (),
        cannot_link: Any = (),
        *,
        labels: Any = None,
        must_link_confidence: Any = None,
        cannot_link_confidence: Any = None,
        must_groups: Any = None,
        cannot_groups: Any = None,
        soft_groups: Any = None,
        triplets: Any = None,
        n_samples: int | None = None,
        ids: Any = None,
        classes: Any = None,
    ) -> None:
        if classes is None and labels is not None:
            labels, classes = _arrays.named_classes(labels)
        values: dict[str, Any] = {
            "must_link": _arrays.as_rows_together(must_link, "must_link", 2),
            "cannot_link": _arrays.as_rows_together(cannot_link, "cannot_link", 2),
            "triplets": _arrays.as_rows_together(triplets, "triplets", 3),
            "labels": _arrays.as_labels(labels),
            "must_groups": _arrays.as_groups(must_groups, "must_groups"),
            "cannot_groups": _arrays.as_groups(cannot_groups, "cannot_groups"),
            "ids": _arrays.as_ids(ids),
            "soft_groups": _arrays.as_soft_groups(soft_groups),
        }
        for kind, given in (("must_link", must_link_confidence), ("cannot_link", cannot_link_confidence)):
            name = f"{kind}_confidence"
            values[name] = _arrays.as_confidence(given, name, len(values[kind]))
        values["classes"] = _arrays.as_class_names(classes, values["labels"])
        self.__setstate__(values)
        object.__setattr__(self, "n_samples", self._agreed_length(n_samples))
        self._check_range("n_samples={n}")
        if self.ids is not None:
            row_lookup(self.ids)  # raises if an id is repeated

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Constraints are immutable: {name} cannot be set. Build new ones, or join two with |.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Constraints are immutable: {name} cannot be removed.")

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Constraints.__annotations__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray) or sparse.issparse(value):
                freeze(value)
            object.__setattr__(self, name, value)

    def _agreed_length(self, n_samples: int | None) -> int | None:
        lengths = {"n_samples": n_samples}
        for name in ("labels", "must_groups", "cannot_groups", "soft_groups", "ids"):
            value = getattr(self, name)
            if value is not None:
                lengths[name] = int(value.shape[0])
        known = [(name, length) for name, length in lengths.items() if length is not None]
        if not known:
            return None
        name, agreed = known[0]
        if isinstance(agreed, bool) or not isinstance(agreed, int | np.integer) or agreed < 0:
            raise ConstraintError(f"n_samples={agreed!r}: expected the number of rows.")
        for other, length in known[1:]:
            if length != agreed:
                raise ConstraintError(
                    f"The number of rows is {agreed} according to {name}, but {length} according to {other}. "
                    "Make them equal."
                )
        return int(agreed)

    def _check_range(self, there_are: str) -> None:
        if self.n_samples is None:
            return
        for name in ("must_link", "cannot_link", "triplets"):
            rows = getattr(self, name)
            if rows.size and rows.max() >= self.n_samples:
                place = int(np.flatnonzero((rows >= self.n_samples).any(axis=1))[0])
                have = there_are.format(n=self.n_samples)
                raise ConstraintError(
                    f"{name}[{place}] names row {rows[place].max()}, but {have} (0 to {self.n_samples - 1}). "
                    "Pairs are row positions, not ids."
                )

    # -- constructors ----------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, given: Any, *, n_samples: int | None = None, ids: Any = None, table: Any = None) -> Constraints:
        """Build constraints from any form that `fit` accepts.

        Parameters
        ----------
        given : Constraints, array, dict, tuple, frame, sparse matrix, path or None
            Labels (one per row, -1 unknown); a dict with `must_link`, `cannot_link` (or `ml`, `cl`), `labels`,
            `must_groups`, `cannot_groups`, …; pairs with answers ``(pairs, y)``, y in {1, -1}; a pandas, polars or
            Arrow frame with columns `id_1`, `id_2`, `answer`, or with the columns of splink or zingg; dedupe's dict of
            records; a manager of cognitivefactory; a signed sparse matrix; the result of `read_answers`; the path of a
            file of clew or of another tool.
        n_samples : int, optional
            Number of rows.
        ids : array-like, optional
            The user's row ids. Pairs in dicts, frames and files are then read as ids.
        table : mapping of id to record, optional
            The user's rows by id, to match whole records with (dedupe, zingg).
        """
        if given is None:
            return cls(n_samples=n_samples, ids=ids)
        if not isinstance(given, Constraints):
            given = cls(**arguments_from(given, None if n_samples is None else int(n_samples), ids, table))
        elif ids is not None and given.ids is None:
            given = given._replace(ids=ids)
        return given.about(n_samples) if n_samples is not None else given

    @classmethod
    def from_labels(cls, y: Any) -> Self:
        """Build constraints from labels (-1 unknown): same class together, different classes apart."""
        return cls(labels=y)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, ids: Any = None, n_samples: int | None = None, table: Any = None
    ) -> Constraints:
        """Read a csv, tsv, jsonl or parquet file with columns ``id_1, id_2, answer[, confidence, …]``.

        Files of splink, zingg, dedupe, Label Studio, Argilla, Prodigy, cognitivefactory, COP-Kmeans and metric-learn
        are detected by their content. `read_answers` also returns annotators, times and comments. Without `ids`, the
        columns hold row positions. `table`, the rows by id, is for files of whole records. "unsure" answers are
        skipped.
        """
        return cls.of(path, ids=ids, n_samples=n_samples, table=table)

    @classmethod
    def sample(
        cls,
        y: Any,
        n: int,
        *,
        balance: float | None = None,
        noise: float = 0.0,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> Self:
        """Sample answers about `n` random pairs of rows from the true labels `y`.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels. Rows with -1 are left out.
        n : int
            Number of different pairs.
        balance : float, optional
            Fraction of must-links (rounded). None draws uniformly from all pairs.
        noise : float
            Probability that an answer is flipped.
        random_state : int, Generator, RandomState or None
        """
        if isinstance(random_state, np.random.RandomState):
            random_state = int(random_state.randint(2**31 - 1))
        is_seed = isinstance(random_state, int | np.integer) and random_state >= 0
        if not (random_state is None or is_seed or isinstance(random_state, np.random.Generator)):
            raise ParameterError(f"random_state={random_state!r} in sample: expected an integer >= 0, or a generator.")
        pairs, same = sample_pairs(y, n, balance, noise, np.random.default_rng(random_state))
        return cls(must_link=pairs[same], cannot_link=pairs[~same], n_samples=len(y))

    @classmethod
    def min_separation(cls, X: Any, delta: float, *, limit: int = 10_000_000) -> Self:
        """Must-link all rows strictly closer than `delta`, so that clusters are at least `delta` apart."""
        return cls(must_link=pairs_closer_than(X, delta, limit), n_samples=len(X))

    @classmethod
    def max_diameter(cls, X: Any, gamma: float, *, limit: int = 10_000_000) -> Self:
        """Cannot-link all rows farther apart than `gamma`. Raises if there are more than `limit` pairs."""
        return cls(cannot_link=pairs_farther_than(X, gamma, limit), n_samples=len(X))

    @staticmethod
    def near_neighbours(X: Any, epsilon: float, *, ids: Any = None) -> NearNeighbours:
        """State that every row has a cluster-mate within `epsilon` (survey 3.2.1, the epsilon-constraint).

        The epsilon-constraint is a disjunction of must-links for each row, so it is an object of its own.
        `NearNeighbours.violations` checks a labelling, and `NearNeighbours.must_links` turns the constraint into
        must-links. ``COPKMeans(epsilon=...)`` satisfies it.
        """
        return NearNeighbours(X, epsilon, ids=ids)

    # -- rows ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self.n_samples is None:
            raise ConstraintError(
                "The number of rows of these constraints is unknown, so they have no length and cannot be "
                "sliced. Pass n_samples=len(X) when you build them."
            )
        return self.n_samples

    @property
    def shape(self) -> tuple[int]:
        """``(n_samples,)``, so that scikit-learn slices constraints like row-aligned arrays."""
        return (len(self),)

    def __bool__(self) -> bool:
        return any(
            value is not None and value.shape[0] > 0
            for value in (self.must_link, self.cannot_link, self.triplets, self.labels, self.must_groups,
                          self.cannot_groups, self.soft_groups)
        )  # fmt: skip

    @property
    def n_rows(self) -> int:
        """`n_samples`, or if it is unknown, the highest row in the constraints plus one."""
        if self.n_samples is not None:
            return self.n_samples
        return 1 + max(int(a.max(initial=-1)) for a in (self.must_link, self.cannot_link, self.triplets))

    def about(self, n_samples: int) -> Constraints:
        """Return the same constraints for data with `n_samples` rows. Raises if they do not fit."""
        if self.n_samples is None:
            bound = self._replace(n_samples=None)
            object.__setattr__(bound, "n_samples", int(n_samples))
            bound._check_range("X has {n} rows")
            return bound
        if self.n_samples != n_samples:
            raise ConstraintError(
                f"constraints are about {self.n_samples} rows, but X has {n_samples}. "
                "Slice them like the data: constraints[rows]."
            )
        return self

    def describe_row(self, row: int) -> Any:
        """The user's id of a row, or its number without ids."""
        return (
            int(row) if self.ids is None else self.ids[row].item() if hasattr(self.ids[row], "item") else self.ids[row]
        )

    def restrict(self, rows: Any) -> Constraints:
        """Restrict the constraints to some rows, renumbered in their order. Pairs entailed by dropped rows are kept.

        A kept row inherits classes and cannot-groups of dropped rows through certain must-links only (confidence 1). It
        inherits pairs through all must-links, with the confidence of the weakest link.
        `rows` is anything that indexes an array: positions, a mask, a slice. A row named twice is must-linked to its
        copy.
        """
        positions = np.arange(len(self))[rows]
        return type(self)(**_restrict.restricted(self, np.atleast_1d(positions)))

    def compact(self) -> tuple[Constraints, IntArray]:
        """The same constraints about the rows that they name, renumbered from 0, and the numbers of these rows.

        The closure of the result takes memory for these rows only.
        """
        rows = _restrict.named_rows(self)
        return type(self)(**_restrict.renumbered(self, rows)), rows

    def __getitem__(self, rows: Any) -> Constraints:
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # as scikit-learn slices arrays
            rows = rows[0]
        return self.restrict(rows)

    __iter__ = None  # single rows are not constraints, and iteration would be slow

    # -- union and selection ---------------------------------------------------------------------------------------

    def __or__(self, other: Constraints) -> Constraints:
        """Return the union of both constraints. Their groups become separate columns. Their classes must agree."""
        if not isinstance(other, Constraints):
            return NotImplemented
        n_samples = self.n_samples if self.n_samples is not None else other.n_samples
        if None not in (self.n_samples, other.n_samples) and self.n_samples != other.n_samples:
            raise ConstraintError(
                f"Constraints of {self.n_samples} rows cannot be joined with constraints of {other.n_samples} rows."
            )
        if self.ids is not None and other.ids is not None and not np.array_equal(self.ids, other.ids):
            raise ConstraintError("The two constraints name their rows differently. Build both with the same ids.")
        labels, classes = self._joined_labels(other)
        return type(self)(
            **{
                name: np.concatenate([getattr(self, name), getattr(other, name)])
                for name in (
                    "must_link",
                    "cannot_link",
                    "triplets",
                    "must_link_confidence",
                    "cannot_link_confidence",
                )
            },
            labels=labels,
            classes=classes,
            must_groups=_side_by_side(self.must_groups, other.must_groups),
            cannot_groups=_side_by_side(self.cannot_groups, other.cannot_groups),
            soft_groups=_joined_soft_groups(self.soft_groups, other.soft_groups),
            n_samples=n_samples,
            ids=self.ids if self.ids is not None else other.ids,
        )

    def _joined_labels(self, other: Constraints) -> tuple[IntArray | None, Any]:
        if self.labels is None or other.labels is None:
            one = self if other.labels is None else other
            return one.labels, one.classes
        if (self.classes is None) != (other.classes is None):
            raise ConstraintError("One of the two numbers its classes, the other names them. Use names in both.")
        mine, theirs, classes = self.labels, other.labels, self.classes
        if classes is not None and other.classes is not None:
            classes = np.unique(np.concatenate([classes, other.classes]))
            mine, theirs = _renumbered(self, classes), _renumbered(other, classes)
        clash = (mine >= 0) & (theirs >= 0) & (mine != theirs)
        if clash.any():
            row = int(np.flatnonzero(clash)[0])
            first, second = (
                (self.labels[row], other.labels[row]) if classes is None else classes[[mine[row], theirs[row]]]
            )
            raise ContradictoryConstraintsError(
                f"Row {self.describe_row(row)} has class {first} in one and {second} in the other. Remove one."
            )
        return cast(IntArray, np.maximum(mine, theirs)), classes

    def numbered(self) -> Constraints:
        """Return the same constraints with numbered classes, in the order of `classes`, instead of named ones."""
        if self.classes is None:
            return self
        return type(self)(**{**self.__getstate__(), "classes": None})

    def _replace(self, **changes: Any) -> Constraints:
        return type(self)(**{**self.__getstate__(), **changes})

    def at_least(self, confidence: float) -> Constraints:
        """Return the constraints without pairs of a lower confidence than `confidence`."""
        must, cannot = self.must_link_confidence >= confidence, self.cannot_link_confidence >= confidence
        if must.all() and cannot.all():
            return self
        return self._replace(
            must_link=self.must_link[must],
            must_link_confidence=self.must_link_confidence[must],
            cannot_link=self.cannot_link[cannot],
            cannot_link_confidence=self.cannot_link_confidence[cannot],
        )

    # -- closure, conflicts and feasibility ------------------------------------------------------------------------

    @cached_property
    def _closure(self) -> Closure:
        return closure(self)

    def closure(self) -> Closure:
        """Components of must-linked rows and the cannot-links between them. Computed once.

        Pairs of any confidence count. Use `at_least` first to drop uncertain pairs.
        """
        return self._closure

    def conflicts(self, limit: int | None = None) -> list[Contradiction]:
        """At most `limit` contradictions, each a cannot-link and the shortest chain of must-links against it."""
        return find_conflicts(self, limit)

    def require_consistent(self) -> None:
        """Raise `ContradictoryConstraintsError` with the first contradiction, if there is one."""
        found = self.conflicts(limit=1)
        if found:
            raise ContradictoryConstraintsError(str(found[0]), found)

    def check(self, n_clusters: int, *, work_limit: int = WORK_LIMIT) -> Feasibility:
        """Check whether a labelling with `n_clusters` clusters satisfies all constraints.

        The result is "feasible" with such a labelling, "infeasible" with rows that prove it, or "unknown" after
        `work_limit` steps.
        """
        return _feasibility.check(self, n_clusters, work_limit)

    def repair(self, n_clusters: int, price: Any = None) -> Repair:
        """Find the cheapest statements to drop so that the others hold with `n_clusters` clusters.

        A statement is a must-link, a cannot-link, the label of one row, or the membership of one row in a must-group
        or a cannot-group. Repeated pairs are dropped together. Soft groups and triplets contradict nothing and stay.

        Parameters
        ----------
        n_clusters : int
        price : array, dict, function, Impact or None
            Price of dropping each statement, at least 0. A statement with an infinite price is always kept. None uses
            the confidences, which are 1 for labels and groups. An array has one price per must-link, then one per
            cannot-link. A dict has prices by kind: `must_link` and `cannot_link` one per pair, and `label`,
            `must_group` and `cannot_group` one per row (per row and column, if there are several), or one number for a
            whole kind. Other kinds are priced by confidence. A function is called with each `Statement`. The result of
            `clew.audit.impact` gives the prices confidence / (1 + score / unit), so that suspicious statements are
            dropped first. `Answers.prices` prices answers by annotator.

        Returns
        -------
        Repair
            The remaining constraints, the dropped statements, their cost, a lower bound on the cost of every repair,
            and whether this repair is proved to be the cheapest.

        Notes
        -----
        Finding the cheapest repair is NP-hard. Connected parts are solved one by one, each as a hitting set of
        contradictions and of proofs that k clusters are not enough. These sets are generated as needed, and HiGHS
        solves the hitting set problem. A part that reaches the work limit is repaired greedily, and the result reports
        the bound.

        Examples
        --------
        >>> from clew import Constraints
        >>> known = Constraints([(0, 1), (1, 2)], [(0, 2)], must_link_confidence=[0.9, 0.6])
        >>> found = known.repair(2)
        >>> print(found)
        Drop 1 statement at a price of 0.6, and the rest holds in 2 clusters. No repair is cheaper.
        >>> print(found.dropped[0])
        1 and 2 belong together
        """
        return _repair.repair(self, n_clusters, price)

    def violations(self, labels: Any) -> tuple[IntArray, IntArray]:
        """The must-links and the cannot-links that a labelling violates, as two arrays of pairs.

        All violated given pairs are listed. For groups and classes there is one pair per violating row, not all pairs.
        A noise row (-1) is together with no other row.
        """
        clusters = np.asarray(labels)
        if clusters.ndim != 1 or len(clusters) < self.n_rows:
            raise ConstraintError(
                f"labels has shape {clusters.shape}, but the constraints are about {self.n_rows} rows."
            )
        together = np.concatenate(must_links(self))
        first, second = clusters[together[:, 0]], clusters[together[:, 1]]
        must = together[(first != second) | (first < 0)]
        apart = [
            self.cannot_link,
            *(self._alike(column, clusters) for column in group_columns(self.cannot_groups)),
        ]
        if self.labels is not None:
            classes = np.where(clusters >= 0, self.labels, -1)
            mixed = _arrays.links_within(np.where(classes >= 0, clusters, -1))
            apart.append(mixed[classes[mixed[:, 0]] != classes[mixed[:, 1]]])
        pairs = np.concatenate(apart)
        cannot = pairs[(clusters[pairs[:, 0]] == clusters[pairs[:, 1]]) & (clusters[pairs[:, 0]] >= 0)]
        return must, cannot

    @staticmethod
    def _alike(groups: IntArray, clusters: IntArray) -> IntArray:
        grouped = (groups >= 0) & (clusters >= 0)
        return _arrays.links_within(
            np.where(grouped, dense(groups) * (int(clusters.max(initial=0)) + 1) + clusters, -1)
        )

    # -- output ----------------------------------------------------------------------------------------------------

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write csv, tsv, jsonl or parquet, with the user's ids if there are any. `from_file` reads the file."""
        write_table(path, records_of(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraints):
            return NotImplemented
        for name in Constraints.__annotations__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if name == "soft_groups" and None not in (mine, theirs):
                if mine.shape != theirs.shape or (mine != theirs).nnz:
                    return False
            elif not (mine is theirs or np.array_equal(mine, theirs)):
                return False
        return True

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [f"must_link={len(self.must_link)}", f"cannot_link={len(self.cannot_link)}"]
        if self.labels is not None:
            parts.append(f"labelled rows={int((self.labels >= 0).sum())}")
        for name in ("must_groups", "cannot_groups"):
            columns = group_columns(getattr(self, name))
            if columns:
                parts.append(f"{name}={sum(len(np.unique(column[column >= 0])) for column in columns)}")
        if self.soft_groups is not None:
            parts.append(f"soft_groups={self.soft_groups.shape[1]}")
        if len(self.triplets):
            parts.append(f"triplets={len(self.triplets)}")
        rows = "unknown rows" if self.n_samples is None else f"{self.n_samples} rows"
        return f"<Constraints on {rows}: {', '.join(parts)}>"


def _renumbered(constraints: Constraints, classes: np.ndarray[Any, Any]) -> IntArray:
    """Renumber the labels by the positions of their names in `classes`."""
    assert constraints.labels is not None and constraints.classes is not None
    places = np.append(np.searchsorted(classes, constraints.classes), -1)
    return cast(IntArray, places[constraints.labels])


def _side_by_side(first: IntArray | None, second: IntArray | None) -> IntArray | None:
    if first is None or second is None:
        return first if second is None else second
    return np.column_stack([first, second])


def _joined_soft_groups(first: sparse.csr_array | None, second: sparse.csr_array | None) -> sparse.csr_array | None:
    if first is None or second is None:
        return first if second is None else second
    return sparse.hstack([first, second], format="csr")
