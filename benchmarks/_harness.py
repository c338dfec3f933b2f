"""What the benchmarks share: fresh processes with one thread, peak memory, tables and result files."""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PACKAGES = ("clew", "numpy", "scipy", "scikit-learn")

# Read by the libraries when they are loaded, so they are set before the process starts.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


@dataclass
class Report:
    """The outcome of one benchmark: `rows` hold every figure, `columns` say which are shown and how."""

    name: str
    title: str
    columns: dict[str, str]  # key of a row -> heading
    rows: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    def table(self) -> str:
        """The shown figures as a Markdown table, readable in a terminal too."""
        cells = [[_cell(row.get(key)) for key in self.columns] for row in self.rows]
        headings = list(self.columns.values())
        widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
        is_number = [all(isinstance(row.get(key), int | float) for row in self.rows) for key in self.columns]
        rule = ["-" * (width - 1) + (":" if right else "-") for width, right in zip(widths, is_number, strict=True)]
        return "\n".join(_line(line, widths, is_number) for line in (headings, rule, *cells))

    def section(self) -> str:
        """The table with where and when it was measured, for docs/benchmarks.md."""
        facts = environment()
        machine = f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}"
        versions = ", ".join(f"{name} {facts[name]}" for name in ("python", *PACKAGES))
        return "\n\n".join([f"{facts['date']}; {machine}; {versions}.", self.table(), " ".join(self.notes)])

    def write(self, directory: Path, command: str) -> Path:
        """Save everything as JSON."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.name}.json"
        document = {"command": command, "environment": environment(), **asdict(self)}
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return path


def publish(report: Report) -> None:
    """Put a report into its place in docs/benchmarks.md."""
    begin, end = f"<!-- measured: {report.name} -->\n", "<!-- end -->"
    before, found, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    if not found:
        raise RuntimeError(f"{PAGE} has no place for {report.name!r}: {begin.strip()}")
    PAGE.write_text(before + begin + report.section() + "\n" + end + rest.partition(end)[2], encoding="utf-8")


def verdict(value: float, limit: float | None) -> str:
    """Whether a bar is met; without a limit there is none."""
    return "-" if limit is None else "met" if value <= limit else "missed"


def judged(value: float, limit: float | None, unit: str = "") -> dict[str, str]:
    """The columns of a table that name a bar and say whether it is met."""
    return {"bar": "-" if limit is None else f"{limit:g}{unit}", "verdict": verdict(value, limit)}


def environment() -> dict[str, Any]:
    """Date, machine and versions."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def in_fresh_process(function: Callable[..., Any], **arguments: Any) -> Any:
    """Call a function of a benchmark in a new interpreter with one thread; arguments and result travel as JSON."""
    target = f"{function.__module__}:{function.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._child", target, json.dumps(arguments)],
        cwd=ROOT,
        env={**os.environ, **ONE_THREAD},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{target} failed with {arguments}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def peak_megabytes(work: Callable[[], Any]) -> float:
    """By how much the resident memory of this process rises at most while `work` runs.

    Linux resets its high-water mark on request, so memory used before does not hide the peak. Elsewhere the mark only
    rises, and the figure is too low if something larger ran before.
    """
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _rise_of_mark(work)
    before = _status("VmRSS")
    work()
    return (_status("VmHWM") - before) / 1024


def peak_resident() -> float:
    """Megabytes of resident memory that this process had at most, since the last `peak_megabytes` began on Linux."""
    try:
        return _status("VmHWM") / 1024
    except OSError:
        return _mark()


def _rise_of_mark(work: Callable[[], Any]) -> float:
    before = _mark()
    work()
    return _mark() - before


def _mark() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def _status(name: str) -> int:
    """A line of /proc/self/status, in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        size = abs(value)
        digits = (
            ".1g" if size < 0.001 else ".3f" if size < 1 else ".2f" if size < 10 else ".1f" if size < 100 else ",.0f"
        )
        return format(value, digits)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _line(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    aligned = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_number, strict=True)
    )
    return f"| {' | '.join(aligned)} |"
