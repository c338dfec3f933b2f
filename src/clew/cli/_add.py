"""`clew add`: add new rows to a project."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from clew.cli import _render
from clew.cli._progress import progress
from clew.cli._project import opened


def run(project: str, rows: str | None, name: str | None, data: str | None, annotator: str, as_json: bool) -> None:
    """Add the rows of a file, or the rows appended to the project's data file, and print their clusters."""
    with opened(project, name, data, tell=False) as session:
        with progress("adding rows"):
            ids = session.add_rows(rows, annotator=annotator)
            labels = session.labels(refit=False)
        cluster_of = {row: labels.get(row) for row in ids}
        names = {cluster.id: cluster.name for cluster in session.clusters(refit=False)}
    if as_json:
        _render.print_json({"added": len(ids), "clusters": cluster_of})
        return
    console = _render.console()
    if not ids:
        console.print("There are no new rows. To add the rows of another file: clew add PROJECT FILE.")
        return
    console.print(Text(f"{_render.counted(len(ids), 'row')} added.", "bold"))
    counts = Counter(cluster for cluster in cluster_of.values() if cluster is not None)
    lines: list[tuple[str, str | Text]] = [
        (_render.cluster_name(cluster, names.get(cluster)), _render.counted(count, "row"))
        for cluster, count in sorted(counts.items())
    ]
    console.print(_render.facts(lines))
