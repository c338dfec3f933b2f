"""`clew add`: add new rows to a project."""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from clew.cli import _render
from clew.cli._progress import progress
from clew.cli._project import opened

# Largest number of clusters that are listed; of more, the new and the old ones are only counted.
_MOST_LISTED = 12


def run(project: str, rows: str | None, name: str | None, data: str | None, annotator: str, as_json: bool) -> None:
    """Add the rows of a file, or the rows appended to the project's data file, and print their clusters."""
    with opened(project, name, data, tell=False) as session:
        with progress("adding rows"):
            ids = session.add_rows(rows, annotator=annotator)
            labels = session.labels(refit=False)
        cluster_of = {row: labels.get(row) for row in ids}
        sizes = Counter(labels.values())
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
    if len(counts) > _MOST_LISTED:
        console.print(_joined(counts, sizes))
        return
    lines: list[tuple[str, str | Text]] = [
        (_render.cluster_name(cluster, names.get(cluster)), _render.counted(count, "row"))
        for cluster, count in sorted(counts.items())
    ]
    console.print(_render.facts(lines))


def _joined(counts: Counter[int], sizes: Counter[int]) -> str:
    """Say how many rows joined clusters that were there before, and how many started new ones."""
    before = [count for cluster, count in counts.items() if sizes[cluster] > count]
    new = [count for cluster, count in counts.items() if sizes[cluster] == count]
    parts = [
        f"{sum(counts):,} {verb} {_render.counted(len(counts), noun)}"
        for counts, verb, noun in ((before, "joined", "cluster"), (new, "started", "new cluster"))
        if counts
    ]
    return f"{', '.join(parts)}."
