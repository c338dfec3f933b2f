"""Texts as sparse vectors of letter n-grams or words, weighted by rarity (TF-IDF), computed on whole arrays at once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.extmath import row_norms

from clew.kernels.edit_distance import edit_distances
from clew.kernels.jaro_winkler import jaro_winkler
from clew.kernels.sparse_products import pair_products, top_products

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Number of bits of a code point, so that three code points fit into a 64-bit key.
_BITS = 21
_SPACE = 32
# Edit distance and Jaro-Winkler compare only this many letters, as their time grows with the square of the length.
_COMPARED_LETTERS = 64
# The search for one row's neighbours looks at no more than this many index entries, in about 0.1 ms.
_MOST_VISITED = 10_000
# Number of rows whose neighbours are searched at a time. Each block needs a sorted copy of its features.
_QUERY_BLOCK = 20_000

_NOT_WORD = re.compile(r"[^\w]+|_+")


def plain(text: str) -> str:
    """Convert a text to lower case, without accents and punctuation, with single spaces."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _NOT_WORD.sub(" ", kept).strip()


class Strings(NamedTuple):
    """Texts as one array of code points: text s is ``letters[ends[s]:ends[s + 1]]``."""

    ends: IntArray
    letters: IntArray


def strings(texts: Sequence[str]) -> Strings:
    """Concatenate texts."""
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    letters = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)
    return Strings(np.append(0, np.cumsum(lengths)), letters)


class Terms(NamedTuple):
    """Counts of terms in texts: ``counts[t, v]`` is how often the term with key ``keys[v]`` occurs in text t."""

    keys: IntArray
    counts: sparse.csr_array


def letter_ngrams(texts: Sequence[str]) -> Terms:
    """Count the letter bigrams and trigrams of each text, padded with a space on both sides."""
    padded = strings([f" {text} " if text else "" for text in texts])
    letters = padded.letters
    text_of = np.repeat(np.arange(len(texts)), np.diff(padded.ends))
    two = (letters[:-1] << _BITS) | letters[1:]
    inside = text_of[:-1] == text_of[1:]
    keys, owners = [two[inside]], [text_of[:-1][inside]]
    if len(letters) > 2:
        three = (letters[:-2] << (2 * _BITS)) | two[1:]
        inside = (text_of[:-2] == text_of[2:]) & (letters[1:-1] != _SPACE)
        keys.append(three[inside])
        owners.append(text_of[:-2][inside])
    return _counted(np.concatenate(keys), np.concatenate(owners), len(texts))


def word_counts(texts: Sequence[str]) -> Terms:
    """Count the words of each text; words are numbered in the order in which they first occur."""
    numbers: dict[str, int] = {}
    split = [text.split() for text in texts]
    keys = np.array([numbers.setdefault(word, len(numbers)) for words in split for word in words], dtype=np.int64)
    return _counted(keys, _owners(split), len(texts))


def numbers_shared(texts: Sequence[str], firsts: IntArray, seconds: IntArray) -> FloatArray:
    """Jaccard similarity of the words with digits in two texts; 0.5 if neither text has any."""
    split = [[word for word in set(text.split()) if any(map(str.isdigit, word))] for text in texts]
    numbers: dict[str, int] = {}
    keys = np.array([numbers.setdefault(word, len(numbers)) for words in split for word in words], dtype=np.int64)
    counts = _counted(keys, _owners(split), len(texts)).counts
    n_words = np.diff(counts.indptr)
    both = products(counts, firsts, seconds)
    either = n_words[firsts] + n_words[seconds] - both
    return np.where(either > 0, both / np.maximum(either, 1), 0.5)


def _owners(split: Sequence[Sequence[str]]) -> IntArray:
    return np.repeat(np.arange(len(split)), np.fromiter(map(len, split), dtype=np.int64, count=len(split)))


def _counted(keys: IntArray, owners: IntArray, n_texts: int) -> Terms:
    distinct, columns = np.unique(keys, return_inverse=True)
    counts = sparse.coo_array((np.ones(len(keys)), (owners, columns)), shape=(n_texts, len(distinct))).tocsr()
    counts.sum_duplicates()
    counts.sort_indices()
    return Terms(distinct, counts)


