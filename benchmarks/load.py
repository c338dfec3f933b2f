"""Twenty people answer at once: how long from an answer to the next question; is anything asked twice, or lost?

`python -m benchmarks.load [--quick] [--url http://127.0.0.1:8765/?token=…] [--pause SECONDS]
[--strategy NAME] [--wrong SHARE]`

A real server process on loopback; every person is a thread with a connection of its own, who answers as soon as the
question is there unless `--pause` says otherwise: harder on the server than people are. With `--url`, a server that
runs already, on the table this benchmark writes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from benchmarks._harness import RESULTS, Report, environment, judged
from tests.server import Client, GoneError, Server, write_table

LIMIT = 150.0
N_PEOPLE, N_ANSWERS, N_ROWS, N_CLUSTERS = 20, 5_000, 10_000, 20
QUICK_PEOPLE, QUICK_ANSWERS, QUICK_ROWS, QUICK_CLUSTERS = 4, 60, 300, 5


@dataclass
class Outcome:
    """What the people saw, together."""

    waits: list[float] = field(default_factory=list)
    told: dict[int, tuple[str, int]] = field(default_factory=dict)  # question -> (answer, its number)
    pairs: list[frozenset[str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Crowd:
    """People who answer until enough is answered."""

    def __init__(
        self, host: str, token: str, groups: NDArray[np.int64], n_answers: int, pause: float, wrong: float
    ) -> None:
        self._host, self._token, self._groups, self._pause, self._wrong = host, token, groups, pause, wrong
        self._left, self._lock = n_answers, threading.Lock()
        self.outcome = Outcome()

    def work(self, n_people: int) -> float:
        """Let them all answer; gives the seconds it took."""
        threads = [threading.Thread(target=self._person, args=(f"person-{one}",)) for one in range(n_people)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - started

    def _person(self, name: str) -> None:
        client = Client(self._host, self._token)
        try:
            question = self._next(client, name)
            while question is not None and self._may_answer():
                time.sleep(self._pause)
                started = time.perf_counter()
                said = self._said(question)
                status, told = client.post("/api/answers", question=question["id"], answer=said, annotator=name)
                following = self._next(client, name)
                wait = time.perf_counter() - started
                with self._lock:
                    if status != 201:
                        self.outcome.errors.append(f"{status} {told}")
                        continue
                    self.outcome.waits.append(1000 * wait)
                    self.outcome.told[question["id"]] = said, told["id"]
                    self.outcome.pairs.append(frozenset((question["left"], question["right"])))
                question = following
        except (GoneError, AssertionError) as error:
            self.outcome.errors.append(str(error))
        finally:
            client.close()

    def _next(self, client: Client, name: str) -> Any:
        status, question = client.post("/api/questions/next", annotator=name)
        if status != 200:
            raise AssertionError(f"{status} {question}")
        return question

    def _may_answer(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0

    def _said(self, question: dict[str, Any]) -> str:
        """The answer to a question: the truth, or the opposite for a share of the questions."""
        left, right = (self._groups[int(question[side][1:])] for side in ("left", "right"))
        is_wrong = np.random.default_rng(question["id"]).random() < self._wrong
        return "same" if (left == right) != is_wrong else "different"


def run(
    *, quick: bool, url: str | None = None, pause: float = 0.0, strategy: str | None = None, wrong: float = 0.0
) -> Report:
    """Measure, and look for what was asked twice or lost."""
    n_people, n_answers, n_rows, n_clusters = (
        (QUICK_PEOPLE, QUICK_ANSWERS, QUICK_ROWS, QUICK_CLUSTERS)
        if quick
        else (N_PEOPLE, N_ANSWERS, N_ROWS, N_CLUSTERS)
    )
    X, groups = make_blobs(n_rows, 16, centers=n_clusters, cluster_std=3.0, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        table = write_table(Path(folder) / "blobs.csv", X)
        arguments = [table, "--id", "name", "-k", str(n_clusters), *(["--strategy", strategy] if strategy else [])]
        if url is not None:
            address = urlsplit(url)
            token = parse_qs(address.query)["token"][0]
            row = _measured(address.netloc, token, groups, n_people, n_answers, pause, wrong)
        else:
            with Server(*arguments) as server:
                before = _processor_seconds(server.pid)
                row = _measured(server.host, server.token, groups, n_people, n_answers, pause, wrong)
                spent = _processor_seconds(server.pid) - before
                row |= {"server": 1000 * spent / row["answers"], "busy rate": row["answers"] / spent}
                status = server.stop()
            # What a server that was started anew knows, is what was kept.
            with Server(*arguments) as server:
                row["after a restart"] = len(Client(server.host, server.token).get("/api/answers"))
            row["errors"] += int(status != 0) + int(row["after a restart"] != row["answers"])
    row |= {"rows": n_rows, **judged(row["p95"], None if quick else LIMIT, " ms")}
    columns = {
        "people": "people", "answers": "answers", "rows": "rows", "p50": "p50, ms", "p95": "p95, ms", "p99": "p99, ms",
        "rate": "answers per second", "server": "server, ms of processor per answer",
        "busy rate": "answers per processor second", "twice": "asked twice", "lost": "lost", "errors": "errors",
        "bar": "bar of p95", "verdict": "",
    }  # fmt: skip
    notes = [
        "From sending an answer to having the next question: two requests to one server process over loopback, the "
        "answer safe on disk in between. "
        "The server's processor time includes its fits. "
        + (f"People think for {pause:g} s." if pause else "Nobody pauses: all the people's next requests queue up.")
        + (f" {wrong:.0%} of the answers are wrong." if wrong else "")
    ]
    return Report("load", "Answering with others", columns, [row], notes)


def _measured(
    host: str, token: str, groups: NDArray[np.int64], n_people: int, n_answers: int, pause: float, wrong: float
) -> dict[str, Any]:
    crowd = Crowd(host, token, groups, n_answers, pause, wrong)
    seconds = crowd.work(n_people)
    found = crowd.outcome
    client = Client(host, token)
    kept = {one["question"]: (one["answer"], one["id"]) for one in client.get("/api/answers")}
    client.close()
    for problem in found.errors[:5]:
        print(problem)
    p50, p95, p99 = np.percentile(found.waits, [50, 95, 99]).tolist()
    return {
        "people": n_people,
        "answers": len(found.waits),
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "rate": len(found.waits) / seconds,
        "twice": len(found.pairs) - len(set(found.pairs)) + len(found.waits) - len(found.told),
        "lost": sum(kept.get(question) != told for question, told in found.told.items()),
        "errors": len(found.errors),
    }


def _processor_seconds(pid: int) -> float:
    """Processor time of a process and all its threads so far; NaN where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="toy size: shows that it runs, judges nothing")
    parser.add_argument("--url", help="a server that runs, with its token")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="how long people think")
    parser.add_argument("--strategy", metavar="NAME", help="what is asked, if not the usual")
    parser.add_argument("--wrong", type=float, default=0.0, metavar="SHARE", help="share of wrong answers")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIRECTORY", help="where the JSON file goes")
    options = parser.parse_args(arguments)
    print(", ".join(f"{key} {value}" for key, value in environment().items()))
    report = run(
        quick=options.quick, url=options.url, pause=options.pause, strategy=options.strategy, wrong=options.wrong
    )
    path = report.write(options.out, "python -m benchmarks.load" + (" --quick" if options.quick else ""))
    print(f"\n{report.title}\n\n{report.table()}\n\n{report.notes[0]}\nwritten: {path}")
    row = report.rows[0]
    if row["errors"] or row["twice"] or row["lost"]:
        raise SystemExit("something was asked twice, lost or refused")


if __name__ == "__main__":
    main()
