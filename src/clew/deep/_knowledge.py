"""Constraints as mini-batches: which pairs, triplets and known classes each step learns from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from clew.audit._impact import FREE, filter_by_impact, impact_of
from clew.audit._models import fixed_model, squared_model
from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs, group_columns
from clew.deep._network import SMALLEST, FloatArray, IntArray, Rows, SingleArray
from clew.deep._training import Step

# Number of rounds of the subgradient algorithm. The multipliers are only used for one round of training.
DUAL_ROUNDS = 200
# A pair that holds costs nothing if the probability that it is broken is lower. Its loss is then below 0.01, too.
LEAST_CHANCE = 0.01
# Largest number of representatives of a pair that a filter scores in a round. 20 suffice for a fraction of 0.95.
MOST_DRAWS = 20


def draws_for(fraction: float) -> int:
    """Number of representatives of each pair, so that about one of them is left after a fraction is dropped.

    >>> [draws_for(fraction) for fraction in (0.0, 0.5, 0.8, 0.95, 1.0)]
    [1, 2, 5, 20, 20]
    """
    least_left = 1 / MOST_DRAWS
    return ceil(round(1 / max(1 - fraction, least_left), 6))


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, as given or as representatives of given pairs.

    With the given pair (3, 8) and a neighbour 5 of row 3, `rows` may be [[5, 8]], and then `given` is [[3, 8]].

    Attributes
    ----------
    rows, given : ndarray of shape (n_pairs, 2)
    confidence : ndarray of shape (n_pairs,)
    weight : ndarray of shape (n_pairs,)
        Factor of the loss, beside the confidence.
    """

    rows: IntArray
    confidence: FloatArray
    given: IntArray
    weight: FloatArray

    @classmethod
    def distinct(cls, rows: IntArray, confidence: FloatArray) -> Pairs:
        """Every pair once, in ascending order, with its highest confidence."""
        stated = distinct_pairs(rows, confidence)
        return cls(stated.pairs, confidence[stated.best], stated.pairs, np.ones(len(stated.pairs)))

    def __len__(self) -> int:
        return len(self.rows)

    def represented(self, alike: IntArray, rng: np.random.Generator, n_draws: int = 1) -> Pairs:
        """Replace each row by one of the rows alike, at random, `n_draws` times. All draws of a pair weigh one.

        Rows with a common neighbour can both become that row; such draws are left out.
        """
        repeated = np.repeat(np.arange(len(self)), n_draws)
        rows = one_alike(self.rows[repeated], alike, rng)
        proper = rows[:, 0] != rows[:, 1]
        chosen = repeated[proper]
        return Pairs(rows[proper], self.confidence[chosen], self.given[chosen], self.weight[chosen] / n_draws)

    def kept(
        self,
        scores: FloatArray,
        chance: FloatArray,
        free: float,
        fraction: float,
        n_draws: int,
        rng: np.random.Generator,
    ) -> Pairs:
        """Drop a fraction of the pairs with a score below `free`, the lowest first, and pairs that cost nothing.

        `chance` is the probability that a pair is broken. Of the pairs that hold, one in `n_draws` is used, at random,
        so that a round has about as many pairs as without a filter. The pairs that are left of either group weigh as
        much as the whole group.
        """
        costly = np.flatnonzero(scores < free)
        left = costly[np.argsort(scores[costly], kind="stable")][int(fraction * len(costly)) :]
        holding = np.flatnonzero((scores >= free) & (chance >= LEAST_CHANCE))
        sample = rng.permutation(holding)[: -(-len(holding) // n_draws)]
        weight = self.weight.copy()
        for group, used in ((costly, left), (holding, sample)):
            weight[used] *= self.weight[group].sum() / (self.weight[used].sum() or 1.0)
        kept = np.sort(np.append(left, sample))
        return Pairs(self.rows[kept], self.confidence[kept], self.given[kept], weight[kept])

    def with_cycles(self, columns: list[IntArray], alike: IntArray, rng: np.random.Generator) -> WeightedPairs:
        """Add m pairs for each group of m rows: each row with the next one, in a random cyclic order.

        All pairs of a group would be too many. Over the rounds, every pair has the same probability.
        """
        cycles = [one_alike(_cycles(column, rng), alike, rng) for column in columns]
        rows = np.concatenate([self.rows, *cycles])
        return WeightedPairs(rows, np.append(self.weight * self.confidence, np.ones(len(rows) - len(self.rows))))


@dataclass(frozen=True)
class WeightedPairs:
    """Pairs of rows, each with the weight of its loss."""

    rows: IntArray
    weight: FloatArray

    def split(self, n_parts: int, rng: np.random.Generator) -> list[WeightedPairs]:
        """Split the pairs in random order into parts whose sizes differ by at most one."""
        return [
            WeightedPairs(self.rows[part], self.weight[part])
            for part in np.array_split(rng.permutation(len(self.rows)), n_parts)
        ]


def one_alike(rows: IntArray, alike: IntArray, rng: np.random.Generator) -> IntArray:
    """For each row, one of the rows in its line of `alike`, at random."""
    return alike[rows, rng.integers(alike.shape[1], size=rows.shape)]


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
    """

    must_link: Pairs
    cannot_link: Pairs
    must_groups: list[IntArray]
    cannot_groups: list[IntArray]
    triplets: IntArray
    cluster_of: IntArray

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

    def represented(self, alike: IntArray, rng: np.random.Generator) -> DeepKnowledge:
        """Replace the rows of each given pair by rows alike, at random."""
        return replace(
            self,
            must_link=self.must_link.represented(alike, rng),
            cannot_link=self.cannot_link.represented(alike, rng),
        )

    def filtered(self, shares: FloatArray, alike: IntArray, fraction: float, rng: np.random.Generator) -> DeepKnowledge:
        """Draw representatives of the given pairs, and drop those with the lowest impact and those that cost nothing.

        A row costs minus the logarithm of its share in a cluster. A fraction of the must-links with a negative impact
        is dropped, and of the cannot-links. Classes, groups and triplets are not changed.
        """
        n_draws = draws_for(fraction) if alike.shape[1] > 1 else 1
        must, cannot = (one.represented(alike, rng, n_draws) for one in (self.must_link, self.cannot_link))
        if len(must) + len(cannot) == 0:
            return self
        model = fixed_model("network", -np.log(np.maximum(shares, SMALLEST)))
        found = impact_of(model, _stated(must, cannot, len(shares)), max_iter=DUAL_ROUNDS)
        free = -FREE * found.unit
        together, apart = ((shares[each.rows[:, 0]] * shares[each.rows[:, 1]]).sum(axis=1) for each in (must, cannot))
        return replace(
            self,
            must_link=must.kept(found.must_link_score, 1 - together, free, fraction, n_draws, rng),
            cannot_link=cannot.kept(found.cannot_link_score, apart, free, fraction, n_draws, rng),
        )

    def filtered_by_kmeans(self, embedding: SingleArray, centers: SingleArray, fraction: float) -> DeepKnowledge:
        """Keep the given pairs with a negative impact on k-means in the embedding, without the lowest (Algorithm 9).

        K-means starts from the centres of the network. Both kinds are ranked together.
        """
        if len(self.must_link) + len(self.cannot_link) == 0:
            return self
        mean = embedding.mean(axis=0, dtype=np.float64)
        model = squared_model(
            np.ascontiguousarray(embedding - mean), len(centers), centers - mean, np.random.default_rng(0)
        )
        stated = _stated(self.must_link, self.cannot_link, len(embedding))
        kept = filter_by_impact(impact_of(model, stated, max_iter=DUAL_ROUNDS), fraction)
        return replace(
            self,
            must_link=Pairs.distinct(kept.must_link, kept.must_link_confidence),
            cannot_link=Pairs.distinct(kept.cannot_link, kept.cannot_link_confidence),
        )

    def steps(
        self,
        rows: Rows,
        shares: FloatArray,
        targets: FloatArray,
        batch_size: int,
        rng: np.random.Generator,
        alike: IntArray,
    ) -> Iterator[Step]:
        """The mini-batches of one round: every row, pair and triplet once, and as many pairs of a group as it has rows.

        A row of a triplet or group is represented by a row alike, at random; the pairs are used as they are. `alike`
        has one line for each row, with the row itself and its neighbours.
        """
        n_steps = -(-rows.n_rows // batch_size)
        batches = np.array_split(rng.permutation(rows.n_rows), n_steps)
        must = self.must_link.with_cycles(self.must_groups, alike, rng).split(n_steps, rng)
        cannot = self.cannot_link.with_cycles(self.cannot_groups, alike, rng).split(n_steps, rng)
        order = self.triplets[rng.permutation(len(self.triplets))]
        triplets = np.array_split(one_alike(order, alike, rng), n_steps)
        overall = shares.mean(axis=0)
        for batch, together, apart, three in zip(batches, must, cannot, triplets, strict=True):
            others = np.concatenate([together.rows.ravel(), apart.rows.ravel(), three.ravel()])
            places = np.arange(len(batch), len(batch) + len(others))
            ends = np.cumsum([together.rows.size, apart.rows.size])
            named = np.flatnonzero(self.cluster_of[batch] >= 0)
            yield Step(
                rows.take(np.concatenate([batch, others])),
                len(batch),
                targets[batch],
                np.column_stack([named, self.cluster_of[batch[named]]]),
                places[: ends[0]].reshape(-1, 2),
                together.weight,
                places[ends[0] : ends[1]].reshape(-1, 2),
                apart.weight,
                places[ends[1] :].reshape(-1, 3),
                overall - shares[batch].mean(axis=0),
            )


def _stated(must: Pairs, cannot: Pairs, n_rows: int) -> Constraints:
    return Constraints(
        must.rows,
        cannot.rows,
        must_link_confidence=must.confidence,
        cannot_link_confidence=cannot.confidence,
        n_samples=n_rows,
    )
