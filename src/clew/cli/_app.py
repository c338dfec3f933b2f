"""The commands and their flags."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clew._version import __version__
from clew.cli._exits import command
from clew.cli._options import (
    Annotator,
    Answers,
    AsJson,
    Columns,
    Data,
    Encoding,
    IdColumn,
    KeepingMethod,
    KnownAnswers,
    Name,
    NClusters,
    Overlap,
    Plot,
    Project,
    ProjectMetric,
    ProjectNClusters,
    ProjectPlace,
    ProjectRandomState,
    ProjectScaling,
    ProjectText,
    RandomState,
    Scale,
    Scaling,
    Separator,
    Strategy,
    Table,
    TableOrProject,
    TextReading,
    Texts,
)

app = typer.Typer(
    name="clew",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Bundled(StrEnum):
    """Data sets that `clew demo` can use."""

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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Cluster data with the help of people's answers about pairs of rows.

    \b
    [bold]Start here[/bold]
      clew demo                                    see answers change a clustering
      clew cluster data.csv -k 3                   cluster the rows of a table
      clew cluster data.csv -k 3 -c answers.csv    cluster with constraints
      clew cluster-edges pairs.csv                 cluster records by scored pairs
      clew check answers.csv -k 3                  can all answers hold?
      clew audit data.csv -c answers.csv -k 3      which answers look wrong?
      clew advise data.csv -c answers.csv          how many clusters, which distance?
      clew methods                                 list the clustering methods
      clew serve data.csv                          answer questions in a browser
      clew ask data.csv                            answer questions in the terminal
      clew status data.clew                        progress of a project

    \b
    A file of answers has one pair of rows per line, in the columns id_1, id_2
    and answer. The answer is same (a must-link constraint), different (a
    cannot-link constraint) or unsure.

    \b
    [bold]Exit codes[/bold]
        0  success
        1  the answers contradict each other or need more clusters
        2  bad input
        3  undecided within the work limit
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
            help="A csv, tsv, jsonl, parquet, npy or npz file, or a folder of images; - is standard input.",
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
    method: Annotated[str, typer.Option("-m", "--method", help="See clew methods.")] = "pck-means",
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="File to write the labels to: csv, tsv, jsonl or parquet. - writes csv to stdout.",
            show_default="DATA-labels.csv in this folder",
        ),
    ] = None,
    id_column: IdColumn = None,
    columns: Columns = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print no summary and no progress.")] = False,
) -> None:
    """Cluster the rows of a table and write the cluster of each row.

    \b
    Every parameter of the method is a flag too: --penalty 2, --n-init 10,
    --max-iter 50, --metric cosine, --no-entailed (see clew methods NAME).
    The labels file has two columns: the id (or the row number) and cluster.
    With --label-column, clusters are named after the classes. Clusters
    without a known class are called new-1, new-2, ...
    A text cell that a spreadsheet would run as a formula (it starts with =,
    +, - or @) is written with a ' in front.
    If texts have more than half of the weight, --metric defaults to cosine.

    \b
    [bold]Examples[/bold]
      clew cluster data.csv -k 3
      clew cluster data.csv -k 3 --id name -c answers.csv -o labels.csv
      clew cluster data.parquet -k 10 --columns embedding --metric cosine
      clew cluster data.csv -k 3 -c answers.csv -m cop-kmeans --scale standard
      clew cluster data.csv -k 3 --label-column class --json -o labels.parquet
      clew cluster words.csv -k 3 -m constrained-kmedoids --dissimilarity d.npy
      clew cluster - -k 3 < data.csv > labels.csv
    """
    from clew.cli import _cluster, _reading

    own_flags = [flag for parameter in context.command.params for flag in parameter.opts if flag.startswith("--")]
    request = _cluster.ClusterRequest(
        arguments=arguments,
        reading=_reading.Reading("", id_column, columns, scale, text, sep, encoding, random_state),
        n_clusters=n_clusters,
        constraints=constraints,
        method=method,
        output=output,
        label_column=label_column,
        dissimilarity=dissimilarity,
        json=as_json,
        quiet=quiet,
    )
    _cluster.run(request, own_flags)


@app.command("cluster-edges", no_args_is_help=True)
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
        typer.Option(metavar="FILE", help="A table of all records, also those in no pair. Needs --id."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column of --records with the ids.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="A column of --records: a cluster has one record per value at most."),
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


@app.command(no_args_is_help=True)
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


@app.command(no_args_is_help=True)
@command
def serve(
    data: TableOrProject,
    id_column: IdColumn = None,
    columns: Columns = None,
    project: ProjectPlace = None,
    name: Name = None,
    n_clusters: ProjectNClusters = None,
    scale: ProjectScaling = None,
    text: ProjectText = None,
    metric: ProjectMetric = None,
    constraints: KnownAnswers = None,
    method: KeepingMethod = None,
    strategy: Strategy = None,
    overlap: Overlap = None,
    random_state: ProjectRandomState = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of the server. 0 picks a free one.", show_default="8765, or a free one"
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Secret that opens the page.", show_default="stored with the project, random at first"),
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Replace the stored token. Everybody has to sign in again.")
    ] = False,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool,
        typer.Option("--allow-remote", help="Let other machines connect to --host. The connection is not encrypted."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Another host name of this server, for example behind a proxy."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Open a page where people answer questions about a table.

    \b
    Prints the address of the page with its token. Scripts can use the same
    server over HTTP. The first run creates the project, and later runs
    continue it with all answers so far.

    \b
    [bold]Examples[/bold]
      clew serve data.csv --id name -k 3
      clew serve data.csv --project team.clew --port 8000 --no-browser
      clew serve data.csv --project postgresql://me@db/labels --name cars
      clew serve team.clew
    """
    from clew.cli import _project, _serve

    request = _project.ProjectRequest(
        data=data, project=project, name=name, id_column=id_column, columns=columns, scale=scale, text=text,
        constraints=constraints, n_clusters=n_clusters, method=method, strategy=strategy, metric=metric,
        overlap=overlap, random_state=random_state,
    )  # fmt: skip
    door = _serve.Door(
        host=host, port=port, token=token, new_token=new_token, hosts=allow_host or [], allow_remote=allow_remote,
        browser=browser,
    )  # fmt: skip
    _serve.run(request, door)


