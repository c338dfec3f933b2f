"""The `clew` command: its help text and the list of its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from clew._version import __version__
from clew.cli import _checking_commands, _clustering_commands, _project_commands

app = typer.Typer(
    name="clew",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
      clew demo                                  see answers change a clustering
      clew cluster data.csv -k 3                 cluster the rows of a table
      clew cluster data.csv -k 3 -c answers.csv  cluster with constraints
      clew cluster data.csv --groups small       find duplicate records
      clew cluster-edges pairs.csv               cluster records by scored pairs
      clew check answers.csv -k 3                can all answers hold?
      clew audit data.csv -c answers.csv -k 3    which answers look wrong?
      clew advise data.csv -c answers.csv        how many clusters, which metric?
      clew methods                               list the clustering methods
      clew serve data.csv                        answer questions in a browser
      clew ask data.csv                          answer questions in the terminal
      clew status data.clew                      progress of a project

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


# In the order of `clew --help`.
app.command(no_args_is_help=True, context_settings={"ignore_unknown_options": True})(_clustering_commands.cluster)
app.command("cluster-edges", no_args_is_help=True)(_clustering_commands.cluster_edges)
app.command(no_args_is_help=True)(_checking_commands.check)
app.command(no_args_is_help=True)(_project_commands.serve)
app.command(no_args_is_help=True)(_checking_commands.audit)
app.command(no_args_is_help=True)(_checking_commands.advise)
app.command()(_clustering_commands.methods)
app.command()(_clustering_commands.demo)
app.command(no_args_is_help=True)(_project_commands.ask)
app.command(no_args_is_help=True)(_project_commands.export)
app.command("import", no_args_is_help=True)(_project_commands.import_)
app.command(no_args_is_help=True)(_project_commands.status)
app.command(no_args_is_help=True)(_project_commands.backup)
app.command(no_args_is_help=True)(_project_commands.correct)
app.command(no_args_is_help=True)(_project_commands.add)
app.command(no_args_is_help=True)(_project_commands.review)