def aligned(terms: Terms, keys: IntArray) -> sparse.csr_array:
    """Rearrange the counts so that there is one column per key. `keys` is sorted; terms not in it are dropped."""
    place = np.searchsorted(keys, terms.keys)
    known = place < len(keys)
    known[known] = keys[place[known]] == terms.keys[known]
    entries = terms.counts.tocoo()
    rows, columns = entries.coords
    kept = known[columns]
    return sparse.csr_array(
        (entries.data[kept], (rows[kept], place[columns[kept]])), shape=(terms.counts.shape[0], len(keys))
    )


def inverse_frequency(counts: sparse.csr_array, times: IntArray) -> FloatArray:
    """Smoothed inverse document frequency of each term; text t occurs ``times[t]`` times."""
    rows = np.repeat(times.astype(np.float64), np.diff(counts.indptr))
    found = np.bincount(counts.indices, rows, minlength=counts.shape[1])
    return np.log((1 + times.sum()) / (1 + found)) + 1


def unit_vectors(counts: sparse.csr_array, rarity: FloatArray) -> sparse.csr_array:
    """TF-IDF vectors of length 1, with sublinear term frequency (1 + log count). The columns of a row are sorted."""
    values = np.log(counts.data)
    values += 1
    values *= rarity[counts.indices]
    vectors = sparse.csr_array((values, counts.indices, counts.indptr), shape=counts.shape)
    norms = row_norms(vectors)
    vectors.data /= np.repeat(np.where(norms > 0, norms, 1), np.diff(vectors.indptr))
    return vectors


def products(vectors: sparse.csr_array, firsts: IntArray, seconds: IntArray) -> FloatArray:
    """Dot product of the two rows of each pair."""
    found = np.empty(len(firsts))
    pair_products(
        vectors.indptr.astype(np.int64), vectors.indices.astype(np.int64), vectors.data, firsts, seconds, found
    )
    return found


def nearest(
    queries: sparse.csr_array, vectors: sparse.csr_array, n_neighbors: int, *, is_same: bool
) -> tuple[IntArray, FloatArray]:
    """Find the rows with the largest dot products with each query, padded with -1, and these products.

    Rare features are searched first, and at most `_MOST_VISITED` index entries per query. With `is_same`, the queries
    are the rows themselves, and no row is its own neighbour.
    """
    n_rows, n_queries = vectors.shape[0], queries.shape[0]
    by_feature = vectors.tocsc()
    n_with = np.diff(by_feature.indptr)
    feature_ptr, rows, weights = (
        by_feature.indptr.astype(np.int64),
        by_feature.indices.astype(np.int64),
        by_feature.data,
    )
    del by_feature  # the index is held once, with the integers that the kernel reads
    neighbours = np.empty((n_queries, n_neighbors), dtype=np.int64)
    found = np.empty((n_queries, n_neighbors))
    sums, touched = np.zeros(n_rows), np.empty(n_rows, dtype=np.int64)
    for start in range(0, n_queries, _QUERY_BLOCK):
        block = slice(start, start + _QUERY_BLOCK)
        some = queries[block]
        owner = np.repeat(np.arange(some.shape[0]), np.diff(some.indptr))
        order = np.lexsort((n_with[some.indices], owner))
        top_products(
            some.indptr.astype(np.int64),
            some.indices[order].astype(np.int64),
            some.data[order],
            feature_ptr,
            rows,
            weights,
            start if is_same else -1,
            _MOST_VISITED,
            sums,
            touched,
            neighbours[block],
            found[block],
        )
    return neighbours, found


def is_mostly_cut(texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether `spelling_similarities` compares less than half of the letters of each text."""
    return np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) > 2 * _COMPARED_LETTERS


def spelling_similarities(texts: Sequence[str], firsts: IntArray, seconds: IntArray) -> tuple[FloatArray, FloatArray]:
    """Edit similarity (1 minus the edit distance per letter) and Jaro-Winkler similarity of each pair of texts."""
    ends, letters = strings([text[:_COMPARED_LETTERS] for text in texts])
    symbols = np.unique(letters, return_inverse=True)[1].astype(np.int64)
    longest = int(np.diff(ends).max(initial=0))
    distances, similar = np.empty(len(firsts)), np.empty(len(firsts))
    table = np.empty((longest + 2, longest + 2), dtype=np.int64)
    edit_distances(ends, symbols, firsts, seconds, table, np.zeros(len(symbols) + 1, dtype=np.int64), distances)
    jaro_winkler(ends, symbols, firsts, seconds, np.empty((2, longest + 1), dtype=np.int64), similar)
    lengths = np.maximum(np.diff(ends)[firsts], np.diff(ends)[seconds])
    return 1 - distances / np.maximum(lengths, 1), similar
