"""A tree of clusters without and with answers, drawn as a dendrogram.

`python examples/trees.py [FILE]` writes a PNG, which docs/methods.md shows. Needs matplotlib.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

from clew import ConstrainedAgglomerative
from clew.audit import plot_dendrogram

rng = np.random.default_rng(1)
X = np.concatenate([rng.normal(centre, 0.6, size=(8, 2)) for centre in ([0, 0], [3, 0], [8, 1])])
answers = {"must_link": [(0, 5), (16, 20)], "cannot_link": [(2, 9), (3, 18), (10, 21)]}

figure = Figure(figsize=(8, 7), dpi=110, layout="constrained", facecolor="white")
for axes, known in zip(figure.subplots(2), (None, answers), strict=True):
    model = ConstrainedAgglomerative(3 if known is None else None).fit(X, constraints=known)
    plot_dendrogram(model, ax=axes)
    word = "without" if known is None else "with"
    axes.set_title(f"{word} answers: {len(model.cluster_labels_)} clusters", loc="left", fontsize=11)
    print(f"{word} answers: levels of {model.k_max_} to {model.k_min_} clusters, sizes {model.cluster_sizes_.tolist()}")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "trees.png")
