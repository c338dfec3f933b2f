"""Initial centres and Seeded-KMeans (survey Algorithm 1), in plain loops over exact fractions."""

from __future__ import annotations

from tests.reference import kmeans
from tests.reference.assign import components, given_pairs


def neighbourhoods(constraints, n):
    """Components as lists of rows in the order of their first rows, and the class of each (-1: none)."""
    must, _ = given_pairs(constraints)
    component = components(n, must)
    blocks = [[i for i in range(n) if component[i] == c] for c in sorted(set(component))]
    labels = [-1] * n if constraints.labels is None else constraints.labels.tolist()
    return blocks, [max(labels[i] for i in block) for block in blocks]


def blocks_apart(constraints, blocks):
    """Pairs of blocks that a stated cannot-link separates."""
    _, cannot = given_pairs(constraints)
    of_row = {row: number for number, block in enumerate(blocks) for row in block}
    return {frozenset((of_row[i], of_row[j])) for i, j in cannot}


def cluster_labels(classes, n_clusters):
    """Known classes keep their numbers: 0 to k-1 where they fit, else classes first, then the lowest free numbers."""
    known = sorted({label for label in classes if label >= 0})
    if all(label < n_clusters for label in known):
        return list(range(n_clusters))
    free = [label for label in range(n_clusters + len(known)) if label not in known]
    return [*known, *free[: n_clusters - len(known)]]


def seeds(constraints, X, n_clusters):
    """The cluster that each block seeds (None: none): Basu 2004, section 3, with classes at their own places.

    Classes first; then the largest blocks of two or more rows; with more blocks than places that are not known to
    differ, farthest first, distances to what is chosen weighted by size. Then blocks apart from all of them and from
    each other, the one with the most cannot-links first.
    """
    blocks, classes = neighbourhoods(constraints, len(X))
    apart = blocks_apart(constraints, blocks)
    labels = cluster_labels(classes, n_clusters)
    seed_of = [labels.index(label) if label >= 0 else None for label in classes]
    centre = [kmeans.mean([X[i] for i in block]) for block in blocks]
    open_clusters = [cluster for cluster in range(n_clusters) if cluster not in seed_of]
    taken = [b for b in range(len(blocks)) if seed_of[b] is not None]
    others = [b for b in range(len(blocks)) if seed_of[b] is None and len(blocks[b]) > 1]
    chosen = sorted(others, key=lambda b: -len(blocks[b]))[: len(open_clusters)]
    known_to_differ = all(frozenset((a, b)) in apart for a in taken + chosen for b in taken + chosen if a != b)
    if len(others) > len(open_clusters) and not known_to_differ:
        chosen = []
        while len(chosen) < len(open_clusters):
            chosen.append(farthest(others, taken + chosen, blocks, centre))
    for block, cluster in zip(chosen, open_clusters, strict=False):
        seed_of[block] = cluster
    for cluster in open_clusters[len(chosen) :]:
        placed = [b for b in range(len(blocks)) if seed_of[b] is not None]
        strangers = [
            b
            for b in range(len(blocks))
            if n_apart(b, apart) and b not in placed and all(frozenset((b, other)) in apart for other in placed)
        ]
        if strangers:
            seed_of[max(strangers, key=lambda b: (n_apart(b, apart), -b))] = cluster
    return blocks, seed_of, labels


def n_apart(block, apart):
    """How many blocks are known to differ from one."""
    return sum(block in pair for pair in apart)


def farthest(candidates, chosen, blocks, centre):
    """The candidate with the largest size times distance to the chosen ones; the largest when there are none."""

    def squared_score(block):
        near = [kmeans.squared_distance(centre[block], centre[other]) for other in chosen]
        return len(blocks[block]) ** 2 * min(near, default=1)

    candidates = [block for block in candidates if block not in chosen]
    scores = [squared_score(block) for block in candidates]
    best = max(range(len(candidates)), key=lambda place: (scores[place], -place))
    if chosen and scores.count(scores[best]) > 1:
        raise kmeans.TieError
    return candidates[best]


def seeded_kmeans(X, constraints, n_clusters):
    """Only where every cluster has a seed: the rest starts at random."""
    blocks, seed_of, labels = seeds(constraints, X, n_clusters)
    centers = [None] * n_clusters
    for block, cluster in zip(blocks, seed_of, strict=True):
        if cluster is not None:
            centers[cluster] = kmeans.mean([X[i] for i in block])
    if None in centers:
        return None
    clusters, centers, history = kmeans.lloyd(X, centers)
    return [labels[cluster] for cluster in clusters], centers, history
