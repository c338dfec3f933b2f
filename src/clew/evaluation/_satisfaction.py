"""Constraint satisfaction of a labelling, counted in pairs of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clew.constraints import Constraints
from clew.evaluation._contingency import Contingency, Integers, distinct, encode_clusters, label_array
from clew.evaluation._shared_keys import RowPairs, clusters, count_sharing, key_columns


class SatisfiedPairs(NamedTuple):
    """Numbers of satisfied pairs and of all pairs of one kind of constraint."""

    satisfied: int
    total: int

    @property
    def fraction(self) -> float:
        """`satisfied / total`; 1.0 when nothing is stated."""
        return self.satisfied / self.total if self.total else 1.0


class ConstraintSatisfaction(NamedTuple):
    """Satisfied pairs and all pairs by kind of constraint. A pair given by two kinds counts in both."""

    must_link: SatisfiedPairs
    cannot_link: SatisfiedPairs
    labels: SatisfiedPairs
    must_groups: SatisfiedPairs
    cannot_groups: SatisfiedPairs

    @property
    def satisfied(self) -> int:
        """Number of satisfied pairs, over all kinds."""
        return sum(kind.satisfied for kind in self)

    @property
    def total(self) -> int:
        """Number of given pairs, over all kinds."""
        return sum(kind.total for kind in self)

    @property
    def fraction(self) -> float:
        """`satisfied / total`; 1.0 when nothing is stated."""
        return SatisfiedPairs(self.satisfied, self.total).fraction


def constraint_satisfaction(labels: npt.ArrayLike, constraints: Any) -> ConstraintSatisfaction:
    """Count the given pairs of rows that a labelling satisfies.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Cluster of each row. A row with -1 is noise: it is together with no other row, so it violates its must-links and
        satisfies its cannot-links.
    constraints : Constraints or anything `Constraints.of` takes
        Constraints on these rows.

    Returns
    -------
    ConstraintSatisfaction
        The numbers `satisfied` and `total` for each of `must_link`, `cannot_link`, `labels`, `must_groups` and
        `cannot_groups`. Over all kinds: `satisfied`, `total` and `fraction`.

    Notes
    -----
    A repeated pair counts once, in any direction and with any confidence. Two labelled rows give a pair: together if
    their labels are equal, else apart. The label values need not be the cluster numbers. A group gives every pair of
    its rows. A pair that shares a group in several columns counts once. Entailed pairs, soft groups and triplets are
    not counted.
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
    codes = encode_clusters(array, "labels")
    known = Constraints.of(constraints, n_samples=codes.size)
    must_link = RowPairs.of(known.must_link)
    cannot_link = RowPairs.of(known.cannot_link)
    must_groups = _shared(codes, known.must_groups)
    cannot_groups = _shared(codes, known.cannot_groups)
    return ConstraintSatisfaction(
        must_link=SatisfiedPairs(must_link.count_together(codes), must_link.first.size),
        cannot_link=_apart(SatisfiedPairs(cannot_link.count_together(codes), cannot_link.first.size)),
        labels=_agreement(codes, known.labels),
        must_groups=must_groups,
        cannot_groups=_apart(cannot_groups),
    )


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
