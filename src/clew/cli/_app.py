"""The commands and their flags."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clew._version import __version__
from clew.cli._exits import command

app = typer.Typer(
    name="clew",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Scale(StrEnum):
    """How `--scale` treats the columns."""

    NONE = "none"
    STANDARD = "standard"
    MINMAX = "minmax"
    ROBUST = "robust"


class Bundled(StrEnum):
    """The data sets of the demo."""

    IRIS = "iris"
    WINE = "wine"
    DIGITS = "digits"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clew {__version__}")
        raise typer.Exit


@app.callback()
def _clew(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Cluster data with what people know about it.

    \b
    [bold]Start here[/bold]
      clew demo                                    see answers change a clustering
      clew cluster data.csv -k 3                   cluster the rows of a table
      clew cluster data.csv -k 3 -c answers.csv    the same with answers
      clew check answers.csv -k 3                  can these answers hold?
      clew audit data.csv -c answers.csv -k 3      which answers look wrong?
      clew advise data.csv -c answers.csv          how many clusters, which distance?
      clew methods                                 which methods there are

    \b
    Answers are pairs of rows, one a line, in the columns id_1, id_2 and
    answer: same, different or unsure.

    \b
    [bold]Exit codes[/bold]
        0  fine
        1  the answer is no: contradictory, or not with so few clusters
        2  bad input
        3  undecided at the work limit
       70  a bug in clew
      130  stopped with Ctrl-C
    """


@app.command(no_args_is_help=True, context_settings={"ignore_unknown_options": True})
@command
def cluster(
    context: typer.Context,
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="A csv, tsv, parquet, npy or npz file.",
        ),
    ],
    n_clusters: Annotated[
        int | None, typer.Option("-k", "--n-clusters", help="Number of clusters.", show_default=False)
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option(
            "-c",
            "--constraints",
            metavar="FILE",
            help="Answers about pairs (csv, tsv, jsonl, parquet): id_1, id_2, answer, perhaps confidence. "
            "The ids are those of --id, or row numbers from 0.",
        ),
    ] = None,
    method: Annotated[str, typer.Option("-m", "--method", help="See clew methods.")] = "pck-means",
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where the labels go: csv, tsv, jsonl or parquet; - is csv to stdout.",
            show_default="DATA-labels.csv, here",
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column that names the rows.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="The columns to cluster by.", show_default="all others"),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Known classes of some rows; an empty cell or -1 is unknown."),
    ] = None,
    scale: Annotated[
        Scale,
        typer.Option(metavar="HOW", help="Make the columns comparable: none, standard, minmax or robust."),
    ] = Scale.NONE,
    random_state: Annotated[
        int, typer.Option(min=0, metavar="SEED", help="Fixed, so that a command repeats itself.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No summary, no progress.")] = False,
) -> None:
    """Cluster the rows of a table and write the cluster of each row.

    \b
    Every parameter of the method is a flag too: --penalty 2, --n-init 10,
    --max-iter 50, --metric cosine, --no-entailed (see clew methods NAME).
    The labels file has two columns: the id (or row, its number) and cluster.
    With --label-column, clusters have the names of the classes; clusters
    beyond those are called new-1, new-2, ...
    Text cells that a spreadsheet would run (=, +, -, @) get a leading '.

    \b
    [bold]Examples[/bold]
      clew cluster data.csv -k 3
      clew cluster data.csv -k 3 --id name -c answers.csv -o labels.csv
      clew cluster data.parquet -k 10 --columns embedding --metric cosine
      clew cluster data.csv -k 3 -c answers.csv -m copk-means --scale standard
      clew cluster data.csv -k 3 --label-column class --json -o labels.parquet
    """
    from clew.cli import _cluster

    own_flags = [flag for parameter in context.command.params for flag in parameter.opts if flag.startswith("--")]
    request = _cluster.Request(
        arguments=arguments,
        n_clusters=n_clusters,
        constraints=constraints,
        method=method,
        output=output,
        id_column=id_column,
        columns=columns,
        label_column=label_column,
        scale=scale.value,
        random_state=random_state,
        json=as_json,
        quiet=quiet,
    )
    _cluster.run(request, own_flags)


