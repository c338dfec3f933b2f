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

    AUTO = "auto"
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
      clew serve data.csv                          answer questions in a browser
      clew ask data.csv                            answer questions about pairs
      clew status data.clew                        where such a project stands

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
            help="A csv, tsv, jsonl, parquet, npy or npz file, or a folder of images.",
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
            help="Answers about pairs (csv, tsv, jsonl, parquet): id_1, id_2, answer, perhaps confidence; or the "
            "labels of splink, zingg, dedupe, Label Studio, …. "
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
        typer.Option(
            metavar="HOW",
            help="Make the columns comparable: none, standard, minmax or robust; auto is none for a table of "
            "numbers, standard where other columns are among them.",
        ),
    ] = Scale.AUTO,
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
def serve(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A csv, tsv, parquet or jsonl file, or a project to go on with.")
    ],
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column that names the rows.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The columns to cluster by.", show_default="all others")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where answers are kept: a file, or postgresql://user@host/database.",
            show_default="DATA.clew, beside the data",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Which project, where a database holds several.")] = None,
    n_clusters: Annotated[
        int | None, typer.Option("-k", "--n-clusters", min=1, help="Number of clusters.", show_default="unknown")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("-m", "--method", help="See clew methods.", show_default="one that keeps every answer"),
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="What to ask, such as min-max.", show_default="the best for -k")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="0 takes any free one.", show_default="8765, or a free one")
    ] = None,
    token: Annotated[str | None, typer.Option(help="What opens the page.", show_default="a random one")] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines connect to --host. Nothing is encrypted.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name the server is reached by, as behind a proxy.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Open a page where people answer questions about a table.

    \b
    Prints the address of the page, with its token; scripts use the same
    server over HTTP. The project is begun on first use and gone on with
    after that: whatever was answered is there again.

    \b
    [bold]Examples[/bold]
      clew serve data.csv --id name -k 3
      clew serve data.csv --project team.clew --port 8000 --no-browser
      clew serve data.csv --project postgresql://me@db/labels --name cars
      clew serve team.clew
    """
    from clew.cli import _project, _serve

    request = _project.Request(
        data=data,
        project=project,
        name=name,
        id_column=id_column,
        columns=columns,
        n_clusters=n_clusters,
        method=method,
        strategy=strategy,
    )
    door = _serve.Door(
        host=host, port=port, token=token, hosts=allow_host or [], allow_remote=allow_remote, browser=browser
    )
    _serve.run(request, door)


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
    With the right number of clusters, and with the right distance, the most
    answers can be kept at no cost. Also says whether near rows tend to share
    answers, and how hard the answers are to satisfy.

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


Project = Annotated[
    str,
    typer.Argument(metavar="PROJECT", help="A .clew file, the data it is beside, or postgresql://user@host/database."),
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which project, where a database holds several.", show_default=False)
]
Data = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Where the data is now.", show_default="where it was when the project began"),
]
Annotator = Annotated[str, typer.Option(metavar="NAME", envvar="CLEW_ANNOTATOR", help="Who says it.", show_envvar=True)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command(no_args_is_help=True)
@command
def ask(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A csv, tsv, jsonl, parquet, npy or npz file, or a project to go on with."),
    ],
    n_clusters: Annotated[
        int | None, typer.Option("-k", "--n-clusters", help="Number of clusters, if known.", show_default=False)
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="The project: a file or postgresql://...", show_default="DATA.clew"),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column that names the rows.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The columns to cluster by.", show_default="all others")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="HOW", help="auto, standard, minmax, robust or none.", show_default="auto")
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="HOW", help="auto, tfidf, embeddings or none.", show_default="auto")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="euclidean or cosine.", show_default="euclidean")
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option("-c", "--constraints", metavar="FILE", help="Answers that are known when the project begins."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("-m", "--method", help="See clew methods.", show_default="one that keeps every answer"),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What to ask, such as min-max.", show_default="by whether k is known"),
    ] = None,
    overlap: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="People to ask about each pair.", show_default="1")
    ] = None,
    random_state: Annotated[int | None, typer.Option(min=0, metavar="SEED", show_default="0")] = None,
    name: Name = None,
    annotator: Annotator = "me",
    most: Annotated[
        int | None, typer.Option("-n", "--most", min=1, metavar="N", help="Stop after so many answers.")
    ] = None,
) -> None:
    """Answer questions about pairs of rows: same, different, or unsure.

    \b
    Both rows are shown side by side with what differs marked. One key answers:
      S same   D different   Space unsure   Z undo   F flag   C comment   ? help
    Every answer is safe at once; the same command goes on where you stopped.
    What follows from your answers is not asked, and you are told when the
    next answer would hardly change anything.
    Answers can be piped, one a line: s, d, u, z, c some comment, q.

    \b
    [bold]Examples[/bold]
      clew ask tickets.csv --id ticket
      clew ask tickets.csv -k 8 --columns subject,body
      clew ask tickets.clew -n 20 --annotator ada
      clew ask tickets.csv --project postgresql://ada@host/answers
      printf 's\\nd\\nq\\n' | clew ask tickets.csv
    """
    from clew.cli import _ask, _project

    request = _project.Request(
        data=data,
        project=project,
        name=name,
        id_column=id_column,
        columns=columns,
        scale=scale,
        text=text,
        constraints=constraints,
        n_clusters=n_clusters,
        method=method,
        strategy=strategy,
        metric=metric,
        overlap=overlap,
        random_state=random_state,
    )
    _ask.run(request, annotator, most)


class Exported(StrEnum):
    """What `clew export` writes."""

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
    labels        the cluster of each row, made anew if something was said since
    constraints   what clew cluster -c takes: answers and corrections in force
    answers       every answer with who gave it, when, how long it took

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
            show_default="found from the content",
        ),
    ] = None,
    name: Name = None,
    data: Data = None,
    annotator: Annotated[
        str, typer.Option(metavar="NAME", help="Who gave the answers, where the file does not say.")
    ] = "import",
    as_json: AsJson = False,
) -> None:
    """Take in answers that were given elsewhere.

    \b
    Reads our own files (id_1, id_2, answer) and those of other tools, and says
    how many were read, taken in, known already and skipped, and why. Answers
    that contradict others are kept out of use; clew review lists them.
    Importing a file again changes nothing.

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
    """Say where a project stands: answers, people, clusters, what waits.

    \b
    [bold]Examples[/bold]
      clew status tickets.clew
      clew status postgresql://ada@host/answers --name tickets --json
    """
    from clew.cli import _status

    _status.run(project, name, data, as_json)


