"""Commands that work on a project: ask, serve, correct, review, import and export."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clew.cli._exits import command
from clew.cli._options import (
    Annotator,
    AsJson,
    Columns,
    Data,
    ErrorRate,
    IdColumn,
    JudgingModel,
    KeepingMethod,
    KnownAnswers,
    Name,
    Overlap,
    Project,
    ProjectGroups,
    ProjectMetric,
    ProjectNClusters,
    ProjectPlace,
    ProjectRandomState,
    ProjectScaling,
    ProjectText,
    Source,
    Strategy,
    TableOrProject,
)


@command
def serve(
    data: TableOrProject,
    id_column: IdColumn = None,
    columns: Columns = None,
    project: ProjectPlace = None,
    name: Name = None,
    n_clusters: ProjectNClusters = None,
    groups: ProjectGroups = None,
    scale: ProjectScaling = None,
    text: ProjectText = None,
    metric: ProjectMetric = None,
    constraints: KnownAnswers = None,
    source: Source = None,
    method: KeepingMethod = None,
    strategy: Strategy = None,
    overlap: Overlap = None,
    error_rate: ErrorRate = None,
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
        constraints=constraints, source=source, n_clusters=n_clusters, groups=groups, method=method, strategy=strategy,
        metric=metric, overlap=overlap, error_rate=error_rate, random_state=random_state,
    )  # fmt: skip
    server = _serve.ServerOptions(
        host=host, port=port, token=token, new_token=new_token, hosts=allow_host or [], allow_remote=allow_remote,
        browser=browser,
    )  # fmt: skip
    _serve.run(request, server)


@command
def ask(
    data: TableOrProject,
    id_column: IdColumn = None,
    columns: Columns = None,
    project: ProjectPlace = None,
    n_clusters: ProjectNClusters = None,
    groups: ProjectGroups = None,
    scale: ProjectScaling = None,
    text: ProjectText = None,
    metric: ProjectMetric = None,
    constraints: KnownAnswers = None,
    source: Source = None,
    method: KeepingMethod = None,
    strategy: Strategy = None,
    overlap: Overlap = None,
    error_rate: ErrorRate = None,
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
      clew ask customers.csv --id number --groups small
      printf 's\\nd\\nq\\n' | clew ask tickets.csv
    """
    from clew.cli import _ask, _project

    request = _project.ProjectRequest(
        data=data, project=project, name=name, id_column=id_column, columns=columns, scale=scale, text=text,
        constraints=constraints, source=source, n_clusters=n_clusters, groups=groups, method=method, strategy=strategy,
        metric=metric, overlap=overlap, error_rate=error_rate, random_state=random_state,
    )  # fmt: skip
    _ask.run(request, annotator, most)


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
    With --groups small, a row that matches no group starts one.
    Without FILE, the rows that were appended to the project's data file are
    added.

    \b
    [bold]Examples[/bold]
      clew add tickets.clew
      clew add tickets.clew new-tickets.csv --json
    """
    from clew.cli import _add

    _add.run(project, file, name, data, annotator, as_json)


class Exported(StrEnum):
    """Tables that `clew export` can write."""

    LABELS = "labels"
    GROUPINGS = "groupings"
    GOLDEN = "golden"
    CONSTRAINTS = "constraints"
    ANSWERS = "answers"


@command
def export(
    project: Project,
    what: Annotated[
        Exported, typer.Argument(metavar="[WHAT]", help="labels, groupings, golden, constraints or answers.")
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
    labels        the cluster of each row, refitted if there are new answers;
                  with --groups small also the probability that it belongs there
    groupings     the same, with a column for each other way to group the rows
                  that was kept on the page
    golden        one merged row per cluster: in each column the most frequent
                  value, of equally frequent ones a value that is common
                  elsewhere, then the longest
    constraints   answers and corrections in force, for clew cluster -c
    answers       every answer with its annotator, time and duration

    \b
    [bold]Examples[/bold]
      clew export tickets.clew -o labels.csv
      clew export tickets.clew answers -o answers.parquet
      clew export customers.clew golden -o clean.csv
      clew export tickets.clew constraints | head
    """
    from clew.cli import _export

    _export.run(project, what.value, output, name, data)


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
        str | None,
        typer.Option(
            metavar="NAME", help="Annotator of the answers that have none in the file.", show_default="import"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Import answers from a file into a project.

    \b
    Reads clew's own files (id_1, id_2, answer) and files of other tools.
    Prints how many answers were read, imported, known already and skipped,
    with the reason. Answers that contradict others are recorded, but are no
    facts until they are resolved: see clew review. Importing a file twice
    changes nothing. A row with confidence 1 and no annotator is a fact: it
    holds even if answers are wrong. With --annotator, all rows are answers.

    \b
    [bold]Examples[/bold]
      clew import tickets.clew answers.csv
      clew import tickets.clew training.json --format dedupe
      clew import tickets.clew project-1.json --annotator ada --json
    """
    from clew.cli import _import

    _import.run(project, file, tool, name, data, annotator, as_json)


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


@command
def correct(
    project: Project,
    kind: Annotated[
        str, typer.Argument(metavar="WHAT", help="merge, split, move, never, name, answer, keep, resolve or undo.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORDS]...", help="See above. Put -- before words that start with a -."),
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
      undo                        undo the last change, such as an answer

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


@command
def review(
    project: Project,
    most: Annotated[
        int, typer.Option("-n", "--most", min=1, metavar="N", help="List at most N conflicts and N answers.")
    ] = 20,
    quick: Annotated[bool, typer.Option("--quick", help="Use only the current clusters as evidence.")] = False,
    model: JudgingModel = None,
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
    PROJECT keep NUMBER) are not listed again. If the method of the project is
    a mixture, its probability for each pair counts, too. --model chooses
    another mixture.

    \b
    [bold]Examples[/bold]
      clew review tickets.clew
      clew review tickets.clew -n 100 --json
    """
    from clew.cli import _review

    _review.run(project, most, name, data, as_json, quick=quick, model=model)
