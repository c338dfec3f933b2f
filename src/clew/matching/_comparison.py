"""Compare pairs of rows: compute features for the pair model, and levels of agreement for the mixture.

Records are compared column by column and as a whole. Vectors are compared by their distance. Everything that depends on
the fitted rows (rarity of words, distances to neighbours) is computed once, so that new rows are compared in the same
way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from clew._neighbours import nearest_neighbours
from clew.matching._records import Field
from clew.matching._texts import (
    Terms,
    aligned,
    inverse_frequency,
    is_mostly_cut,
    letter_ngrams,
    nearest,
    numbers_shared,
    products,
    spelling_similarities,
    unit_vectors,
    word_counts,
)

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Levels = npt.NDArray[np.int8]
Column = npt.NDArray[np.float32]

# Levels of agreement of two cells. `_CLOSE` and `_SIMILAR` are thresholds on the mean of three text similarities, or on
# the n-gram cosine if it is larger and a text is so long that the other two similarities compare only its beginning.
MISSING, DIFFERENT, SIMILAR, CLOSE, EQUAL = range(5)
_CLOSE, _SIMILAR = 0.85, 0.6
# Bin edges for the similarity of two whole rows, and for its ratio to the best similarity of either row.
_WHOLE_LEVELS = np.arange(0.2, 0.95, 0.1)
_SHARE_LEVELS = np.array([0.5, 0.7, 0.85, 0.999])


class Compared(NamedTuple):
    """Features and similarities of compared pairs. A feature is NaN if one of the two cells is missing.

    Attributes
    ----------
    features : list of ndarrays of shape (n_pairs,)
        In single precision, because the features of many pairs are the largest arrays of all.
    levels : ndarray of shape (n_pairs, n_columns)
        Level of agreement of each column, from `MISSING` to `EQUAL`. Vectors have no columns.
    similarity : ndarray of shape (n_pairs,)
        Similarity of the whole rows, 1 for equal rows.
    """

    features: list[Column]
    levels: Levels
    similarity: FloatArray

    def merged(self, others: Compared, order: IntArray) -> Compared:
        """These pairs and others, in the given order of all of them."""
        features = [np.concatenate(both)[order] for both in zip(self.features, others.features, strict=True)]
        levels = np.concatenate([self.levels, others.levels])[order]
        return Compared(features, levels, np.concatenate([self.similarity, others.similarity])[order])


def standing(similarity: FloatArray, pairs: IntArray, scores: FloatArray) -> list[FloatArray]:
    """Compare a pair's similarity with the similarities of both rows to their nearest neighbours.

    Returns four features: the smaller and larger ratio to a row's best similarity, and the smaller and larger
    log-rank among a row's neighbours. `scores` are the similarities of each row to its neighbours, largest first. A new
    row has no scores; its ratio is then 1 and its rank 0.
    """
    shares, ranks = [], []
    for rows in pairs.T:
        known = rows < len(scores)
        best = np.where(known, scores[np.where(known, rows, 0), 0], similarity)
        shares.append(np.minimum(similarity / np.maximum(best, 1e-9), 1.0))
        # One neighbour at a time, as an array of all pairs and all neighbours would be large.
        above = sum((score[np.where(known, rows, 0)] > similarity + 1e-12 for score in scores.T), start=np.int64(0))
        ranks.append(np.log1p(np.where(known, above, 0)))
    return [np.minimum(*shares), np.maximum(*shares), np.minimum(*ranks), np.maximum(*ranks)]


def whole_levels(similarity: FloatArray, smaller_share: FloatArray) -> Levels:
    """Bin the similarity of two rows, and its smaller ratio to the best similarity of either row, into levels."""
    both = (similarity, _WHOLE_LEVELS), (smaller_share, _SHARE_LEVELS)
    return np.column_stack([np.digitize(values, edges).astype(np.int8) + np.int8(1) for values, edges in both])


@dataclass
class Records:
    """Records that can be compared, fitted rows first and new rows after them.

    Attributes
    ----------
    fields : list of Field
    n_fitted : int
        Number of fitted rows. The rarity of n-grams and words is computed from them.
    n_neighbors : int
        Number of nearest neighbours of each row, by similarity of whole records.
    known_scores : ndarray or None
        Similarities of the fitted rows to their neighbours, if they are known from the fit.
    """

    fields: list[Field]
    n_fitted: int
    n_neighbors: int
    known_scores: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.fields[0].codes)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [field.name for field in self.fields]

    @cached_property
    def vectors(self) -> sparse.csr_array:
        """TF-IDF vectors of the letter n-grams of all columns together."""
        total = self._ngram_counts()
        times = (np.arange(self.n_rows) < self.n_fitted).astype(np.int64)
        return unit_vectors(total, inverse_frequency(total, times))

    def _ngram_counts(self) -> sparse.csr_array:
        """Counts of the letter n-grams of all columns together."""
        terms = [letter_ngrams(field.texts) for field in self.fields]
        keys = np.unique(np.concatenate([one.keys for one in terms]))
        total = sparse.csr_array((self.n_rows, len(keys)))
        for field in self.fields:
            there = np.flatnonzero(field.codes >= 0)
            shape = self.n_rows, len(field.texts)
            rows = sparse.csr_array((np.ones(len(there)), (there, field.codes[there])), shape)
            total = sparse.csr_array(total + rows @ aligned(terms.pop(0), keys))
        total.sort_indices()
        return total

    @cached_property
    def _nearest(self) -> tuple[IntArray, FloatArray]:
        fitted = self.vectors[: self.n_fitted]
        return nearest(fitted, fitted, min(self.n_neighbors, max(self.n_fitted - 1, 1)), is_same=True)

    @property
    def neighbours(self) -> IntArray:
        """The most similar rows of each fitted row."""
        return self._nearest[0]

    @property
    def scores(self) -> FloatArray:
        """Similarities of each fitted row to its neighbours, largest first."""
        return self._nearest[1] if self.known_scores is None else self.known_scores

    def neighbours_of(self, rows: IntArray) -> IntArray:
        """The fitted rows that are most similar to each of these new rows."""
        n_neighbors = min(self.n_neighbors, self.n_fitted)
        return nearest(self.vectors[rows], self.vectors[: self.n_fitted], n_neighbors, is_same=False)[0]

    def compare(self, pairs: IntArray) -> Compared:
        """Compare pairs of rows column by column and as a whole."""
        features: list[Column] = []
        levels = np.empty((len(pairs), len(self.fields)), dtype=np.int8)
        for place, field in enumerate(self.fields):
            found, levels[:, place] = compare_cells(field, self.n_fitted, pairs)
            features += [feature.astype(np.float32) for feature in found]
        similarity = products(self.vectors, *np.ascontiguousarray(pairs.T))
        whole = [similarity, *standing(similarity, pairs, self.scores), (levels == EQUAL).mean(axis=1)]
        return Compared(features + [feature.astype(np.float32) for feature in whole], levels, similarity)

    def keys(self) -> list[bytes]:
        """One key per row; rows with equal cells have equal keys."""
        return [row.tobytes() for row in np.column_stack([field.codes for field in self.fields])]


def compare_cells(field: Field, n_fitted: int, pairs: IntArray) -> tuple[list[FloatArray], IntArray]:
    """Features of pairs of cells of one column, and their level of agreement."""
    one, two = field.codes[pairs].T
    missing = (one < 0) | (two < 0)
    n_texts = max(len(field.texts), 1)
    keys, place = np.unique(
        np.where(missing, 0, np.minimum(one, two) * n_texts + np.maximum(one, two)), return_inverse=True
    )
    # Compare each pair of distinct values once. Two rows with the same value give the pair (value, value).
    firsts, seconds = (side.astype(np.int64) for side in np.divmod(keys, n_texts))
    features, best = _compare_texts(field, n_fitted, firsts, seconds)
    level = np.select([firsts == seconds, best >= _CLOSE, best >= _SIMILAR], [EQUAL, CLOSE, SIMILAR], DIFFERENT)[place]
    level[missing] = MISSING
    found = [np.where(missing, np.nan, feature[place]) for feature in features]
    if len(field.numbers):
        found += _compare_numbers(field.numbers, n_fitted, pairs)
    return [*found, missing.astype(np.float64)], level


def _compare_texts(
    field: Field, n_fitted: int, firsts: IntArray, seconds: IntArray
) -> tuple[list[FloatArray], FloatArray]:
    if not field.texts:
        return [np.zeros(len(firsts))] * 7, np.zeros(len(firsts))
    counts = np.bincount(field.codes[:n_fitted][field.codes[:n_fitted] >= 0], minlength=len(field.texts))
    cosine, words = (
        _cosine(terms, counts, firsts, seconds) for terms in (letter_ngrams(field.texts), word_counts(field.texts))
    )
    edit, winkler = spelling_similarities(field.texts, firsts, seconds)
    equal = (firsts == seconds).astype(np.float64)
    n = max(n_fitted, 2)
    rarity = np.log(n / np.clip(counts[firsts], 1, n)) / np.log(n)
    shared = numbers_shared(field.texts, firsts, seconds)
    mean, is_long = (cosine + edit + winkler) / 3, is_mostly_cut(field.texts)
    best = np.where(is_long[firsts] | is_long[seconds], np.maximum(mean, cosine), mean)
    return [cosine, edit, winkler, words, equal, equal * rarity, shared], best


def _cosine(terms: Terms, times: IntArray, firsts: IntArray, seconds: IntArray) -> FloatArray:
    return products(unit_vectors(terms.counts, inverse_frequency(terms.counts, times)), firsts, seconds)


def _compare_numbers(numbers: FloatArray, n_fitted: int, pairs: IntArray) -> list[FloatArray]:
    """Log of the difference relative to the larger number, and relative to the column's standard deviation."""
    one, two = numbers[pairs].T
    known = numbers[:n_fitted][~np.isnan(numbers[:n_fitted])]
    size, spread = np.maximum(np.abs(one), np.abs(two)), float(known.std()) if len(known) else 0.0
    return [np.log1p(100 * np.abs(one - two) / np.where(scale > 0, scale, 1)) for scale in (size, np.float64(spread))]