@app.command(no_args_is_help=True)
@command
def check(
    answers: Annotated[
        Path, typer.Argument(metavar="ANSWERS", help="A csv, tsv, jsonl or parquet file: id_1, id_2, answer.")
    ],
    n_clusters: Annotated[int, typer.Option("-k", "--n-clusters", help="Number of clusters.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(help="The table the answers are about.", show_default="just the rows they name"),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column of --data that names the rows.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say whether all answers can hold in k clusters, and if not, why not.

    \b
    Exits with 0 if they can; with 1 if they contradict each other (told with
    the chain of answers) or need more clusters (told with the rows that prove
    it); with 3 if that could not be decided within the work limit.

    \b
    [bold]Examples[/bold]
      clew check answers.csv -k 3
      clew check answers.csv -k 3 --data data.csv --id name
      clew check answers.jsonl -k 10 --json
    """
    from clew.cli import _check

    _check.run(answers, n_clusters, data, id_column, as_json)


@app.command(no_args_is_help=True)
@command
def audit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A csv, tsv, parquet, npy or npz file.")],
    constraints: Annotated[
        Path,
        typer.Option(
            "-c",
            "--constraints",
            metavar="FILE",
            help="Answers about pairs: id_1, id_2, answer, perhaps confidence, annotator and time.",
        ),
    ],
    n_clusters: Annotated[int, typer.Option("-k", "--n-clusters", help="Number of clusters.", show_default=False)],
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column that names the rows.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The columns to cluster by.", show_default="all others")
    ] = None,
    scale: Annotated[
        Scale,
        typer.Option(metavar="HOW", help="Make the columns comparable: none, standard, minmax or robust."),
    ] = Scale.NONE,
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Answers listed at most.")] = 20,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write all answers: csv, tsv, jsonl or parquet."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Save a picture, as png, pdf or svg.")] = None,
    random_state: Annotated[
        int, typer.Option(min=0, metavar="SEED", help="Fixed, so that a command repeats itself.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Rank answers by how likely they are wrong, with reasons.

    \b
    Answers are compared with what clusterings of the data, and the other
    answers, say about each pair; contradictions, what an answer costs, and
    how often its annotator errs count too. Nothing is changed.

    \b
    [bold]Examples[/bold]
      clew audit data.csv -c answers.csv -k 3
      clew audit data.csv -c answers.csv -k 3 --id name --plot audit.png
      clew audit data.csv -c answers.csv -k 3 -o ranked.csv
      clew audit data.csv -c answers.csv -k 3 --json
    """
    from clew.cli import _audit

    request = _audit.Request(data, constraints, id_column, columns, scale.value, plot, random_state, as_json)
    _audit.run_audit(request, n_clusters, most, output)


@app.command(no_args_is_help=True)
@command
def advise(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A csv, tsv, parquet, npy or npz file.")],
    constraints: Annotated[
        Path,
        typer.Option(
            "-c",
            "--constraints",
            metavar="FILE",
            help="Answers about pairs: id_1, id_2, answer, perhaps confidence.",
        ),
    ],
    n_clusters: Annotated[
        int | None,
        typer.Option("-k", "--n-clusters", help="Number of clusters.", show_default="the one that fits best"),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column that names the rows.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The columns to cluster by.", show_default="all others")
    ] = None,
    scale: Annotated[
        Scale,
        typer.Option(metavar="HOW", help="Make the columns comparable: none, standard, minmax or robust."),
    ] = Scale.NONE,
    most_clusters: Annotated[int, typer.Option(min=2, metavar="N", help="Numbers of clusters from 2 to N.")] = 10,
    metrics: Annotated[
        str, typer.Option(metavar="A,B", help="Distances to compare.")
    ] = "euclidean,manhattan,chebyshev,mahalanobis,cosine",
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Save a picture, as png, pdf or svg.")] = None,
    random_state: Annotated[
        int, typer.Option(min=0, metavar="SEED", help="Fixed, so that a command repeats itself.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say how many clusters and which distance the answers speak for.

    \b
    With the right number of clusters the fewest answers look wrong; with the
    right distance the most answers cost nothing. Also says whether near rows
    tend to share answers, and how hard the answers are to satisfy.

    \b
    [bold]Examples[/bold]
      clew advise data.csv -c answers.csv
      clew advise data.csv -c answers.csv -k 3 --metrics euclidean,cosine
      clew advise data.csv -c answers.csv --plot advice.png --json
    """
    from clew.cli import _audit

    request = _audit.Request(data, constraints, id_column, columns, scale.value, plot, random_state, as_json)
    _audit.run_advise(request, n_clusters, most_clusters, metrics)


@app.command()
@command
def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Explain this one.")] = None,
) -> None:
    """List the methods, or explain one and its parameters.

    \b
    [bold]Examples[/bold]
      clew methods
      clew methods pck-means
    """
    from clew.cli import _methods

    _methods.run(name)


@app.command()
@command
def demo(
    out: Annotated[Path, typer.Option(metavar="DIRECTORY", help="Where the files go.")] = Path("demo"),
    data: Annotated[
        Bundled, typer.Option(help="On digits, with ten classes, a few dozen answers change little.")
    ] = Bundled.IRIS,
    answers: Annotated[int, typer.Option(min=0, metavar="N", help="Number of simulated answers.")] = 48,
    random_state: Annotated[
        int, typer.Option(min=0, metavar="SEED", help="Fixed, so that the demo repeats itself.")
    ] = 0,
) -> None:
    """See a few dozen answers change a clustering.

    \b
    Clusters a bundled data set without and with simulated answers, compares
    the two, and writes a picture, the labels, the data and the answers.

    \b
    [bold]Examples[/bold]
      clew demo
      clew demo --data wine --answers 40 --out wine-demo
    """
    from clew.cli import _demo

    _demo.run(out, data.value, answers, random_state)
