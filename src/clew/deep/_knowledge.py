"""Constraints as mini-batches: which pairs, triplets and known classes each step learns from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from clew.audit import filter_by_impact
from clew.audit._impact import impact_of
from clew.audit._models import squared_model
from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs, group_columns
from clew.deep._network import FloatArray, IntArray, Rows, SingleArray
from clew.deep._training import Step

# Number of rounds of the subgradient algorithm. The multipliers are only used for one round of training.
DUAL_ROUNDS = 200


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, each with a confidence."""

    rows: IntArray
    confidence: FloatArray

    @classmethod
    def distinct(cls, rows: IntArray, confidence: FloatArray) -> Pairs:
        """Every pair once, in ascending order, with its highest confidence."""
        stated = distinct_pairs(rows, confidence)
        return cls(stated.pairs, confidence[stated.best])

    def with_cycles(self, columns: list[IntArray], rng: np.random.Generator) -> Pairs:
        """Add m pairs for each group of m rows: each row with the next one, in a random cyclic order.

        All pairs of a group would be too many. Over the rounds, every pair has the same probability.
        """
        cycles = [_cycles(column, rng) for column in columns]
        rows = np.concatenate([self.rows, *cycles])
        return Pairs(rows, np.append(self.confidence, np.ones(len(rows) - len(self.rows))))

    def repeated(self, factor: float, rng: np.random.Generator) -> Pairs:
        """The pairs in a random order, again and again, until there are `factor` times as many."""
        n_pairs, n_wanted = len(self.rows), round(factor * len(self.rows))
        order = [rng.permutation(n_pairs) for _ in range(-(-n_wanted // max(n_pairs, 1)))]
        chosen = np.concatenate([*order, np.empty(0, dtype=np.int64)])[:n_wanted]
        return Pairs(self.rows[chosen], self.confidence[chosen])

    def split(self, n_parts: int, rng: np.random.Generator) -> list[Pairs]:
        """Split the pairs in random order into parts whose sizes differ by at most one."""
        return [
            Pairs(self.rows[part], self.confidence[part])
            for part in np.array_split(rng.permutation(len(self.rows)), n_parts)
        ]


def _cycles(groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Pair each row of a group with the next one in a random order, and the last with the first."""
    rows = rng.permutation(np.flatnonzero(groups >= 0))
    rows = rows[np.argsort(groups[rows], kind="stable")]
    starts = np.flatnonzero(np.append(True, np.diff(groups[rows]) != 0)[: len(rows)])
    following = np.append(rows[1:], rows[:1])
    sizes = np.diff(np.append(starts, len(rows)))
    following[starts + sizes - 1] = rows[starts]
    # A group of one row has no pair, and a group of two rows has one.
    first_of_two = np.ones(len(rows), dtype=bool)
    first_of_two[(starts + sizes - 1)[sizes <= 2]] = False
    return np.column_stack([rows, following])[first_of_two]


@dataclass(frozen=True)
class DeepKnowledge:
    """The constraints in the form that training uses.

    Attributes
    ----------
    must_link, cannot_link : Pairs
        Distinct given pairs.
    must_groups, cannot_groups : list of ndarray of shape (n_rows,)
    triplets : ndarray of shape (n_triplets, 3)
    cluster_of : ndarray of shape (n_rows,)
        The cluster of each row's known class, -1 if it has none.
    pair_weight : float
        How often a round uses each pair: once, or, after a filter, the number of pairs with an impact over that of
        kept ones. So dropping a fraction does not weaken the pairs against the rows.
    """

    must_link: Pairs
    cannot_link: Pairs
    must_groups: list[IntArray]
    cannot_groups: list[IntArray]
    triplets: IntArray
    cluster_of: IntArray
    pair_weight: float = 1.0

    @classmethod
    def of(cls, constraints: Constraints, cluster_labels: IntArray, n_rows: int) -> DeepKnowledge:
        """Read the constraints; soft groups are not used."""
        cluster_of = np.full(n_rows, -1, dtype=np.int64)
        if constraints.labels is not None:
            known = np.flatnonzero(constraints.labels >= 0)
            order = np.argsort(cluster_labels)
            cluster_of[known] = order[np.searchsorted(cluster_labels, constraints.labels[known], sorter=order)]
        return cls(
            Pairs.distinct(constraints.must_link, constraints.must_link_confidence),
            Pairs.distinct(constraints.cannot_link, constraints.cannot_link_confidence),
            group_columns(constraints.must_groups),
            group_columns(constraints.cannot_groups),
            np.unique(constraints.triplets, axis=0).reshape(-1, 3),
            cluster_of,
        )

    def filtered(self, embedding: SingleArray, centers: SingleArray, fraction: float) -> DeepKnowledge:
        """Keep the given pairs that have a negative impact in the embedding, without a fraction of the lowest.

        Classes, groups and triplets are not changed.
        """
        if len(self.must_link.rows) + len(self.cannot_link.rows) == 0:
            return self
        mean = embedding.mean(axis=0, dtype=np.float64)
        model = squared_model(
            np.ascontiguousarray(embedding - mean), len(centers), centers - mean, np.random.default_rng(0)
        )
        stated = Constraints(
            self.must_link.rows,
            self.cannot_link.rows,
            must_link_confidence=self.must_link.confidence,
            cannot_link_confidence=self.cannot_link.confidence,
            n_samples=len(embedding),
        )
        scored = impact_of(model, stated, max_iter=DUAL_ROUNDS)
        broken, kept = filter_by_impact(scored, 0.0), filter_by_impact(scored, fraction)
        n_broken, n_kept = (len(each.must_link) + len(each.cannot_link) for each in (broken, kept))
        return replace(
            self,
            pair_weight=n_broken / max(n_kept, 1),
            must_link=Pairs(kept.must_link, kept.must_link_confidence),
            cannot_link=Pairs(kept.cannot_link, kept.cannot_link_confidence),
        )

    def steps(
        self,
        rows: Rows,
        shares: FloatArray,
        targets: FloatArray,
        batch_size: int,
        rng: np.random.Generator,
        neighbors: IntArray,
    ) -> Iterator[Step]:
        """The mini-batches of one round: every row and triplet once, and every pair `pair_weight` times.

        A row of a pair or triplet is represented by itself or by one of its neighbours, at random. So what is known of
        a row is learned for the rows like it. `neighbors` has one line for each row.
        """
        n_steps = -(-rows.n_rows // batch_size)
        batches = np.array_split(rng.permutation(rows.n_rows), n_steps)
        must = self.must_link.repeated(self.pair_weight, rng).with_cycles(self.must_groups, rng).split(n_steps, rng)
        cannot = (
            self.cannot_link.repeated(self.pair_weight, rng).with_cycles(self.cannot_groups, rng).split(n_steps, rng)
        )
        triplets = np.array_split(self.triplets[rng.permutation(len(self.triplets))], n_steps)
        alike = np.column_stack([np.arange(rows.n_rows), neighbors])
        overall = shares.mean(axis=0)
        for batch, together, apart, three in zip(batches, must, cannot, triplets, strict=True):
            others = np.concatenate([together.rows.ravel(), apart.rows.ravel(), three.ravel()])
            others = alike[others, rng.integers(alike.shape[1], size=len(others))]
            places = np.arange(len(batch), len(batch) + len(others))
            ends = np.cumsum([together.rows.size, apart.rows.size])
            named = np.flatnonzero(self.cluster_of[batch] >= 0)
            yield Step(
                rows.take(np.concatenate([batch, others])),
                len(batch),
                targets[batch],
                np.column_stack([named, self.cluster_of[batch[named]]]),
                places[: ends[0]].reshape(-1, 2),
                together.confidence,
                places[ends[0] : ends[1]].reshape(-1, 2),
                apart.confidence,
                places[ends[1] :].reshape(-1, 3),
                overall - shares[batch].mean(axis=0),
            )
