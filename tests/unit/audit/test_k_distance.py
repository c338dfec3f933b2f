"""The plot from which the radius of density methods is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from clew import ConstrainedDBSCAN
from clew.audit import plot_k_distance
from clew.exceptions import DataError, ParameterError

pytest.importorskip("matplotlib", reason="needs the extra plot")

X = np.random.default_rng(0).normal(size=(60, 2))


def test_the_curve_falls_and_the_line_is_at_the_radius():
    (axes,) = plot_k_distance(X, min_samples=4).axes
    curve, level = axes.lines
    distances = np.sort(np.sort(np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1)), axis=1)[:, 3])[::-1]
    assert curve.get_ydata() == pytest.approx(distances)
    model = ConstrainedDBSCAN(min_samples=4).fit(X)
    assert level.get_ydata()[0] == model.eps_
    (note,) = axes.texts
    assert f"{len(model.core_sample_indices_)} of 60 rows are core rows" in note.get_text()
    assert axes.get_ylabel() == "distance to the 4th nearest row, itself included"


@pytest.mark.parametrize("number, word", [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd")])
def test_numbers_are_read_aloud(number, word):
    assert f"the {word} nearest" in plot_k_distance(X, min_samples=number).axes[0].get_ylabel()


def test_a_radius_of_the_user_and_axes_of_the_user():
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    assert plot_k_distance(X, eps=0.25, ax=axes) is figure
    assert axes.lines[1].get_ydata()[0] == 0.25


def test_bad_input_is_refused_as_by_the_estimator():
    with pytest.raises(ParameterError, match="eps=0 in ConstrainedDBSCAN: expected 'auto' or a finite number > 0"):
        plot_k_distance(X, eps=0)
    with pytest.raises(DataError, match="min_samples=61, but X has n_samples=60 rows"):
        plot_k_distance(X, min_samples=61)
