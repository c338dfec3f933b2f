"""Labels of all rows from the labels of their representatives, in plain loops."""

from __future__ import annotations

import numpy as np


def labels_of_rows(columns, centers, of_row, labels, named, n_voters):
    """Labels of rows by a vote of micro-clusters, or of a nearer named row with another label than its micro-cluster.

    Parameters
    ----------
    columns : list of vectors, one per row
    centers : list of vectors, one per micro-cluster
    of_row : micro-cluster of each row
    labels : label of each micro-cluster
    named : dict from named rows to their labels
    n_voters : number of micro-clusters that vote, the nearest ones
    """
    found = []
    for row, cell in enumerate(of_row):
        if row in named:
            found.append(named[row])
            continue
        if of_row.count(cell) == 1:
            found.append(labels[cell])
            continue
        voters = sorted(range(len(centers)), key=lambda one: squared(columns[row], centers[one]))[:n_voters]
        distances = [squared(columns[row], centers[one]) for one in voters]
        votes = dict.fromkeys([labels[one] for one in voters], 0.0)
        for one, distance in zip(voters, distances, strict=True):
            votes[labels[one]] += np.exp(-distance / max(*distances, 1e-300))
        label, nearest = max(votes, key=votes.get), squared(columns[row], centers[cell])
        for other in sorted(named):
            distance = squared(columns[row], columns[other])
            if of_row[other] == cell and named[other] != labels[cell] and distance < nearest:
                label, nearest = named[other], distance
        found.append(label)
    return found


def squared(one, two):
    return float(((np.asarray(one) - np.asarray(two)) ** 2).sum())
