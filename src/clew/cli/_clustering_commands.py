"""Commands that cluster a table or scored pairs, list the methods, and run the demo."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clew.cli._exits import command
from clew.cli._options import (
    AsJson,
    Columns,
    Encoding,
    Groups,
    IdColumn,
    RandomState,
    Scale,
    Scaling,
    Separator,
    TextReading,
    Texts,
)


@command
def cluster(
    context: typer.Context,
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="A csv, tsv, jsonl, parquet, npy or npz file, or a folder of images or of parquet files; - is "
            "standard input.",
        ),
    ],
    n_clusters: Annotated[
        str | None,
        typer.Option("-k", "--n-clusters", help='Number of clusters, or "auto" for some methods.', show_default=False),
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option(
            "-c",
            "--constraints",
            metavar="FILE",
            help="Answers about pairs (csv, tsv, jsonl, parquet) in the columns id_1, id_2, answer and optionally "
            "confidence, or a file labelled with splink, zingg, dedupe, Label Studio and others. "
            "The ids are values of the --id column, or row numbers from 0.",
        ),
    ] = None,
    groups: Annotated[
        Groups | None,
        typer.Option(
            "--groups",
            help="Size of the groups: small for very many groups of few rows, such as duplicate records. Their number "
            "is found.",
            show_default="large",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--method",
            help="See clew methods.",
            show_default="pck-means; match-clustering for small groups; constrained-kmedoids with --dissimilarity; "
            "cond-ens with --unlike",
        ),
    ] = None,
    unlike: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A labels file with known clusters: find another good way to group the rows.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write the labels to: csv, tsv, jsonl or parquet. - writes csv to stdout.",
            show_default="DATA-labels.csv in this folder; DATA-other-labels.csv with --unlike",
        ),
    ] = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="A cluster has at most one row of each value of this column, such as the list a row is from. Methods "
            "with soft constraints may break this; the summary says how often.",
        ),
    ] = None,
    golden: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File for one merged row per cluster: in each column the most frequent value, of equally frequent "
            "ones a value that is common elsewhere, then the longest.",
        ),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Known classes of some rows. An empty cell or -1 means unknown."),
    ] = None,
    dissimilarity: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A square matrix (npy) of the dissimilarities between the rows of DATA, used instead of its columns. "
            "For methods with --metric precomputed.",
        ),
    ] = None,
    scale: Scaling = Scale.AUTO,
    text: TextReading = Texts.AUTO,
    sep: Separator = None,
    encoding: Encoding = None,
    random_state: RandomState = 0,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Whether to read parquet and npy by the batch instead of into memory. Ctrl-C then keeps the rounds so "
            "far, and the same command continues them.",
            show_default="for folders of parquet files, and files that take more than 1 GB",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print no summary and no progress.")] = False,
) -> None:
    """Cluster the rows of a table and write the cluster of each row.

    \b
    Every parameter of the method is a flag too: --penalty 2, --n-init 10,
    --max-iter 50, --metric cosine, --no-entailed (see clew methods NAME).
    The labels file has two columns: the id (or the row number) and cluster.
    Some methods add the probability that the row belongs to the cluster.
    With --label-column, clusters are named after the classes. Clusters
    without a known class are called new-1, new-2, ...
    A text cell that a spreadsheet would run as a formula (it starts with =,
    +, - or @, and is no phone number) is written with a ' in front.
    If texts have more than half of the weight, --metric defaults to cosine.

    \b
    [bold]Examples[/bold]
      clew cluster data.csv -k 3
      clew cluster data.csv -k 3 --id name -c answers.csv -o labels.csv
      clew cluster data.parquet -k 10 --columns embedding --metric cosine
      clew cluster huge.parquet -k 10 -c answers.csv --stream -o labels.parquet
      clew cluster data.csv -k 3 -c answers.csv -m cop-kmeans --scale standard
      clew cluster data.csv -k 3 --label-column class --json -o labels.parquet
      clew cluster words.csv -k 3 --id name --dissimilarity matrix.npy
      clew cluster data.csv -k 3 --unlike data-labels.csv
      clew cluster customers.csv --groups small --id number --golden clean.csv
      clew cluster - -k 3 < data.csv > labels.csv
    """
    from clew.cli import _cluster, _reading

    own_flags = [flag for parameter in context.command.params for flag in parameter.opts if flag.startswith("--")]
    default = "pck-means" if dissimilarity is None else "constrained-kmedoids"
    if groups == Groups.SMALL:
        default = "match-clustering"
    if unlike is not None:
        default = "cond-ens"
    request = _cluster.ClusterRequest(
        arguments=arguments,
        reading=_reading.Reading("", id_column, columns, scale, text, sep, encoding, random_state),
        n_clusters=n_clusters,
        constraints=constraints,
        groups=groups,
        method=method or default,
        unlike=unlike,
        source=source,
        golden=golden,
        output=output,
        label_column=label_column,
        dissimilarity=dissimilarity,
        json=as_json,
        quiet=quiet,
        stream=stream,
    )
    _cluster.run(request, own_flags)


@command
def cluster_edges(
    edges: Annotated[
        str,
        typer.Argument(
            metavar="EDGES",
            help="A csv, tsv, jsonl or parquet file of scored pairs: id_1, id_2, score; or splink's predictions. "
            "- is standard input.",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write the clusters to: csv, tsv, jsonl or parquet. - writes csv to stdout.",
            show_default="EDGES-clusters.csv in this folder",
        ),
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option(
            "-c",
            "--constraints",
            metavar="FILE",
            help="Answers that always hold: id_1, id_2, answer, or splink's labels.",
        ),
    ] = None,
    review: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Output file for the pairs most worth checking. The first ones are also printed."
        ),
    ] = None,
    most: Annotated[int, typer.Option("-n", "--most", min=1, metavar="N", help="Number of pairs for --review.")] = 20,
    records: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A table of all records, including those in no pair. Needs --id."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column of --records with the ids.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A column of --records: a cluster has at most one record per value."),
    ] = None,
    one_per_source: Annotated[
        bool,
        typer.Option(
            "--one-per-source",
            help="Like --source, with the columns source_1 and source_2 of EDGES, or source_dataset_l and "
            "source_dataset_r.",
        ),
    ] = False,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column of the scores.",
            show_default="match_probability, probability, score, weight or match_weight",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Higher scores join records, lower ones separate them.", show_default="0.5, or 0 for weights"
        ),
    ] = None,
    missing: Annotated[
        float | None,
        typer.Option(help="The score of pairs that are not in EDGES.", show_default="0.4, or -0.4 for weights"),
    ] = None,
    sep: Separator = None,
    encoding: Encoding = None,
    random_state: RandomState = 0,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print no summary and no progress.")] = False,
) -> None:
    """Cluster ids by scored pairs, without a number of clusters.

    \b
    Scores are probabilities that two ids are the same thing. Scores in a
    column called weight or match_weight are above 0 for the same and below 0
    for different. The clusters disagree with the scores as little as possible,
    and answers always hold. The output has the columns id and cluster.

    \b
    [bold]Examples[/bold]
      clew cluster-edges edges.csv -o clusters.csv
      clew cluster-edges edges.csv --review check.csv
      clew cluster-edges edges.csv -c answers.csv -o clusters.csv
      clew cluster-edges predictions.parquet --one-per-source
      clew cluster-edges edges.csv --records people.csv --id id --source list
    """
    from clew.cli import _cluster_edges

    request = _cluster_edges.EdgesRequest(
        edges=edges, output=output, constraints=constraints, records=records, id_column=id_column, source=source,
        one_per_source=one_per_source, score=score, threshold=threshold, missing=missing, review=review, most=most,
        sep=sep, encoding=encoding, random_state=random_state, json=as_json, quiet=quiet,
    )  # fmt: skip
    _cluster_edges.run(request)


@command
def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The method to explain.")] = None,
    data: Annotated[
        str | None, typer.Option("--for", metavar="DATA", help="Say which methods suit this table, and why.")
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option("-c", "--constraints", metavar="FILE", help="With --for: answers about the rows of the table."),
    ] = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    scale: Scaling = Scale.AUTO,
    text: TextReading = Texts.AUTO,
    sep: Separator = None,
    encoding: Encoding = None,
    random_state: RandomState = 0,
    as_json: AsJson = False,
) -> None:
    """List the methods, explain one, or say which suit a table.

    \b
    --for compares the number of rows, the shape of dense regions and the
    kinds of answers with the capabilities of each method.

    \b
    [bold]Examples[/bold]
      clew methods
      clew methods pck-means
      clew methods --for data.csv
      clew methods --for data.csv --id name -c answers.csv --json
    """
    from clew.cli import _methods, _reading

    if data is None:
        _methods.run(name, constraints, as_json=as_json)
    else:
        reading = _reading.Reading(data, id_column, columns, scale, text, sep, encoding, random_state)
        _methods.run_for(name, reading, constraints, as_json=as_json)


class Bundled(StrEnum):
    """Data sets that `clew demo` can use."""

    IRIS = "iris"
    WINE = "wine"
    DIGITS = "digits"


@command
def demo(
    out: Annotated[
        Path, typer.Option("-o", "--output", "--out", metavar="DIRECTORY", help="Folder to write the files to.")
    ] = Path("demo"),
    data: Annotated[
        Bundled, typer.Option(help="Data set. digits has ten classes, so a few dozen answers change little.")
    ] = Bundled.IRIS,
    answers: Annotated[int, typer.Option(min=0, metavar="N", help="Number of simulated answers.")] = 48,
    random_state: RandomState = 0,
) -> None:
    """Show how a few dozen answers change a clustering.

    \b
    Clusters a bundled data set without and with simulated answers, compares
    the two, and writes a picture, the labels, the data and the answers.

    \b
    [bold]Examples[/bold]
      clew demo
      clew demo --data wine --answers 40 -o wine-demo
    """
    from clew.cli import _demo

    _demo.run(out, data.value, answers, random_state)
