"""Labels of all rows from the labels of their representatives, in plain loops."""

from __future__ import annotations

import numpy as np


def labels_of_rows(columns, medoids, of_row, labels, named, predicted, n_voters):
    """Labels of rows by the medoids around them, or of a nearer named row with another label than the medoid.

    Parameters
    ----------
    columns : list of vectors, one per row
    medoids : list of rows, one per micro-cluster
    of_row : micro-cluster of each row
    labels : label of each micro-cluster
    named : dict from named rows to their labels
    predicted : label of each row by the model, for rows whose medoids disagree
    n_voters : number of medoids that have a say, the nearest ones
    """
    found = []
    for row, cell in enumerate(of_row):
        if row in named:
            found.append(named[row])
            continue
        if row == medoids[cell]:
            found.append(labels[cell])
            continue
        nearest_first = sorted(range(len(medoids)), key=lambda one: squared(columns[row], columns[medoids[one]]))
        said = {labels[one] for one in nearest_first[:n_voters]}
        label = said.pop() if len(said) == 1 else predicted[row]
        nearest = squared(columns[row], columns[medoids[cell]])
        for other in sorted(named):
            distance = squared(columns[row], columns[other])
            if of_row[other] == cell and named[other] != labels[cell] and distance < nearest:
                label, nearest = named[other], distance
        found.append(label)
    return found


def squared(one, two):
    return float(((np.asarray(one) - np.asarray(two)) ** 2).sum())