@app.command(no_args_is_help=True)
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
    plot: Plot = None,
    random_state: RandomState = 0,
    as_json: AsJson = False,
) -> None:
    """Rank answers by how likely they are wrong, with reasons.

    \b
    Each answer is compared with clusterings of the data and with the other
    answers. Contradictions, the cost of keeping the answer, and the error
    rate of its annotator count too. The answers are not changed.

    \b
    [bold]Examples[/bold]
      clew audit data.csv -c answers.csv -k 3
      clew audit data.csv -c answers.csv -k 3 --id name --plot audit.png
      clew audit data.csv -c answers.csv -k 3 -o ranked.csv
      clew audit data.csv -c answers.csv -k 3 --json
    """
    from clew.cli import _audit, _reading

    reading = _reading.Reading(data, id_column, columns, scale, text, sep, encoding, random_state)
    request = _audit.AuditRequest(reading, constraints, plot, as_json)
    _audit.run_audit(request, n_clusters, most, output)


@app.command(no_args_is_help=True)
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


@app.command()
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
    --for looks at the number of rows, the shape of dense regions and the
    kinds of answers, and holds them against what each method can do.

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


@app.command()
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


@app.command(no_args_is_help=True)
@command
def ask(
    data: TableOrProject,
    id_column: IdColumn = None,
    columns: Columns = None,
    project: ProjectPlace = None,
    n_clusters: ProjectNClusters = None,
    scale: ProjectScaling = None,
    text: ProjectText = None,
    metric: ProjectMetric = None,
    constraints: KnownAnswers = None,
    method: KeepingMethod = None,
    strategy: Strategy = None,
    overlap: Overlap = None,
    random_state: ProjectRandomState = None,
    name: Name = None,
    annotator: Annotator = "me",
    most: Annotated[int | None, typer.Option("-n", "--most", min=1, metavar="N", help="Stop after N answers.")] = None,
) -> None:
    """Answer questions about pairs of rows: same, different, or unsure.

    \b
    Both rows are shown side by side with the differences marked. Keys:
      S same   D different   Space unsure   Z undo   F flag   C comment   ? help
    Every answer is saved at once. The same command continues where you
    stopped. Answers that follow from earlier answers are not asked. A message
    appears once the next answer would hardly change the clusters.
    Answers can be piped in, one per line: s, d, u, z, c some comment, q.

    \b
    [bold]Examples[/bold]
      clew ask tickets.csv --id ticket
      clew ask tickets.csv -k 8 --columns subject,body
      clew ask tickets.clew -n 20 --annotator ada
      clew ask tickets.csv --project postgresql://ada@host/answers
      printf 's\\nd\\nq\\n' | clew ask tickets.csv
    """
    from clew.cli import _ask, _project

    request = _project.ProjectRequest(
        data=data, project=project, name=name, id_column=id_column, columns=columns, scale=scale, text=text,
        constraints=constraints, n_clusters=n_clusters, method=method, strategy=strategy, metric=metric,
        overlap=overlap, random_state=random_state,
    )  # fmt: skip
    _ask.run(request, annotator, most)


