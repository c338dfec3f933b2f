"""A picture of each method on the same rows, without and with constraints.

`python examples/gallery.py [DIRECTORY]` writes a PNG per method; docs/gallery.md shows them. Needs matplotlib.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from clew import Constraints
from clew._registry import all_estimators, method_name
from clew.evaluation import adjusted_rand_score

COLOURS = np.array(["#4477aa", "#ee6677", "#228833"])


def toy() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Constraints]:
    """Two flat stripes, one above the other, a round group above them, and answers about thirty pairs of rows."""
    rng = np.random.default_rng(3)
    stripes = [np.column_stack([rng.uniform(2.75, 7.25, 50), rng.normal(height, 0.25, 50)]) for height in (2.0, 3.8)]
    X = np.concatenate([*stripes, rng.normal([5, 7.1], 0.5, size=(40, 2))])
    y = np.repeat([0, 1, 2], [50, 50, 40])
    return X, y, Constraints.sample(y, 30, balance=0.5, random_state=1)


def draw(axes: Any, X: Any, labels: Any, known: Constraints | None, title: str) -> None:
    """Rows in the colours of their clusters; must-links as lines, cannot-links dotted."""
    for kind, style in (("must_link", "-"), ("cannot_link", ":")):
        for pair in () if known is None else getattr(known, kind):
            axes.plot(*X[pair].T, style, color="#555555", linewidth=0.8, zorder=1)
    axes.scatter(*X.T, s=12, c=COLOURS[labels], linewidths=0, zorder=2)
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])


def main(directory: Path) -> None:
    """Fit every method twice, print what the constraints changed, and write its picture."""
    directory.mkdir(parents=True, exist_ok=True)
    X, y, known = toy()
    for cls in all_estimators():
        figure = Figure(figsize=(6, 2.6), dpi=80, layout="constrained")
        scores = []
        for axes, given in zip(figure.subplots(1, 2), (None, known), strict=True):
            model = cls(3, random_state=0).fit(X, constraints=given)
            scores.append(adjusted_rand_score(y, model.labels_))
            word = "without" if given is None else "with"
            draw(axes, X, model.labels_, given, f"{word} constraints: ARI {scores[-1]:.2f}")
        figure.suptitle(cls.__name__, fontsize=10)
        figure.savefig(directory / f"{method_name(cls)}.png")
        print(f"{cls.__name__:18} {scores[0]:.2f} -> {scores[1]:.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "gallery"))
