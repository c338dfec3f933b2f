"""What a round of `HMRFKMeans` costs on texts, beside a round of `PCKMeans`: cosines of sparse rows.

Rounds are counted from the second one, so that set-up is left out. Processor time, because other work may run.
"""

from __future__ import annotations

import gzip
import json
import time
import warnings
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer

import clew
from benchmarks._harness import Report, judged
from benchmarks._published import SHARED

N_ROWS, N_WORDS, N_PAIRS = 3_000, 20_000, 500
FEW, MANY, LIMIT = 2, 9, 5.0
NEWS = ("newsgroups20", "news_all20", "classic3")


def run(*, quick: bool) -> Report:
    n_rows, n_words, n_repeats = (200, 500, 1) if quick else (N_ROWS, N_WORDS, 3)
    sets = {"drawn": _drawn(n_rows, n_words)}
    if not quick and SHARED.exists():
        sets |= {name: _texts(name, n_rows, n_words) for name in NEWS}
    rows = []
    for name, (X, y) in sets.items():
        seconds = measure(X, y, n_repeats)
        ratio = median(hmrf / pck for hmrf, pck in zip(seconds["HMRFKMeans"], seconds["PCKMeans"], strict=True))
        rows.append(
            {
                "set": name,
                "n_rows": X.shape[0],
                "n_columns": X.shape[1],
                "n_clusters": int(y.max()) + 1,
                "hmrf": 1000 * median(seconds["HMRFKMeans"]),
                "pck": 1000 * median(seconds["PCKMeans"]),
                "ratio": ratio,
                **judged(ratio, None if quick else LIMIT),
                "seconds": seconds,
            }
        )
    columns = {
        "set": "set", "n_rows": "rows", "n_columns": "columns", "n_clusters": "clusters", "hmrf": "HMRFKMeans, ms",
        "pck": "PCKMeans, ms", "ratio": "ratio", "bar": "bar", "verdict": "",
    }  # fmt: skip
    notes = [f"Processor time of a round, between rounds {FEW} and {MANY}; {N_PAIRS} pairs; medians over repetitions."]
    return Report("text-rounds", "One more round on texts: cosines of sparse rows", columns, rows, notes)


def measure(X: Any, y: np.ndarray, n_repeats: int) -> dict[str, list[float]]:
    """Seconds of one round of each method, from the same centres."""
    n_clusters = int(y.max()) + 1
    known = clew.Constraints.sample(y, min(N_PAIRS, len(y)), random_state=0)
    init = X[np.random.default_rng(1).choice(X.shape[0], n_clusters, replace=False)].toarray()

    def cost(method: str, max_iter: int) -> tuple[float, int]:
        model = getattr(clew, method)(n_clusters, metric="cosine", init=init, max_iter=max_iter, tol=0, random_state=0)
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is the point
            model.fit(X, constraints=known)
        return time.process_time() - started, model.n_iter_

    seconds: dict[str, list[float]] = {"PCKMeans": [], "HMRFKMeans": []}
    for _ in range(n_repeats):
        for method, found in seconds.items():
            (few, n_few), (many, n_many) = cost(method, FEW), cost(method, MANY)
            found.append(max(many - few, 1e-9) / max(n_many - n_few, 1))
    return seconds


def _drawn(n_rows: int, n_words: int) -> tuple[Any, np.ndarray]:
    """Bags of words in twenty topics, with word frequencies of Zipf's law, weighted by idf."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, n_rows)
    topics = [rng.permutation(n_words)[: n_words // 50] for _ in range(20)]
    frequencies = 1 / np.arange(1, n_words + 1)
    lengths = rng.integers(30, 200, n_rows)
    row_of = np.repeat(np.arange(n_rows), lengths)
    common = rng.choice(n_words, len(row_of), p=frequencies / frequencies.sum())
    special = np.array([rng.choice(topics[topic]) for topic in y[row_of]])
    words = np.where(rng.random(len(row_of)) < 0.3, special, common)
    counts = sparse.csr_matrix((np.ones(len(words)), (row_of, words)), shape=(n_rows, n_words))
    idf = np.log(n_rows / (1 + np.bincount(counts.indices, minlength=n_words))).clip(0.1)
    return sparse.csr_matrix(counts.multiply(idf)), y


def _texts(name: str, n_rows: int, n_words: int) -> tuple[Any, np.ndarray]:
    """TF-IDF of a random part of a published set of texts."""
    with gzip.open(SHARED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line) for line in lines]
    chosen = [texts[place] for place in np.random.default_rng(0).permutation(len(texts))[:n_rows]]
    y = np.unique([str(one["label"]) for one in chosen], return_inverse=True)[1]
    return TfidfVectorizer(max_features=n_words, sublinear_tf=True).fit_transform([one["text"] for one in chosen]), y
