"""Run benchmarks and print what they measured, against the bars.

python -m benchmarks                      all of them
python -m benchmarks small_counts --quick one of them, at reduced size
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    ablations_of_completions,
    ablations_of_components,
    ablations_of_topics,
    ablations_of_words,
    audit,
    budget,
    completion,
    completion_kernels,
    decomposition_accuracy,
    forecasts,
    implicit_feedback,
    laws,
    laws_of_completions,
    laws_of_components,
    long_documents,
    noise,
    peers,
    people,
    power_method,
    power_method_speed,
    public_topics,
    public_words,
    ratings,
    real_text,
    row_features,
    scale,
    small_counts,
    speed,
    tensor_speed,
    topic_speed,
    topics,
    topics_and_gibbs,
    words,
)
from benchmarks.ablations import FAMILIES
from benchmarks.report import Report

BENCHES = (
    "noise",
    "speed",
    "topic_speed",
    "tensor_speed",
    "power_method_speed",
    "power_method",
    "laws_of_components",
    "laws_of_completions",
    "completion",
    "ratings",
    "ablations_of_completions",
    "ablations_of_components",
    "ablations_of_topics",
    "ablations_of_words",
    "row_features",
    "implicit",
    "forecasts",
    "completion_kernels",
    "small_counts",
    "laws",
    "long_documents",
    "real_text",
    "topics",
    "topics_and_gibbs",
    "decomposition_accuracy",
    "people",
    "budget",
    "scale",
    "audit",
    "words",
    "public_words",
    "public_topics",
    "peers",
)
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
    if name == "noise":
        noise.run(report)
    elif name == "speed":
        speed.run(report, options.repeats)
    elif name == "topic_speed":
        topic_speed.run(report, options.repeats)
    elif name == "tensor_speed":
        tensor_speed.run(report)
    elif name == "audit":
        audit.run(report)
    elif name == "power_method_speed":
        power_method_speed.run(report)
    elif name == "power_method":
        power_method.run(report)
    elif name == "laws_of_components":
        laws_of_components.run(report)
    elif name == "laws_of_completions":
        laws_of_completions.run(report)
    elif name == "completion":
        completion.run(report, options.data)
    elif name == "ratings":
        ratings.run(report, options.data)
    elif name == "ablations_of_topics":
        ablations_of_topics.run(report, options.data)
    elif name == "ablations_of_completions":
        ablations_of_completions.run(report, options.data)
    elif name == "ablations_of_components":
        ablations_of_components.run(report)
    elif name == "ablations_of_words":
        ablations_of_words.run(report, options.data)
    elif name == "row_features":
        row_features.run(report, options.data)
    elif name == "peers":
        peers.run(report, options.data)
    elif name == "implicit":
        implicit_feedback.run(report, options.data)
    elif name == "completion_kernels":
        completion_kernels.run(report)
    elif name == "scale":
        scale.run(report)
    elif name == "budget":
        budget.run(report)
    elif name == "people":
        people.run(report, options.data)
    elif name == "words":
        words.run(report, options.data)
    elif name == "public_words":
        public_words.run(report, options.data)
    elif name == "public_topics":
        public_topics.run(report, options.data)
    elif name == "topics":
        topics.run(report, options.data)
    elif name == "topics_and_gibbs":
        topics_and_gibbs.run(report, options.data)
    elif name == "forecasts":
        forecasts.run(report, options.data)
    elif name == "small_counts":
        small_counts.run(report)
    elif name == "laws":
        laws.run(report)
    elif name == "long_documents":
        long_documents.run(report)
    elif name == "real_text":
        real_text.run(report, options.data / "20newsgroups")
    else:
        for dim, n_components in ((10, 10), (20, 4)):
            decomposition_accuracy.run(dim, n_components, 5 if options.quick else 100)
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
