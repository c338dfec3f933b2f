"""`python -m benchmarks [NAME ...] [--quick] [--out DIRECTORY]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import (
    advice,
    alternatives,
    answers,
    audit,
    closure,
    deep,
    density,
    digest,
    edges,
    geometry,
    graphs,
    importing,
    learned_distances,
    long_log,
    many_records,
    many_rows,
    medoids,
    memory,
    methods,
    metrics,
    mixtures,
    neighbours,
    never_worse,
    noisy_answers,
    quality,
    records,
    records_dedupe,
    rounds,
    seeding,
    sets,
    sizes,
    table1,
    text_rounds,
    trees,
)
from benchmarks._harness import RESULTS, environment, publish

BENCHMARKS = {
    "rounds": rounds.run,
    "text-rounds": text_rounds.run,
    "memory": memory.run,
    "closure": closure.run,
    "import": importing.run,
    "long-log": long_log.run,
    "many-records": many_records.run,
    "many-rows": many_rows.run,
    "many-rows-speed": many_rows.run_speed,
    "many-groups": many_rows.run_groups,
    "digest": digest.run,
    "quality": quality.run,
    "seeding": seeding.run,
    "table1": table1.run,
    "audit": audit.run,
    "number": audit.run_number,
    "answers": answers.run,
    "advice": advice.run,
    "methods": methods.run,
    "sets": sets.run,
    "informativeness": sets.run_informativeness,
    "metrics": metrics.run,
    "sizes": sizes.run,
    "edges": edges.run,
    "graphs": graphs.run,
    "graph-speed": graphs.run_speed,
    "records": records.run,
    "records-dedupe": records_dedupe.run,
    "neighbours": neighbours.run,
    "trees": trees.run,
    "density": density.run,
    "density-questions": density.run_questions,
    "learned-distances": learned_distances.run,
    "distance-methods": learned_distances.run_comparisons,
    "alternatives": alternatives.run,
    "mixtures": mixtures.run,
    "mixture-rounds": mixtures.run_rounds,
    "words": mixtures.run_words,
    "medoids": medoids.run,
    "circles": medoids.run_circles,
    "swaps": medoids.run_swaps,
    "geometry": geometry.run,
    "never-worse": never_worse.run,
    "noisy-answers": noisy_answers.run,
    "deep": deep.run,
}
# Benchmarks whose default is a part of the published rows.
WITH_FULL_SIZE = ("deep",)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure clew; see docs/benchmarks.md.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)}; all unless given")
    parser.add_argument("--quick", action="store_true", help="toy sizes: shows that it runs, judges nothing")
    parser.add_argument("--full", action="store_true", help="all rows, which takes hours (deep)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIRECTORY", help="where the JSON files go")
    parser.add_argument("--publish", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    names = options.names or list(BENCHMARKS)
    command = " ".join(
        ["python -m benchmarks", *options.names, *(f"--{flag}" for flag in ("quick", "full") if getattr(options, flag))]
    )
    print(", ".join(f"{key} {value}" for key, value in environment().items()))
    for name in names:
        sizes = {"full": True} if options.full and name in WITH_FULL_SIZE else {}
        report = BENCHMARKS[name](quick=options.quick, **sizes)
        path = report.write(options.out, command)
        if options.publish:
            publish(report)
        print(f"\n{report.title}\n\n{report.table()}\n")
        for note in report.notes:
            print(note)
        print(f"written: {path}", flush=True)


if __name__ == "__main__":
    main()
