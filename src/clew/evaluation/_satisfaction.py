"""How much of the given knowledge a labelling keeps, counted in pairs of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clew.constraints import Constraints
from clew.evaluation._contingency import Contingency, Integers, distinct, encode, label_array
from clew.evaluation._shared_keys import RowPairs, clusters, count_sharing, key_columns


class SatisfiedPairs(NamedTuple):
    """Pairs of rows stated by one kind of knowledge: how many hold, and how many there are."""

    satisfied: int
    total: int

    @property
    def fraction(self) -> float:
        """`satisfied / total`; 1.0 when nothing is stated."""
        return self.satisfied / self.total if self.total else 1.0


class ConstraintSatisfaction(NamedTuple):
    """Pairs kept and stated, by kind; a pair stated by two kinds counts in both."""

    must_link: SatisfiedPairs
    cannot_link: SatisfiedPairs
    labels: SatisfiedPairs
    must_groups: SatisfiedPairs
    cannot_groups: SatisfiedPairs

    @property
    def satisfied(self) -> int:
        """Pairs that hold, over all kinds."""
        return sum(kind.satisfied for kind in self)

    @property
    def total(self) -> int:
        """Pairs stated, over all kinds."""
        return sum(kind.total for kind in self)

    @property
    def fraction(self) -> float:
        """`satisfied / total`; 1.0 when nothing is stated."""
        return SatisfiedPairs(self.satisfied, self.total).fraction


def constraint_satisfaction(labels: npt.ArrayLike, constraints: Any) -> ConstraintSatisfaction:
    """Count the stated pairs of rows that a labelling keeps.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Cluster of each row. A row with the number -1 is noise: it is together with nobody, so it breaks its
        must-links and keeps its cannot-links.
    constraints : Constraints or anything `Constraints.of` takes
        What is known about these rows.

    Returns
    -------
    ConstraintSatisfaction
        For each of `must_link`, `cannot_link`, `labels`, `must_groups` and `cannot_groups` the pairs
        `satisfied` and in `total`; `satisfied`, `total` and `fraction` over all kinds.

    Notes
    -----
    Given pairs count once, whatever their direction, however often they were given, and whatever their
    confidence. Two labelled rows state a pair: together if their labels are equal, apart if not; the label
    values need not be the cluster numbers. Groups state every pair of their rows, and a pair that shares a
    group in several columns counts once. Entailed pairs, soft groups and triplets are not counted.
    Groups are never expanded: time O(n log n + pairs) for each overlap of group columns, memory O(n + pairs).

    Examples
    --------
    >>> from clew import Constraints
    >>> from clew.evaluation import constraint_satisfaction
    >>> known = Constraints(must_link=[(0, 1), (1, 2)], cannot_link=[(0, 3)])
    >>> kept = constraint_satisfaction([0, 0, 1, 1], known)
    >>> kept.must_link
    SatisfiedPairs(satisfied=1, total=2)
    >>> round(kept.fraction, 3)
    0.667
    """
    array = label_array(labels, "labels")
    codes = _noise_alone(encode(array, "labels"), np.asarray(array == -1, dtype=bool))
    known = Constraints.of(constraints, n_samples=codes.size)
    must_link = RowPairs.of(known.must_link, codes.size)
    cannot_link = RowPairs.of(known.cannot_link, codes.size)
    must_groups = _shared(codes, known.must_groups)
    cannot_groups = _shared(codes, known.cannot_groups)
    return ConstraintSatisfaction(
        must_link=SatisfiedPairs(must_link.count_together(codes), must_link.first.size),
        cannot_link=_apart(SatisfiedPairs(cannot_link.count_together(codes), cannot_link.first.size)),
        labels=_agreement(codes, known.labels),
        must_groups=must_groups,
        cannot_groups=_apart(cannot_groups),
    )


def _noise_alone(codes: Integers, is_noise: npt.NDArray[np.bool_]) -> Integers:
    return np.where(is_noise, codes.size + np.arange(codes.size), codes)


def _apart(together: SatisfiedPairs) -> SatisfiedPairs:
    return SatisfiedPairs(together.total - together.satisfied, together.total)


def _shared(codes: Integers, groups: Integers | None) -> SatisfiedPairs:
    keys = key_columns(groups)
    everyone = clusters(np.zeros_like(codes))
    return SatisfiedPairs(count_sharing(clusters(codes), keys), count_sharing(everyone, keys))


def _agreement(codes: Integers, labels: Integers | None) -> SatisfiedPairs:
    if labels is None:
        return SatisfiedPairs(0, 0)
    known = np.flatnonzero(labels != -1)
    table = Contingency.of(distinct(labels[known]).codes, distinct(codes[known]).codes)
    return SatisfiedPairs(table.pair_counts.agreeing, table.pair_counts.total)