@app.command(no_args_is_help=True)
@command
def correct(
    project: Project,
    kind: Annotated[
        str, typer.Argument(metavar="WHAT", help="merge, split, move, never, name, answer, keep, resolve or undo.")
    ],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORDS]...", help="See below; after -- they may start with a -.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="never: the two words are rows.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only say what would change.")] = False,
    name: Name = None,
    data: Data = None,
    annotator: Annotator = "me",
    as_json: AsJson = False,
) -> None:
    """Correct clusters and answers; corrections hold in every later fit.

    \b
      merge CLUSTER CLUSTER       they are one; the first keeps its number
      split CLUSTER ROW ...       these rows become a cluster of their own
      move ROW CLUSTER            the row belongs to that cluster
      move ROW none               the row becomes a cluster of its own
      never CLUSTER CLUSTER       they are never joined
      never --rows ROW ROW        these two rows are never together
      name CLUSTER NAME           call it so; an empty name takes it away
      answer NUMBER ANSWER        change an answer to same, different or unsure
      keep NUMBER                 an answer was looked at again and is right
      resolve NUMBER soft         keep the answers of a conflict as preferences
      resolve NUMBER unsure       say unsure to what waits, or withdraw it
      resolve NUMBER change A     change answer A to its opposite
      undo                        take back the last thing said

    \b
    Clusters are named by their numbers or by names that were given to them.
    Exits with 1 if a correction contradicts an answer: it is kept, shown with
    the chain of answers, and not used until it is resolved.

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
        typer.Argument(metavar="[FILE]", help="New rows with the same columns.", show_default="rows the data has more"),
    ] = None,
    name: Name = None,
    data: Data = None,
    annotator: Annotator = "me",
    as_json: AsJson = False,
) -> None:
    """Let new rows join a project; nothing is asked again.

    \b
    Each row joins the cluster nearest to it; numbers of clusters stay. Without
    FILE, rows that were appended to the data of the project are taken in.

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
    most: Annotated[int, typer.Option("-n", "--most", min=1, metavar="N", help="List so many of each.")] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Only what the present clusters say.")] = False,
    name: Name = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """List contradictions, and answers that deserve a second look.

    \b
    Suspicion is the chance that an answer is wrong, by what clusterings of the
    rows and all other answers say; also listed is what the clusters break, what
    contradicts, what people disagree about, and what somebody flagged. Answers
    that were looked at again and kept (clew correct ... keep) are left alone.

    \b
    [bold]Examples[/bold]
      clew review tickets.clew
      clew review tickets.clew -n 100 --json
    """
    from clew.cli import _review

    _review.run(project, most, name, data, as_json, quick=quick)
