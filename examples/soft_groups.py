"""Noisy must-links on four Gaussians: no knowledge, soft must-links and hard must-links.

`python examples/soft_groups.py [FILE]` draws the experiment of Law, Topchy and Jain 2004, section 3.1. It needs
matplotlib.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

from clew import ConstrainedGaussianMixture, Constraints, SoftGroupMixture
from clew.evaluation import adjusted_rand_score

COLOURS = np.array(["#4477aa", "#ee6677"])


def main(path: str) -> None:
    """Fit the three mixtures, print how well each finds left and right, and write the picture."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2, 3], 100)
    X = np.array([[1.5, 2.5], [-1.5, 2.5], [-1.5, -2.5], [1.5, -2.5]])[group] + rng.normal(size=(400, 2))
    side = np.isin(group, [0, 3]).astype(int)
    pairs, strengths = [], []
    for anchor in rng.choice(400, 25, replace=False):
        for partner in rng.choice(np.flatnonzero(group == 3 - group[anchor]), 7, replace=False):
            strength = rng.uniform(0.6, 1)
            other = rng.integers(400) if rng.random() > strength else partner
            if other != anchor:
                pairs.append((anchor, other))
                strengths.append(strength)
    soft = Constraints(pairs, must_link_confidence=strengths, n_samples=400)
    fits = {
        "no constraints": SoftGroupMixture(2, random_state=0).fit(X),
        "soft": SoftGroupMixture(2, random_state=0).fit(X, constraints=soft),
        "hard": ConstrainedGaussianMixture(2, random_state=0).fit(X, constraints=Constraints(pairs, n_samples=400)),
    }
    figure = Figure(figsize=(8, 2.8), dpi=80, layout="constrained")
    for axes, (name, model) in zip(figure.subplots(1, 3), fits.items(), strict=True):
        score = adjusted_rand_score(side, model.labels_)
        for pair in pairs if name != "no constraints" else ():
            axes.plot(*X[list(pair)].T, "-", color="#bbbbbb", linewidth=0.3, zorder=1)
        axes.scatter(*X.T, s=8, c=COLOURS[model.labels_], linewidths=0, zorder=2)
        axes.set_title(f"{name}: ARI {score:.2f}", fontsize=9)
        axes.set_xticks([])
        axes.set_yticks([])
        print(f"{name:14} {score:.2f}")
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "soft-groups.png")
