"""Some rows are labelled: keep these labels, let the other rows join them, and find a class nobody named."""

import numpy as np

from clew import ConstrainedKMeans
from clew.datasets import load_digits
from clew.evaluation import matching_accuracy

# Sixes lie apart from the other digits. Leave out 2, 3, 5, 7 or 8 instead, and the new cluster finds few of them.
UNNAMED = 6
digits = load_digits()
rng = np.random.default_rng(0)

# Twenty examples of each digit, except of the unnamed one.
labels = np.full(len(digits.y), -1)
for digit in set(range(10)) - {UNNAMED}:
    labels[rng.choice(np.flatnonzero(digits.y == digit), 20, replace=False)] = digit

model = ConstrainedKMeans(n_clusters=10, random_state=0).fit(digits.X, constraints=labels)
known = labels >= 0
print(f"labelled rows that kept their label: {(model.labels_[known] == labels[known]).sum()} of {known.sum()}")
print(f"other rows in the right cluster: {matching_accuracy(digits.y[~known], model.labels_[~known]):.0%}")
new = (set(model.labels_.tolist()) - set(labels.tolist())).pop()
print(f"rows of the unnamed digit in the new cluster: {(model.labels_[digits.y == UNNAMED] == new).mean():.0%}")
