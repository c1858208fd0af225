"""Run benchmarks and print what they measured, against the bars.

python -m benchmarks                      all of them
python -m benchmarks small_counts --quick one of them, at reduced size
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from inspect import signature
from pathlib import Path

from benchmarks.ablations import FAMILIES
from benchmarks.report import Report

BENCHES = (
    "noise", "speed", "topic_speed", "tensor_speed", "power_method_speed", "power_method",
    "laws_of_components", "laws_of_mixtures", "laws_of_completions", "completion", "ratings",
    "ablations_of_completions", "ablations_of_components", "ablations_of_topics",
    "ablations_of_words", "ablations_of_mixtures", "ablations_of_checks", "ablations_of_persons",
    "implicit", "top_n",
    "forecasts", "forecasts_of_words", "completion_kernels",
    "small_counts", "laws", "long_documents", "real_text", "topics", "topic_intervals",
    "topics_and_gibbs", "people", "budget", "scale", "audit", "words", "public_words",
    "peers", "chosen_ranges",
)  # fmt: skip
# Benches whose module has another name, as a package that they import has theirs.
MODULES = {"implicit": "implicit_feedback"}
HERE = Path(__file__).parent


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Run benchmarks and compare them with the bars."
    )
    parser.add_argument("benches", nargs="*", metavar="bench", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--repeats", type=int, help="turns of what speed and topic_speed time")
    parser.add_argument("--quick", action="store_true", help="reduced size; bars are not judged")
    parser.add_argument(
        "--data",
        type=Path,
        default=HERE.parent.parent / "shared" / "data",
        help="folder that holds the folders 20newsgroups, ml-100k and beijing-air",
    )
    parser.add_argument(
        "--results", type=Path, default=HERE / "results", help="folder for one JSON file per bench"
    )
    options = parser.parse_args(arguments)
    if "ablations" in options.benches:
        options.benches.remove("ablations")
        options.benches += FAMILIES
    unknown = sorted(set(options.benches) - set(BENCHES))
    if unknown:
        parser.error(f"no bench is called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    return options


def run_bench(name: str, options: argparse.Namespace) -> Report:
    report = Report(name, quick=options.quick)
    run = import_module(f"benchmarks.{MODULES.get(name, name)}").run
    known = {"report": report, "repeats": options.repeats}
    known |= dict.fromkeys(("data", "folder"), options.data)
    run(**{parameter: known[parameter] for parameter in signature(run).parameters})
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_arguments(arguments)
    reports = []
    for name in options.benches or BENCHES:
        report = run_bench(name, options)
        report.save(options.results)
        reports.append(report)
    bars = [bar for report in reports for bar in report.bars]
    if bars:
        print("\n== Bars")
        for bar in bars:
            print(f"  {bar}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
