"""Commands about answers in a file: whether all can hold, which look wrong, which number of clusters they suggest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clew.cli._exits import command
from clew.cli._options import (
    Answers,
    AsJson,
    Columns,
    Encoding,
    IdColumn,
    JudgingModel,
    NClusters,
    Plot,
    RandomState,
    Scale,
    Scaling,
    Separator,
    Table,
    TextReading,
    Texts,
)


@command
def check(
    answers: Annotated[
        Path, typer.Argument(metavar="ANSWERS", help="A csv, tsv, jsonl or parquet file: id_1, id_2, answer.")
    ],
    n_clusters: NClusters,
    data: Annotated[
        Path | None,
        typer.Option(help="The table that the answers are about.", show_default="only the rows in ANSWERS"),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column of --data with the ids of the rows.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Find the cheapest answers to drop so that the others can hold.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write the repaired answers.")
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Trust in an annotator: the price of an answer is its confidence times this. May be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check whether all answers can hold in k clusters, and if not, why not.

    \b
    Exit code 0: all answers can hold, or --repair found answers to drop.
    Exit code 1: the answers contradict each other (the chain of answers is
    printed) or need more than k clusters (the rows that prove it are printed).
    Exit code 3: this could not be decided within the work limit.

    \b
    [bold]Examples[/bold]
      clew check answers.csv -k 3
      clew check answers.csv -k 3 --data data.csv --id name
      clew check answers.jsonl -k 10 --json
      clew check answers.csv -k 3 --repair -o repaired.csv
      clew check answers.csv -k 3 --repair --trust ann=0.9 --trust bob=0.6
    """
    from clew.cli import _check

    _check.run(answers, n_clusters, data, id_column, as_json, repair, output, trust or [])


@command
def audit(
    data: Table,
    constraints: Answers,
    n_clusters: NClusters,
    id_column: IdColumn = None,
    columns: Columns = None,
    scale: Scaling = Scale.AUTO,
    text: TextReading = Texts.AUTO,
    sep: Separator = None,
    encoding: Encoding = None,
    model: JudgingModel = None,
    most: Annotated[int, typer.Option("-n", "--most", min=1, metavar="N", help="List at most N answers.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write all answers, ranked, to a csv, tsv, jsonl or parquet file.",
        ),
    ] = None,
    filtered: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the answers that change the clustering to another file."),
    ] = None,
    drop: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Leave this share of them out of --filtered, the most expensive first.",
            show_default="0",
        ),
    ] = None,
    keep_free: Annotated[
        bool, typer.Option("--keep-free", help="Also write answers that hold anyway to --filtered.")
    ] = False,
    plot: Plot = None,
    random_state: RandomState = 0,
    as_json: AsJson = False,
) -> None:
    """Rank answers by how likely they are wrong, with reasons.

    \b
    Each answer is compared with clusterings of the data and with the other
    answers. Contradictions, the cost of keeping the answer, and the error
    rate of its annotator count too. The answers are not changed.
    --model fits a mixture to the data and the answers. Its probability for
    each pair counts, too, and --filtered uses its prices.
    --filtered writes the useful answers for the next clustering. It leaves
    out answers that hold anyway, and with --drop the most expensive ones.

    \b
    [bold]Examples[/bold]
      clew audit data.csv -c answers.csv -k 3
      clew audit data.csv -c answers.csv -k 3 --id name --plot audit.png
      clew audit data.csv -c answers.csv -k 3 -o ranked.csv
      clew audit data.csv -c answers.csv -k 3 --model penalized-gaussian-mixture
      clew audit data.csv -c answers.csv -k 3 --filtered useful.csv --drop 0.5
      clew audit data.csv -c answers.csv -k 3 --json
    """
    from clew.cli import _audit, _reading

    reading = _reading.Reading(data, id_column, columns, scale, text, sep, encoding, random_state)
    request = _audit.AuditRequest(reading, constraints, plot, as_json)
    chosen = _audit.Filtering.of(filtered, drop, keep_free)
    _audit.run_audit(request, n_clusters, most, output, model, chosen)


@command
def advise(
    data: Table,
    constraints: Answers,
    n_clusters: Annotated[
        int | None,
        typer.Option("-k", "--n-clusters", min=1, help="Number of clusters.", show_default="the likeliest"),
    ] = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    scale: Scaling = Scale.AUTO,
    text: TextReading = Texts.AUTO,
    sep: Separator = None,
    encoding: Encoding = None,
    most_clusters: Annotated[int, typer.Option(min=2, metavar="N", help="Try 2 to N clusters.")] = 10,
    metrics: Annotated[
        str, typer.Option(metavar="A,B", help="Distances to compare.")
    ] = "euclidean,manhattan,chebyshev,mahalanobis,cosine",
    plot: Plot = None,
    random_state: RandomState = 0,
    as_json: AsJson = False,
) -> None:
    """Estimate the number of clusters and the distance from the answers.

    \b
    The best number of clusters is the one whose clusterings predict held-out
    answers best. The best distance is the one under which most answers can be
    kept at no cost. The report says how certain the advice is, whether near
    rows tend to share answers, and how hard the answers are to satisfy.

    \b
    [bold]Examples[/bold]
      clew advise data.csv -c answers.csv
      clew advise data.csv -c answers.csv -k 3 --metrics euclidean,cosine
      clew advise data.csv -c answers.csv --plot advice.png --json
    """
    from clew.cli import _audit, _reading

    reading = _reading.Reading(data, id_column, columns, scale, text, sep, encoding, random_state)
    request = _audit.AuditRequest(reading, constraints, plot, as_json)
    _audit.run_advise(request, n_clusters, most_clusters, metrics)