class Exported(StrEnum):
    """Tables that `clew export` can write."""

    LABELS = "labels"
    CONSTRAINTS = "constraints"
    ANSWERS = "answers"


@app.command(no_args_is_help=True)
@command
def export(
    project: Project,
    what: Annotated[
        Exported, typer.Argument(metavar="[WHAT]", help="labels, constraints or answers.")
    ] = Exported.LABELS,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="csv, tsv, jsonl or parquet.", show_default="csv to stdout"
        ),
    ] = None,
    name: Name = None,
    data: Data = None,
) -> None:
    """Write the clusters of a project, its constraints, or its answers.

    \b
    labels        the cluster of each row, refitted if there are new answers
    constraints   answers and corrections in force, for clew cluster -c
    answers       every answer with its annotator, time and duration

    \b
    [bold]Examples[/bold]
      clew export tickets.clew -o labels.csv
      clew export tickets.clew answers -o answers.parquet
      clew export tickets.clew constraints | head
    """
    from clew.cli import _export

    _export.run(project, what.value, output, name, data)


@app.command("import", no_args_is_help=True)
@command
def import_(
    project: Project,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Answers: csv, tsv, jsonl, json, parquet, txt or npz.")],
    tool: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="TOOL",
            help="clew, splink, dedupe, zingg, label-studio, argilla, prodigy, cognitivefactory, cop-kmeans or "
            "metric-learn.",
            show_default="detected from the content",
        ),
    ] = None,
    name: Name = None,
    data: Data = None,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="Annotator of answers for which the file names none.")
    ] = "import",
    as_json: AsJson = False,
) -> None:
    """Import answers from a file into a project.

    \b
    Reads clew's own files (id_1, id_2, answer) and files of other tools.
    Prints how many answers were read, imported, known already and skipped,
    with the reason. Answers that contradict others are recorded but not used
    until they are resolved: see clew review. Importing a file twice changes
    nothing.

    \b
    [bold]Examples[/bold]
      clew import tickets.clew answers.csv
      clew import tickets.clew training.json --format dedupe
      clew import tickets.clew project-1.json --annotator ada --json
    """
    from clew.cli import _import

    _import.run(project, file, tool, name, data, annotator, as_json)


@app.command(no_args_is_help=True)
@command
def status(project: Project, name: Name = None, data: Data = None, as_json: AsJson = False) -> None:
    """Show the progress of a project: answers, people, clusters, conflicts.

    \b
    [bold]Examples[/bold]
      clew status tickets.clew
      clew status postgresql://ada@host/answers --name tickets --json
    """
    from clew.cli import _status

    _status.run(project, name, data, as_json)


