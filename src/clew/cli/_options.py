"""Flags that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Scale(StrEnum):
    """Values of `--scale`."""

    AUTO = "auto"
    NONE = "none"
    STANDARD = "standard"
    MINMAX = "minmax"
    ROBUST = "robust"


class Texts(StrEnum):
    """Values of `--text`."""

    AUTO = "auto"
    TFIDF = "tfidf"
    EMBEDDINGS = "embeddings"
    NONE = "none"


class Groups(StrEnum):
    """Values of `--groups`."""

    AUTO = "auto"
    LARGE = "large"
    SMALL = "small"


class Metric(StrEnum):
    """Values of `--metric`."""

    AUTO = "auto"
    EUCLIDEAN = "euclidean"
    COSINE = "cosine"


_SCALING = (
    "Scale the columns: none, standard, minmax or robust. auto is standard for numbers and dates, and none for vectors."
)
_TEXT = "Turn text columns into vectors: tfidf, embeddings or none. auto is tfidf."

IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="The column with the ids of the rows.",
        show_default="row numbers, or the file names in a folder of images",
    ),
]
Columns = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="The columns to cluster by.", show_default="all others")
]
Source = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A cluster has at most one row of each value of this column, such as the list a row is from.",
    ),
]
RandomState = Annotated[
    int, typer.Option(min=0, metavar="SEED", help="Random seed. The same seed gives the same result.")
]
NClusters = Annotated[int, typer.Option("-k", "--n-clusters", min=1, help="Number of clusters.", show_default=False)]
KeepingMethod = Annotated[
    str | None, typer.Option("-m", "--method", help="See clew methods.", show_default="the strategy's own clusters")
]
_TABLES = "csv, tsv, jsonl, parquet, npy or npz file, or a folder of images"
Table = Annotated[str, typer.Argument(metavar="DATA", help=f"A {_TABLES}; - is standard input.")]
TableOrProject = Annotated[str, typer.Argument(metavar="DATA", help=f"A {_TABLES}, or an existing project.")]
Scaling = Annotated[Scale, typer.Option(metavar="HOW", help=_SCALING)]
TextReading = Annotated[Texts, typer.Option(metavar="HOW", help=_TEXT)]
Separator = Annotated[
    str | None,
    typer.Option(metavar="SIGN", help="Separator of a csv file.", show_default="detected from its header"),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Encoding of a csv or jsonl file, such as cp1252.", show_default="utf-8"),
]
Answers = Annotated[
    Path,
    typer.Option(
        "-c",
        "--constraints",
        metavar="FILE",
        help="Answers about pairs: id_1, id_2, answer and optionally confidence, annotator, time.",
    ),
]
JudgingModel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A method with probabilities, such as penalized-gaussian-mixture, as evidence about each answer.",
        show_default=False,
    ),
]
# Settings of a project. Without a flag, the setting of an existing project is not changed.
ProjectScaling = Annotated[Scale | None, typer.Option("--scale", metavar="HOW", help=_SCALING, show_default="auto")]
ProjectText = Annotated[Texts | None, typer.Option("--text", metavar="HOW", help=_TEXT, show_default="auto")]
ProjectMetric = Annotated[
    Metric | None,
    typer.Option(
        "--metric",
        help="auto is cosine if texts have more than half of the weight, else euclidean.",
        show_default="auto",
    ),
]
ProjectNClusters = Annotated[
    int | None, typer.Option("-k", "--n-clusters", min=1, help="Number of clusters.", show_default="unknown")
]
ProjectGroups = Annotated[
    Groups | None,
    typer.Option(
        "--groups",
        help="Size of the groups: small for very many groups of few rows, such as duplicate records. auto "
        "finds out from the data and the first answers.",
        show_default="auto",
    ),
]
ProjectPlace = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="PLACE",
        help="Where to store the answers: a file, or postgresql://user@host/database.",
        show_default="DATA.clew, next to the data",
    ),
]
ProjectRandomState = Annotated[
    int | None,
    typer.Option(
        "--random-state",
        min=0,
        metavar="SEED",
        help="Random seed. The same seed gives the same result.",
        show_default="0",
    ),
]
Strategy = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Strategy that chooses the questions, such as min-max.", show_default="the best for -k"
    ),
]
ErrorRate = Annotated[
    float | None,
    typer.Option(
        "--error-rate",
        metavar="SHARE",
        help="Share of answers that may be wrong, from 0 to below 0.5. Doubtful answers then get a second opinion.",
        show_default="found from contradictions",
    ),
]
Overlap = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of people to ask about each pair.", show_default="1")
]
KnownAnswers = Annotated[
    Path | None,
    typer.Option("-c", "--constraints", metavar="FILE", help="Answers to start a new project with."),
]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Save a plot as png, pdf or svg.")]
Project = Annotated[
    str,
    typer.Argument(
        metavar="PROJECT", help="A .clew file, the data file next to it, or postgresql://user@host/database."
    ),
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the project in a database.", show_default=False)
]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="The data file, if it was moved.", show_default="the path at the start of the project"
    ),
]
Annotator = Annotated[str, typer.Option(metavar="NAME", envvar="CLEW_ANNOTATOR", help="Your name.", show_envvar=True)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
