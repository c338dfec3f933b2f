"""Alternatives between good and new."""

from __future__ import annotations

import numpy as np
import pytest

from clew.audit import alternative_trade_off
from clew.evaluation import normalized_mutual_info_score
from clew.exceptions import DataError, ParameterError


def corners(n_each=10):
    rng = np.random.default_rng(0)
    left, low = np.repeat([0, 0, 1, 1], n_each), np.repeat([0, 1, 0, 1], n_each)
    return np.column_stack([9 * left, 6 * low]) + rng.normal(size=(len(left), 2)), left


def test_the_curve_leads_from_new_to_given():
    X, left = corners()
    found = alternative_trade_off(X, left, 2, coordination=[0.2, 1.0])
    table = found.table()
    assert [row["method"] for row in table] == ["given", "CondEns", *["CoordinatedConditionalIB"] * 2]
    assert [row["coordination"] for row in table] == [None, None, 0.2, 1.0]
    assert found.normalized_mutual_info == pytest.approx([1, 0, 0, 1], abs=0.01)
    assert found.variation_of_information == pytest.approx([0, 2 * np.log(2), 2 * np.log(2), 0], abs=0.02)
    centers = np.array([X[left == side].mean(axis=0) for side in (0, 1)])
    spread = ((X - X.mean(axis=0)) ** 2).sum()
    assert found.quality[0] == pytest.approx(1 - ((X - centers[left]) ** 2).sum() / spread)
    assert all(
        score == normalized_mutual_info_score(left, labels)
        for score, labels in zip(found.normalized_mutual_info, found.labels, strict=True)
    )
    assert "differs most from the given clusters: normalised mutual information 0.00" in found.message


def test_it_is_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    X, left = corners()
    figure = alternative_trade_off(X, left, 2, coordination=[0.2, 1.0]).plot()
    figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5000
    assert figure.axes[0].get_ylabel() == "share of variance between clusters"


def test_bad_input_is_refused():
    X, left = corners()
    with pytest.raises(DataError, match=r"given has shape \(39,\), but X has 40 rows"):
        alternative_trade_off(X, left[1:], 2)
    with pytest.raises(DataError, match="All rows of X are equal"):
        alternative_trade_off(np.ones((40, 2)), left, 2)
    with pytest.raises(ParameterError, match=r"coordination=2\.0"):
        alternative_trade_off(X, left, 2, coordination=[2.0])