@dataclass
class Vectors:
    """Vectors that can be compared, by their distance and by its ratio to the distances of the nearest neighbours.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
    n_fitted : int
    n_neighbors : int
    known_scores : ndarray or None
        Similarities of the fitted rows to their neighbours, if they are known from the fit.
    known_scale : float or None
        The unit of distance, if it is known from the fit.
    """

    X: Any
    n_fitted: int
    n_neighbors: int
    known_scores: FloatArray | None = None
    known_scale: float | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def columns(self) -> list[str]:
        """Empty: vectors have no levels of agreement per column."""
        return []

    @cached_property
    def _nearest(self) -> tuple[FloatArray, IntArray]:
        n_neighbors = min(self.n_neighbors, self.n_fitted - 1)
        if n_neighbors < 1:
            return np.zeros((self.n_fitted, 1)), np.full((self.n_fitted, 1), -1, dtype=np.int64)
        return nearest_neighbours(self.X[: self.n_fitted], n_neighbors)

    @cached_property
    def scale(self) -> float:
        """The unit of distance: the median distance of a row to the farthest of its neighbours."""
        if self.known_scale is not None:
            return self.known_scale
        far = self._nearest[0][:, -1:]
        return float(np.median(far[far > 0])) if (far > 0).any() else 1.0

    @property
    def neighbours(self) -> IntArray:
        """The nearest neighbours of each fitted row."""
        return self._nearest[1]

    @property
    def scores(self) -> FloatArray:
        """Similarities of each fitted row to its neighbours, largest first."""
        return self._similarity(self._nearest[0]) if self.known_scores is None else self.known_scores

    def _similarity(self, distances: FloatArray) -> FloatArray:
        return np.asarray(1 / (1 + distances / self.scale), dtype=np.float64)

    def neighbours_of(self, rows: IntArray) -> IntArray:
        """The fitted rows that are nearest to each of these new rows."""
        index = NearestNeighbors(n_neighbors=min(self.n_neighbors, self.n_fitted)).fit(self.X[: self.n_fitted])
        return np.asarray(index.kneighbors(self.X[rows], return_distance=False), dtype=np.int64)

    def compare(self, pairs: IntArray) -> Compared:
        """Compare pairs of rows by distance."""
        distances = row_norms(self.X[pairs[:, 0]] - self.X[pairs[:, 1]])
        similarity = self._similarity(np.asarray(distances, dtype=np.float64))
        features = [similarity, -np.log(1e-6 + 1 / similarity - 1), *standing(similarity, pairs, self.scores)]
        empty = np.empty((len(pairs), 0), dtype=np.int8)
        return Compared([feature.astype(np.float32) for feature in features], empty, similarity)

    def keys(self) -> list[bytes]:
        """One key per row; equal rows have equal keys."""
        if sparse.issparse(self.X):
            return [self.X[[row]].toarray().tobytes() for row in range(self.n_rows)]
        return [row.tobytes() for row in np.ascontiguousarray(self.X)]


Comparer = Records | Vectors
