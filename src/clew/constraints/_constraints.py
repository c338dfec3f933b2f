"""`Constraints`: what people know about the rows, as one immutable value."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy import sparse

from clew._tables import write_table
from clew.constraints import _arrays, _feasibility, _restrict
from clew.constraints._arrays import FloatArray, IntArray, dense, freeze, group_columns
from clew.constraints._closure import Closure, closure, must_links
from clew.constraints._conflicts import Conflict, find_conflicts
from clew.constraints._feasibility import Feasibility
from clew.constraints._geometry import pairs_closer_than, pairs_farther_than
from clew.constraints._inputs import arguments_from
from clew.constraints._records import records_of, row_lookup
from clew.constraints._sampling import sample_pairs
from clew.exceptions import ConstraintError, ContradictoryConstraintsError, ParameterError
from clew.solvers.coloring import WORK_LIMIT


class Constraints:
    """What is known about the rows: which belong together, which never do.

    Immutable, and about row positions; `of`, `from_file` and ids translate from the user's own names. `len(c)` is
    the number of rows and ``c[rows]`` keeps what is entailed among them, so scikit-learn slices it like any
    row-aligned metadata.

    Parameters
    ----------
    must_link, cannot_link : array-like of shape (n_pairs, 2)
        Pairs of row positions, in any order and direction; repeats are fine.
    labels : array-like of shape (n_samples,), optional
        Class of each row, -1 where unknown. Rows of one class belong together, rows of two never; methods keep the
        class numbers in `labels_`.
    must_link_confidence, cannot_link_confidence : array-like or float, optional
        In (0, 1]; 1.0, the default, means certain.
    must_groups, cannot_groups : array-like of shape (n_samples,) or (n_samples, n_columns), optional
        Group of each row, -1 for none. Rows that share a must-group belong together; rows that share a cannot-group
        (two faces in one photo, two records of one source) never do. Never expanded to pairs.
    soft_groups : sparse or dense matrix of shape (n_samples, n_groups), optional
        Strengths in [0, 1] with which rows belong to groups (Law 2004); each row sums to at most 1.
    triplets : array-like of shape (n_triplets, 3), optional
        Rows (a, b, c): a is closer to b than to c.
    n_samples : int, optional
        Number of rows. Needed for `len` and slicing when nothing row-aligned is given.
    ids : array-like of shape (n_samples,), optional
        The user's names of the rows, unique; used in files and messages.

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
    ) -> None:
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
        self.__setstate__(values)
        object.__setattr__(self, "n_samples", self._agreed_length(n_samples))
        self._check_range("n_samples={n}")
        if self.ids is not None:
            row_lookup(self.ids)  # refuses repeated ids

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
                raise ConstraintError(f"{name} is about {agreed} rows but {other} about {length}. They must agree.")
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

    # -- other ways in ---------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, given: Any, *, n_samples: int | None = None, ids: Any = None, table: Any = None) -> Constraints:
        """Constraints from any form that `fit` accepts.

        Parameters
        ----------
        given : Constraints, array, dict, tuple, frame, sparse matrix, path or None
            Labels (one per row, -1 unknown); a dict with `must_link`, `cannot_link` (or `ml`, `cl`), `labels`,
            `must_groups`, `cannot_groups`, …; pairs with answers ``(pairs, y)``, y in {1, -1}; a pandas, polars or
            Arrow frame with columns `id_1`, `id_2`, `answer`, or as splink and zingg make them; dedupe's dict of
            records; a manager of cognitivefactory; a signed sparse matrix; what `read_answers` gives; the path of a
            file, ours or of another tool.
        n_samples : int, optional
            Number of rows the knowledge is about.
        ids : array-like, optional
            The user's row ids; pairs in dicts, frames and files are then read as ids.
        table : mapping of id to record, optional
            The user's rows, to find whole records in (dedupe, zingg).
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
        """Everything that labels say (-1 unknown): same class together, different classes apart."""
        return cls(labels=y)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], *, ids: Any = None, n_samples: int | None = None, table: Any = None
    ) -> Constraints:
        """Read a csv, tsv, jsonl or parquet file with columns ``id_1, id_2, answer[, confidence, …]``.

        Files of splink, zingg, dedupe, Label Studio, Argilla, Prodigy, cognitivefactory, COP-Kmeans and metric-learn
        are known by their content; `read_answers` keeps who answered, when and why. Without `ids`, the columns hold
        row positions. `table`, the rows by id, is for files of whole records. "unsure" states nothing and is passed
        over.
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
        """Answers about `n` random pairs of rows, as an oracle that knows the labels `y` would give them.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels; rows with -1 are not asked about.
        n : int
            Number of different pairs.
        balance : float, optional
            Fraction of pairs with one label (rounded); None draws pairs evenly.
        noise : float
            Probability with which each answer is turned round.
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
        """Must-links between all rows strictly closer than `delta`: clusters are then at least `delta` apart."""
        return cls(must_link=pairs_closer_than(X, delta, limit), n_samples=len(X))

    @classmethod
    def max_diameter(cls, X: Any, gamma: float, *, limit: int = 10_000_000) -> Self:
        """Cannot-links between all rows farther apart than `gamma`; refused, with the count, beyond `limit` pairs."""
        return cls(cannot_link=pairs_farther_than(X, gamma, limit), n_samples=len(X))

    # -- rows ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        if self.n_samples is None:
            raise ConstraintError(
                "These constraints do not say how many rows they are about, so they have no length and cannot be "
                "sliced. Pass n_samples=len(X) when you build them."
            )
        return self.n_samples

    @property
    def shape(self) -> tuple[int]:
        """``(n_samples,)``; makes scikit-learn slice constraints as it slices row-aligned arrays."""
        return (len(self),)

    def __bool__(self) -> bool:
        return any(
            value is not None and value.shape[0] > 0
            for value in (self.must_link, self.cannot_link, self.triplets, self.labels, self.must_groups,
                          self.cannot_groups, self.soft_groups)
        )  # fmt: skip

    @property
    def n_rows(self) -> int:
        """`n_samples`, or as many rows as the pairs name when that is unknown."""
        if self.n_samples is not None:
            return self.n_samples
        return 1 + max(int(a.max(initial=-1)) for a in (self.must_link, self.cannot_link, self.triplets))

    def about(self, n_samples: int) -> Constraints:
        """The same knowledge, bound to data of `n_samples` rows; refused where it does not fit."""
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
        """The user's id of a row, or its number where there are no ids."""
        return (
            int(row) if self.ids is None else self.ids[row].item() if hasattr(self.ids[row], "item") else self.ids[row]
        )

    def restrict(self, rows: Any) -> Constraints:
        """Constraints among some rows, numbered in their order; what dropped rows entailed is kept.

        Classes and cannot-groups of dropped rows pass on through certain must-links only (confidence 1); pairs pass on
        through all, at the confidence of the weakest link.
        `rows` is anything that indexes an array: positions, a mask, a slice. A row named twice is must-linked to its
        copy.
        """
        positions = np.arange(len(self))[rows]
        return type(self)(**_restrict.restricted(self, np.atleast_1d(positions)))

    def __getitem__(self, rows: Any) -> Constraints:
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:  # as scikit-learn slices arrays
            rows = rows[0]
        return self.restrict(rows)

    __iter__ = None  # row by row makes no sense, and would be slow

    # -- joining and choosing --------------------------------------------------------------------------------------

    def __or__(self, other: Constraints) -> Constraints:
        """Both at once. Rows known to both keep one class; groups of both are kept side by side."""
        if not isinstance(other, Constraints):
            return NotImplemented
        n_samples = self.n_samples if self.n_samples is not None else other.n_samples
        if None not in (self.n_samples, other.n_samples) and self.n_samples != other.n_samples:
            raise ConstraintError(f"Constraints about {self.n_samples} rows cannot join {other.n_samples} rows.")
        if self.ids is not None and other.ids is not None and not np.array_equal(self.ids, other.ids):
            raise ConstraintError("The two constraints name their rows differently. Build both with the same ids.")
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
            labels=self._joined_labels(other),
            must_groups=_side_by_side(self.must_groups, other.must_groups),
            cannot_groups=_side_by_side(self.cannot_groups, other.cannot_groups),
            soft_groups=_joined_soft_groups(self.soft_groups, other.soft_groups),
            n_samples=n_samples,
            ids=self.ids if self.ids is not None else other.ids,
        )

    def _joined_labels(self, other: Constraints) -> IntArray | None:
        if self.labels is None or other.labels is None:
            return self.labels if other.labels is None else other.labels
        clash = (self.labels >= 0) & (other.labels >= 0) & (self.labels != other.labels)
        if clash.any():
            row = int(np.flatnonzero(clash)[0])
            raise ContradictoryConstraintsError(
                f"Row {self.describe_row(row)} has class {self.labels[row]} in one and {other.labels[row]} in the "
                "other. Remove one."
            )
        return cast(IntArray, np.maximum(self.labels, other.labels))

    def _replace(self, **changes: Any) -> Constraints:
        return type(self)(**{**self.__getstate__(), **changes})

    def at_least(self, confidence: float) -> Constraints:
        """Without the pairs that are less sure than `confidence`."""
        must, cannot = self.must_link_confidence >= confidence, self.cannot_link_confidence >= confidence
        if must.all() and cannot.all():
            return self
        return self._replace(
            must_link=self.must_link[must],
            must_link_confidence=self.must_link_confidence[must],
            cannot_link=self.cannot_link[cannot],
            cannot_link_confidence=self.cannot_link_confidence[cannot],
        )

    # -- what follows ----------------------------------------------------------------------------------------------

    @cached_property
    def _closure(self) -> Closure:
        return closure(self)

    def closure(self) -> Closure:
        """Components of must-linked rows and the cannot-links between them, compressed; computed once.

        All pairs count, whatever their confidence; see `at_least`.
        """
        return self._closure

    def conflicts(self, limit: int | None = None) -> list[Conflict]:
        """Contradictions: a cannot-link and the shortest chain of must-links against it, each; at most `limit`."""
        return find_conflicts(self, limit)

    def require_consistent(self) -> None:
        """Raise `ContradictoryConstraintsError` with the first chain, unless there is no contradiction."""
        found = self.conflicts(limit=1)
        if found:
            raise ContradictoryConstraintsError(str(found[0]), found)

    def check(self, n_clusters: int, *, work_limit: int = WORK_LIMIT) -> Feasibility:
        """Whether some labelling with `n_clusters` clusters satisfies everything.

        Feasible with a witness, infeasible with rows that prove it, or "unknown" at `work_limit`, which counts steps,
        not seconds.
        """
        return _feasibility.check(self, n_clusters, work_limit)

    def violations(self, labels: Any) -> tuple[IntArray, IntArray]:
        """The must-links and the cannot-links that a labelling breaks, as two arrays of pairs.

        Given pairs as they are; for groups and classes, one pair per row that breaks them, not all pairs. Noise (-1)
        is with nobody.
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

    # -- out -------------------------------------------------------------------------------------------------------

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write csv, tsv, jsonl or parquet, in the user's ids where known; `from_file` reads it back."""
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


def _side_by_side(first: IntArray | None, second: IntArray | None) -> IntArray | None:
    if first is None or second is None:
        return first if second is None else second
    return np.column_stack([first, second])


def _joined_soft_groups(first: sparse.csr_array | None, second: sparse.csr_array | None) -> sparse.csr_array | None:
    if first is None or second is None:
        return first if second is None else second
    return sparse.hstack([first, second], format="csr")
