"""Handwritten digits in the embedding of a network: before it knows any answer, and after 500 answers.

`python examples/digits_embedding.py [FILE]` writes the picture that docs/deep.md shows. Needs torch (the extra `deep`)
and matplotlib; takes some seconds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from clew import Constraints, DeepConstrainedClustering
from clew.evaluation import adjusted_rand_score

SMALL: dict[str, Any] = {"layers": (128, 128), "batch_size": 64, "random_state": 0}


def main(path: str) -> None:
    """Fit, print what each step brings, and draw the rows in both embeddings."""
    X, y = load_digits(return_X_y=True)
    known = Constraints.sample(y, 500, random_state=0)
    pixels = KMeans(10, n_init=10, random_state=0).fit_predict(X)
    print(f"k-means on the pixels: {adjusted_rand_score(y, pixels):.2f}")
    before = DeepConstrainedClustering(10, pretrain_epochs=40, max_iter=0, **SMALL).fit(X)
    after = DeepConstrainedClustering(10, pretrained=before.network_, max_iter=60, **SMALL).fit(X, constraints=known)
    figure = Figure(figsize=(9, 4.2), dpi=80, layout="constrained")
    panels = zip(figure.subplots(1, 2), (before, after), ("before: pre-trained", "after: 500 answers"), strict=True)
    for axes, model, word in panels:
        score = adjusted_rand_score(y, model.labels_)
        print(f"{word}: {score:.2f}")
        places = PCA(2).fit_transform(model.transform(X))
        axes.scatter(*places.T, s=6, c=y, cmap="tab10", linewidths=0)
        for digit in range(10):
            axes.annotate(str(digit), np.median(places[y == digit], axis=0), fontsize=13, weight="bold", ha="center")
        axes.set_title(f"{word}, ARI {score:.2f}", fontsize=10)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "digits-embedding.png")
