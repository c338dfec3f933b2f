"""K-medoids under hard constraints for a few hundred rows, by a variable neighbourhood search: the partition by which
thesis section 5.4.4 judges a set of constraints."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from clew import Constraints

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def _components(n: int, pairs: IntArray) -> tuple[int, IntArray]:
    return connected_components(csr_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(n, n)), directed=False)


class ConstrainedMedoids:
    """Medoids of rows of which must-linked ones move as one; given medoids, assignments are exact."""

    def __init__(self, distances: FloatArray, n_clusters: int, known: Constraints) -> None:
        n = len(distances)
        n_components, self.component_of = _components(n, known.must_link)
        whole = csr_array((np.ones(n), (self.component_of, np.arange(n))), shape=(n_components, n))
        self.costs, self.n_clusters = whole @ distances, n_clusters
        self.apart = self.component_of[known.cannot_link]
        _, self.part_of = _components(n_components, self.apart)
        self.partners: dict[int, set[int]] = defaultdict(set)
        for one, other in self.apart.tolist():
            self.partners[one].add(other)
            self.partners[other].add(one)

    def assign(self, medoids: IntArray) -> tuple[float, IntArray]:
        """Cost and cluster of every component; only parts where nearest medoids break a cannot-link are searched."""
        costs = self.costs[:, medoids]
        labels = costs.argmin(axis=1)
        broken = self.apart[labels[self.apart[:, 0]] == labels[self.apart[:, 1]], 0]
        for part in np.unique(self.part_of[broken]):
            members = [one for one in self.partners if self.part_of[one] == part]
            labels[members] = self._cheapest(members, costs[members])
        return float(costs[np.arange(len(labels)), labels].sum()), labels

    def _cheapest(self, members: list[int], costs: FloatArray) -> list[int]:
        """Branch and bound over a few components that are cannot-linked to each other, most constrained first."""
        order = sorted(range(len(members)), key=lambda place: -len(self.partners[members[place]]))
        rest = np.append(np.cumsum(costs.min(axis=1)[order][::-1])[::-1], 0.0)
        found, lowest, labels = [0] * len(members), np.inf, {}

        def search(depth: int, spent: float) -> None:
            nonlocal lowest, found
            if spent + rest[depth] >= lowest:
                return
            if depth == len(order):
                lowest, found = spent, [labels[one] for one in members]
                return
            place = order[depth]
            taken = {labels[other] for other in self.partners[members[place]] if other in labels}
            for cluster in np.argsort(costs[place], kind="stable").tolist():
                if cluster not in taken:
                    labels[members[place]] = cluster
                    search(depth + 1, spent + costs[place, cluster])
                    del labels[members[place]]

        search(0, 0.0)
        return found

    def descend(self, medoids: IntArray) -> tuple[float, IntArray, IntArray]:
        """Cost, medoids and labels after assignment and medoids in turn."""
        cost, labels = self.assign(medoids)
        while True:
            sums = np.zeros((self.n_clusters, self.costs.shape[1]))
            np.add.at(sums, labels, self.costs)
            better = sums.argmin(axis=1)
            lower, new = self.assign(better)
            if lower >= cost * (1 - 1e-12):
                return cost, medoids, labels
            cost, medoids, labels = lower, better, new

    def search(self, starts: list[IntArray], n_kicks: int, rng: np.random.Generator) -> tuple[float, IntArray]:
        """Cost and labels of the best partition found from some medoids and from random changes to the best."""
        best = min((self.descend(start) for start in starts), key=lambda found: found[0])
        for kick in range(n_kicks):
            medoids = best[1].copy()
            changed = rng.choice(self.n_clusters, 1 + kick % min(self.n_clusters, 3), replace=False)
            medoids[changed] = rng.choice(self.costs.shape[1], len(changed), replace=False)
            found = self.descend(medoids)
            best = found if found[0] < best[0] else best
        return best[0], best[2][self.component_of]
