"""Constraints as mini-batches: which pairs, triplets and known classes each step learns from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from clew.audit._impact import FREE, filter_by_impact, impact_of
from clew.audit._models import fixed_model, squared_model
from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs, group_columns
from clew.deep._network import SMALLEST, FloatArray, IntArray, Rows, SingleArray
from clew.deep._training import Step

# Number of rounds of the subgradient algorithm. The multipliers are only used for one round of training.
DUAL_ROUNDS = 200
# Number of neighbours that represent a given pair when it is scored.
N_SCORED = 5


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, as given or as representatives of given pairs.

    With the given pair (3, 8) and a neighbour 5 of row 3, `rows` may be [[5, 8]], and then `given` is [[3, 8]].

    Attributes
    ----------
    rows, given : ndarray of shape (n_pairs, 2)
    confidence : ndarray of shape (n_pairs,)
    """

    rows: IntArray
    confidence: FloatArray
    given: IntArray

    @classmethod
    def distinct(cls, rows: IntArray, confidence: FloatArray) -> Pairs:
        """Every pair once, in ascending order, with its highest confidence."""
        stated = distinct_pairs(rows, confidence)
        return cls(stated.pairs, confidence[stated.best], stated.pairs)

    def __len__(self) -> int:
        return len(self.rows)

    def draws(self, alike: IntArray, rng: np.random.Generator, n_draws: int) -> tuple[IntArray, IntArray]:
        """Replace each row by one of the rows alike, at random, `n_draws` times for each pair.

        Returns the new pairs and the place of the pair that each of them represents. Rows with a common neighbour can
        both become that row; such draws are left out.
        """
        place = np.repeat(np.arange(len(self)), n_draws)
        rows = one_alike(self.rows[place], alike, rng)
        proper = rows[:, 0] != rows[:, 1]
        return rows[proper], place[proper]

    def represented(self, alike: IntArray, rng: np.random.Generator) -> Pairs:
        """Draw one representative of each pair."""
        rows, place = self.draws(alike, rng, 1)
        return Pairs(rows, self.confidence[place], self.given[place])

    def without_lowest(self, scores: FloatArray, free: float, fraction: float) -> Pairs:
        """Leave out a fraction of the pairs with a score below `free`, the lowest first."""
        costly = np.flatnonzero(scores < free)
        kept = np.ones(len(self), dtype=bool)
        kept[costly[np.argsort(scores[costly], kind="stable")][: int(fraction * len(costly))]] = False
        return Pairs(self.rows[kept], self.confidence[kept], self.given[kept])

    def with_cycles(self, columns: list[IntArray], alike: IntArray, rng: np.random.Generator) -> WeightedPairs:
        """Add m pairs for each group of m rows: each row with the next one, in a random cyclic order.

        All pairs of a group would be too many. Over the rounds, every pair has the same probability.
        """
        cycles = [one_alike(_cycles(column, rng), alike, rng) for column in columns]
        rows = np.concatenate([self.rows, *cycles])
        return WeightedPairs(rows, np.append(self.confidence, np.ones(len(rows) - len(self.rows))))


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


def mean_by_place(scores: FloatArray, place: IntArray, n_places: int) -> FloatArray:
    """Mean of the scores at each place, 0 at places without a score."""
    total, count = (np.bincount(place, weights=each, minlength=n_places) for each in (scores, None))
    return np.asarray(total / np.maximum(count, 1))


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

    @property
    def n_pairs(self) -> int:
        """Number of distinct given must-links and cannot-links."""
        return len(self.must_link) + len(self.cannot_link)

    def filtered(self, shares: FloatArray, alike: IntArray, fraction: float, rng: np.random.Generator) -> DeepKnowledge:
        """Drop a fraction of the must-links with a negative impact, and of the cannot-links; represent the others.

        The score of a given pair is the mean impact of some of its representatives, where a row costs minus the
        logarithm of its share in a cluster. Classes, groups and triplets are not changed.
        """
        n_draws = N_SCORED if alike.shape[1] > 1 else 1
        kinds = self.must_link, self.cannot_link
        (must, must_place), (cannot, cannot_place) = (one.draws(alike, rng, n_draws) for one in kinds)
        model = fixed_model("network", -np.log(np.maximum(shares, SMALLEST)))
        stated = Constraints(
            must,
            cannot,
            must_link_confidence=self.must_link.confidence[must_place],
            cannot_link_confidence=self.cannot_link.confidence[cannot_place],
            n_samples=len(shares),
        )
        found = impact_of(model, stated, max_iter=DUAL_ROUNDS)
        means = (
            mean_by_place(found.must_link_score, must_place, len(self.must_link)),
            mean_by_place(found.cannot_link_score, cannot_place, len(self.cannot_link)),
        )
        kept = [one.without_lowest(mean, -FREE * found.unit, fraction) for one, mean in zip(kinds, means, strict=True)]
        return replace(self, must_link=kept[0].represented(alike, rng), cannot_link=kept[1].represented(alike, rng))

    def filtered_by_kmeans(self, embedding: SingleArray, centers: SingleArray, fraction: float) -> DeepKnowledge:
        """Keep the given pairs with a negative impact on k-means in the embedding, without the lowest (Algorithm 9).

        K-means starts from the centres of the network. Both kinds are ranked together.
        """
        if self.n_pairs == 0:
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

        A batch has at most `batch_size` rows, must-links, cannot-links and triplets each, unless there are so many of
        one kind that a batch of one row has more. A row of a triplet or group is represented by a row alike, at random;
        the pairs are used as they are. `alike` has one line for each row, with the row itself and its neighbours.
        """
        order = rng.permutation(rows.n_rows)
        must = self.must_link.with_cycles(self.must_groups, alike, rng)
        cannot = self.cannot_link.with_cycles(self.cannot_groups, alike, rng)
        most = max(map(len, (order, must.rows, cannot.rows, self.triplets)))
        n_steps = min(-(-most // batch_size), rows.n_rows)
        parts = must.split(n_steps, rng), cannot.split(n_steps, rng)
        triplets = one_alike(self.triplets[rng.permutation(len(self.triplets))], alike, rng)
        overall = shares.mean(axis=0)
        for batch, together, apart, three in zip(
            np.array_split(order, n_steps), *parts, np.array_split(triplets, n_steps), strict=True
        ):
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
