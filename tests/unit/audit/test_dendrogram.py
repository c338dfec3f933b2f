"""Dendrograms: colours of merges, the level of the labels, and errors for bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from clew import ConstrainedAgglomerative, SpaceLevelAgglomerative
from clew.audit import _plots, plot_dendrogram
from clew.exceptions import DataError, ParameterError

matplotlib = pytest.importorskip("matplotlib", reason="needs the extra plot")

X = np.array([[0.0], [1.0], [5.0], [6.0], [20.0], [21.0]])
KNOWN = {"must_link": [(2, 3)], "cannot_link": [(0, 2), (0, 4), (2, 4)]}


def lines(axes):
    """Number of merges and dashes by colour."""
    found = {}
    for collection in axes.collections:
        color = matplotlib.colors.to_hex(collection.get_color()[0])
        found[color] = (len(collection.get_segments()), collection.get_linestyle()[0][1] is not None)
    return found


@pytest.mark.parametrize("cls", [ConstrainedAgglomerative, SpaceLevelAgglomerative])
def test_must_links_merges_and_blocked_merges_differ(cls):
    figure = plot_dendrogram(cls().fit(X, constraints=KNOWN))
    (axes,) = figure.axes
    assert lines(axes) == {_plots.BEST: (1, False), _plots.FINE: (2, False), _plots.SUSPECT: (2, True)}
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "1 must-link", "2 merges", "2 blocked by cannot-links", "level of labels_",
    ]  # fmt: skip
    assert axes.get_title(loc="left") == f"{cls.__name__}: 3 clusters"
    assert sorted(text.get_text() for text in axes.get_xticklabels()) == ["0", "1", "2", "3", "4", "5"]


def test_the_line_lies_between_the_merges_around_the_labels():
    model = ConstrainedAgglomerative(3, linkage="single").fit(X)
    (line,) = plot_dendrogram(model).axes[0].lines
    assert line.get_ydata()[0] == (1 + 4) / 2
    (line,) = plot_dendrogram(model.set_params(n_clusters=1).fit(X)).axes[0].lines
    assert line.get_ydata()[0] > model.linkage_[:, 2].max()


def test_names_and_large_trees():
    model = ConstrainedAgglomerative().fit(X)
    axes = matplotlib.figure.Figure().subplots()
    figure = plot_dendrogram(model, names=list("abcdef"), ax=axes)
    assert figure is axes.figure
    assert sorted(text.get_text() for text in axes.get_xticklabels()) == list("abcdef")
    rows = np.random.default_rng(0).normal(size=(200, 2))
    large = ConstrainedAgglomerative(2).fit(rows, constraints={"cannot_link": [(0, 1)]})
    drawn = plot_dendrogram(large, most_leaves=10).axes[0]
    assert sum(count for count, _ in lines(drawn).values()) == 9


def test_bad_input():
    with pytest.raises(NotFittedError):
        plot_dendrogram(ConstrainedAgglomerative())
    with pytest.raises(DataError, match="fitted to 1 row, which has no tree"):
        plot_dendrogram(ConstrainedAgglomerative().fit([[0.0]]))
    model = ConstrainedAgglomerative().fit(X)
    with pytest.raises(ParameterError, match="names has 2 entries, but the model was fitted to 6 rows"):
        plot_dendrogram(model, names=["a", "b"])
    with pytest.raises(ParameterError, match="most_leaves=1 in plot_dendrogram: expected an integer >= 2"):
        plot_dendrogram(model, most_leaves=1)