@app.command(no_args_is_help=True)
@command
def backup(
    project: Project,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Name of the copy, such as tickets-monday.clew.")],
    name: Name = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Copy a project to a file, even while people are answering.

    \b
    The copy is a complete project: clew status FILE, clew serve FILE. A
    project in PostgreSQL is copied to a .clew file too. The data file of the
    project is not copied.

    \b
    [bold]Examples[/bold]
      clew backup tickets.clew tickets-monday.clew
      clew backup postgresql://ada@host/answers tickets.clew --name tickets
    """
    from clew.cli import _backup

    _backup.run(project, file, name, force=force)


@app.command(no_args_is_help=True)
@command
def correct(
    project: Project,
    kind: Annotated[
        str, typer.Argument(metavar="WHAT", help="merge, split, move, never, name, answer, keep, resolve or undo.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORDS]...", help="See below. Put -- before words that start with a -."),
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="For never: the two words are ids of rows.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Show what would change, and record nothing.")] = False,
    name: Name = None,
    data: Data = None,
    annotator: Annotator = "me",
    as_json: AsJson = False,
) -> None:
    """Correct clusters and answers. Corrections hold in every later fit.

    \b
      merge CLUSTER CLUSTER       make one cluster; the first keeps its number
      split CLUSTER ROW ...       make these rows a new cluster
      move ROW CLUSTER            put the row into that cluster
      move ROW none               make the row a new cluster
      never CLUSTER CLUSTER       never join these two clusters
      never --rows ROW ROW        never put these two rows into one cluster
      name CLUSTER NAME           name the cluster; "" removes its name
      answer NUMBER ANSWER        change an answer to same, different or unsure
      keep NUMBER                 confirm that an answer is right
      resolve NUMBER soft         keep the answers of a conflict as preferences
      resolve NUMBER unsure       set the answer to unsure, or undo the correction
      resolve NUMBER change A     change answer A to its opposite
      resolve NUMBER withdraw C   undo correction C; its rows move back at once
      undo                        undo the last change: answer, correction, setting, ...

    \b
    A CLUSTER is the number or the name of a cluster.
    Exit code 1: the correction contradicts an answer. The chain of answers is
    printed. The correction is recorded, but not used until it is resolved.

    \b
    [bold]Examples[/bold]
      clew correct tickets.clew merge 0 3 --preview
      clew correct tickets.clew split 2 T-17 T-40
      clew correct tickets.clew name 2 printers
    """
    from clew.cli import _correct

    _correct.run(
        project, kind, words or [], rows=rows, preview=preview, name=name, data=data, annotator=annotator,
        as_json=as_json,
    )  # fmt: skip


@app.command(no_args_is_help=True)
@command
def add(
    project: Project,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="New rows with the same columns.",
            show_default="rows that are in the data file but not yet in the project",
        ),
    ] = None,
    name: Name = None,
    data: Data = None,
    annotator: Annotator = "me",
    as_json: AsJson = False,
) -> None:
    """Add new rows to a project. All answers stay valid.

    \b
    Each new row joins its nearest cluster, and clusters keep their numbers.
    Without FILE, the rows that were appended to the project's data file are
    added.

    \b
    [bold]Examples[/bold]
      clew add tickets.clew
      clew add tickets.clew new-tickets.csv --json
    """
    from clew.cli import _add

    _add.run(project, file, name, data, annotator, as_json)


@app.command(no_args_is_help=True)
@command
def review(
    project: Project,
    most: Annotated[
        int, typer.Option("-n", "--most", min=1, metavar="N", help="List at most N conflicts and N answers.")
    ] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Use only the current clusters as evidence.")] = False,
    name: Name = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List contradictions and answers that may be wrong.

    \b
    Suspicion is the probability that an answer is wrong, estimated from
    clusterings of the rows and from all other answers. The list also has
    answers that the clusters violate, that contradict others, that people
    disagree about, and that somebody flagged. Confirmed answers (clew correct
    PROJECT keep NUMBER) are not listed again.

    \b
    [bold]Examples[/bold]
      clew review tickets.clew
      clew review tickets.clew -n 100 --json
    """
    from clew.cli import _review

    _review.run(project, most, name, data, as_json, quick=quick)
