"""The single statements of constraints, which a repair drops or keeps, and their prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clew.constraints._arrays import FloatArray, IntArray
from clew.exceptions import ParameterError

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints

BoolArray = npt.NDArray[np.bool_]

# Kinds of statements, in the order in which they are numbered and reported.
KINDS = ("must_link", "cannot_link", "label", "must_group", "cannot_group")


@dataclass(frozen=True)
class Statement:
    """One statement of `Constraints` that `repair` may drop.

    Attributes
    ----------
    kind : {"must_link", "cannot_link", "label", "must_group", "cannot_group"}
    index : int
        Position in `must_link` or `cannot_link`; the row number of a label or of a membership in a group.
    rows : tuple
        The user's ids of the two rows of a pair, or of the one row of a label or membership.
    price : float
        Price of dropping it.
    confidence : float
        Confidence of a pair; 1 for labels and groups.
    group : object
        The class of a label, or the number of a group. None for pairs.
    column : int
        The column of a group in `must_groups` or `cannot_groups`. 0 for all others.
    """

    kind: str
    index: int
    rows: tuple[Any, ...]
    price: float
    confidence: float = 1.0
    group: Any = None
    column: int = 0

    def __str__(self) -> str:
        names = " and ".join(map(str, self.rows))
        return {
            "must_link": f"{names} belong together",
            "cannot_link": f"{names} do not belong together",
            "label": f"{names} is of class {self.group}",
            "must_group": f"{names} is in must-group {self.group}",
            "cannot_group": f"{names} is in cannot-group {self.group}",
        }[self.kind]


class Statements:
    """All statements of some constraints as parallel arrays, in the order of `KINDS`.

    For ``must_link=[(0, 1)], labels=[-1, 5]``: ``kind=[0, 2]``, ``index=[0, 1]``, ``column=[0, 0]``.
    """

    def __init__(self, constraints: Constraints) -> None:
        self.constraints = constraints
        entries: list[tuple[IntArray, IntArray | None]] = [
            (np.arange(len(pairs)), None) for pairs in (constraints.must_link, constraints.cannot_link)
        ]
        labels = np.empty(0, np.int64) if constraints.labels is None else np.flatnonzero(constraints.labels >= 0)
        entries.append((labels, None))
        for groups in (constraints.must_groups, constraints.cannot_groups):
            table = np.empty((0, 1), np.int64) if groups is None else groups.reshape(len(groups), -1)
            index, column = np.nonzero(table >= 0)
            entries.append((index, column))
        self.counts = [len(index) for index, _ in entries]
        self.kind = np.repeat(np.arange(len(KINDS)), self.counts)
        self.index = np.concatenate([index for index, _ in entries]).astype(np.int64)
        self.column = np.concatenate([np.zeros_like(i) if c is None else c for i, c in entries]).astype(np.int64)
        confidences = [constraints.must_link_confidence, constraints.cannot_link_confidence]
        self.confidence = np.concatenate([*confidences, np.ones(sum(self.counts[2:]))])

    def without(self, gone: BoolArray) -> Constraints:
        """The constraints without some statements."""
        given = self.constraints
        if not gone.any():
            return given
        of_kind = np.split(gone, np.cumsum(self.counts)[:-1])
        changes: dict[str, Any] = {}
        for number, name in enumerate(KINDS[:2]):
            kept = ~of_kind[number]
            changes[name] = getattr(given, name)[kept]
            changes[f"{name}_confidence"] = getattr(given, f"{name}_confidence")[kept]
        for number, name in ((2, "labels"), (3, "must_groups"), (4, "cannot_groups")):
            if of_kind[number].any():
                values = getattr(given, name).copy()
                lost = (self.kind == number) & gone
                place = (self.index[lost],) if values.ndim == 1 else (self.index[lost], self.column[lost])
                values[place] = -1
                changes[name] = values
        return given._replace(**changes)

    def describe(self, number: int, price: float) -> Statement:
        """A statement in the user's ids."""
        given = self.constraints
        kind, index, column = KINDS[self.kind[number]], int(self.index[number]), int(self.column[number])
        rows, group = (index,), None
        if kind in KINDS[:2]:
            rows = tuple(getattr(given, kind)[index].tolist())
        elif kind == "label":
            assert given.labels is not None
            group = int(given.labels[index]) if given.classes is None else given.classes[given.labels[index]]
        else:
            groups = getattr(given, f"{kind}s")
            group = int(groups[index] if groups.ndim == 1 else groups[index, column])
        names = tuple(given.describe_row(row) for row in rows)
        return Statement(kind, index, names, float(price), float(self.confidence[number]), group, column)

    def prices(self, price: Any) -> FloatArray:
        """Price of each statement, from any form that `Constraints.repair` accepts."""
        if price is None:
            return self.confidence
        if hasattr(price, "must_link_score"):
            return self._from_scores(price)
        if isinstance(price, Mapping):
            return self._from_mapping(price)
        if callable(price):
            return self._from_function(price)
        values = self._numbers(price, "price", (self.counts[0] + self.counts[1],))
        return np.concatenate([values, self.confidence[len(values) :]])

    def _from_scores(self, impact: Any) -> FloatArray:
        """Confidence divided by (1 + score in units of moving a typical row): suspicious statements are cheaper."""
        scores = np.zeros(len(self.kind))
        for number, name in enumerate(KINDS):
            given = getattr(impact, f"{name}_score")
            chosen = self.kind == number
            if given is not None or chosen.any():
                given = np.asarray(() if given is None else given, dtype=np.float64)
                scores[chosen] = self._of_kind(given, number, f"{name}_score of the impact")
        if not np.isfinite(scores).all():
            raise ParameterError("price in repair: the scores of the impact hold NaN or infinity.")
        return self.confidence / (1 + np.abs(scores) / impact.unit)

    def _from_mapping(self, price: Mapping[Any, Any]) -> FloatArray:
        unknown = [key for key in price if key not in KINDS]
        if unknown:
            raise ParameterError(f"price in repair has the key {unknown[0]!r}: expected {', '.join(KINDS)}.")
        prices = self.confidence.copy()
        for number, name in enumerate(KINDS):
            if name in price:
                where = f"price[{name!r}]"
                if not self.counts[number]:
                    if np.size(price[name]):
                        raise ParameterError(f"{where} in repair: there is no statement of this kind. Leave it out.")
                    continue
                if isinstance(price[name], Real):
                    prices[self.kind == number] = self._numbers(price[name], where, ())
                else:
                    given = self._numbers(price[name], where, None)
                    prices[self.kind == number] = self._of_kind(given, number, where)
        return prices

    def _of_kind(self, given: FloatArray, number: int, where: str) -> FloatArray:
        """Values of the statements of one kind, given one per pair, one per row, or one per row and column."""
        if number < 2:
            shape: tuple[int, ...] = (self.counts[number],)
            place: Any = self.index[self.kind == number]
        else:
            value = getattr(self.constraints, f"{KINDS[number]}s")
            rows, columns = self.index[self.kind == number], self.column[self.kind == number]
            shape = value.shape
            if given.ndim == 2 and value.ndim == 1 and given.shape[1] == 1:
                given = given[:, 0]
            place = rows if value.ndim == 1 else (rows, columns)
        if given.shape != shape:
            each = "pair" if number < 2 else "row"
            raise ParameterError(f"{where} in repair has shape {given.shape}: expected {shape}, one per {each}.")
        return given[place]

    def _from_function(self, price: Callable[[Statement], Any]) -> FloatArray:
        found = []
        for number in range(len(self.kind)):
            statement = self.describe(number, self.confidence[number])
            value = price(statement)
            if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
                raise ParameterError(f"price({statement}) gives {value!r} in repair: expected a number >= 0.")
            found.append(float(value))
        return np.array(found, dtype=np.float64)

    @staticmethod
    def _numbers(given: Any, where: str, shape: tuple[int, ...] | None) -> FloatArray:
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(
                f"{where} in repair is {given!r}: expected numbers, a dict of them by kind, a function of a statement, "
                "or the result of clew.audit.impact."
            ) from None
        if shape is not None and values.shape != shape:
            raise ParameterError(
                f"{where} in repair has shape {values.shape}: expected {shape}, one per must-link and then one per "
                "cannot-link. A dict prices labels and groups too."
            )
        wrong = np.argwhere(~(values >= 0))
        if len(wrong):
            value = values[tuple(wrong[0])]
            raise ParameterError(
                f"{where}{wrong[0].tolist() if values.ndim else ''} in repair is {value:g}: a price is a number >= 0. "
                "An infinite price means never to drop it."
            )
        return values
