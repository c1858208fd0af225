"""Private topics of a text collection: table, figure, web page, models, privacy report.

Without arguments it works on the docstrings of numpy, scipy and scikit-learn::

    python examples/topics.py
    python examples/topics.py --input reviews.csv --text review --epsilon 2

A text is what is protected; with ``--person author`` a person with all their texts.
"""

import argparse
import math
import sys
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from run_progress import Progress, short_warnings
from topic_budget import LEDGER, RunBudget
from topic_files import (
    SHARES,
    budget_shares,
    draw,
    keep_earlier,
    print_results,
    public_words,
    save_models,
    stop_words,
    write_files,
    write_shares,
)

N_STEPS = 4
PROTECTED = "persons, each with all their texts, however many these are"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0, 2 on bad input, or 130 if interrupted."""
    options = parse_arguments(arguments)
    try:
        with short_warnings() as told:
            run(options, told)
    except KeyboardInterrupt:
        print(
            "\nStopped. If topics were being learned, budget may have been spent.",
            file=sys.stderr,
        )
        return 130
    except (ImportError, OSError, ValueError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def run(options: argparse.Namespace, told: list[Warning]) -> None:
    progress = Progress(N_STEPS, sys.stderr)
    # A folder that cannot be written should show before anything is spent.
    options.output.mkdir(parents=True, exist_ok=True)
    budget = open_budget(options)
    with progress.step("reading texts"):
        texts, persons = read_texts(options)
    n_units, groups = len(texts), {}
    if persons is not None:
        # How many texts a person wrote is private, and so is how many there are.
        n_units, groups = len(set(persons)), groups_of(persons)
    progress.note(f"{n_units:,} {'documents' if persons is None else PROTECTED}")
    public_warnings = warn_of_delta(options, n_units, progress)
    pipeline = build(options, budget)
    show_forecast(options, pipeline, n_units, progress)
    if options.forecast:
        print(f"Only a forecast was asked for: nothing was spent. {budget.of_all_runs()}.")
        return
    with progress.step("learning topics", lambda: current_step(pipeline)):
        pipeline.fit(texts, **groups)
    # At once: what was paid for must not be lost to an error of what follows.
    earlier = keep_earlier(options.output)
    files = save_models(options.output, pipeline)
    if options.shares:
        files.append(write_shares(options.output / SHARES, pipeline, texts))
    del texts, persons, groups  # everything below is made of what was released
    words = [str(word) for word in pipeline["counts"].get_feature_names_out()]
    with progress.step("drawing"):
        png = draw(pipeline["topics"], words)
    total = budget.of_run()
    with progress.step("writing files"):
        public_warnings += map(str, told)
        files += write_files(options, total, pipeline, words, png, public_warnings)
    print_results(budget, total, pipeline, words)
    if options.person is not None:
        print(f"What is protected: {PROTECTED}")
    if png is None:
        print("No figure: matplotlib is not installed (pip install matplotlib).")
    print("Written:", *(f"\n  {file}" for file in [*files, options.output / LEDGER]))
    if earlier is not None:
        print(f"The results of the run before are in {earlier}")
    if options.open:
        webbrowser.open((options.output / "topics.html").resolve().as_uri())
    if options.shares:
        print(
            f"{SHARES} speaks of single documents: no noise protects it. Keep it where the texts "
            "are kept."
        )


# ------------------------------------------------------------------ the work


def open_budget(options: argparse.Namespace) -> RunBudget:
    scope = "docstrings" if options.input is None else "texts"
    budget = RunBudget(options.output, options.epsilon, options.delta, options.budget, scope)
    shares = budget_shares(options)
    budget.check(shares, "document" if options.person is None else "group of documents")
    return budget


def read_texts(options: argparse.Namespace) -> tuple[list[str], list[str] | None]:
    """Return texts, and whose each of them is if persons are to be protected."""
    from sktensor_dp.datasets import load_docstrings, load_texts, load_texts_by_person

    if options.input is None:
        return load_docstrings(), None
    how = {
        "delimiter": options.delimiter,
        "quoting": options.quoting or "auto",
        "encoding": options.encoding or "utf-8",
    }
    if options.person is None:
        return load_texts(options.input, options.text, **how), None
    return load_texts_by_person(options.input, options.text, options.person, **how)


def groups_of(persons: list[str]) -> dict[str, list[str]]:
    """Arguments of the pipeline's fit: both steps protect persons."""
    return {f"{step}__groups": persons for step in ("counts", "topics")}


def warn_of_delta(options: argparse.Namespace, n: int, progress: Progress) -> list[str]:
    if options.delta <= 1 / n:
        return []
    warning = (
        f"delta = {options.delta:g} is above 1/n = {1 / n:.2g}: "
        "it would allow publishing a "
        f"{'document' if options.person is None else 'person'} picked at random"
    )
    progress.note(f"warning: {warning}")
    return [warning]


def build(options: argparse.Namespace, budget: RunBudget) -> Any:
    """Return the pipeline of two steps that share a budget."""
    from sklearn.pipeline import Pipeline

    from sktensor_dp import PrivateCountVectorizer, PrivateSpectralLDA

    for_words, for_topics = budget.parts(budget_shares(options))
    known = public_words(options)
    of_words: dict[str, Any] = {"max_features": options.max_features}
    of_topics: dict[str, Any] = {}
    if known is not None:
        of_words = {"vocabulary": list(known)}
        of_topics = {"word_frequencies": list(known.values())}
    counts = PrivateCountVectorizer(
        stop_words=stop_words(options),
        accountant=budget.ledger,
        **of_words,
        **for_words,
    )
    topics = PrivateSpectralLDA(
        n_components=options.topics,
        accountant=budget.ledger,
        random_state=options.seed,
        **of_topics,
        **for_topics,
    )
    return Pipeline([("counts", counts), ("topics", topics)])


def show_forecast(
    options: argparse.Namespace, pipeline: Any, n_documents: int, progress: Progress
) -> None:
    """Say what the fit can be expected to find, from public numbers, before it is paid for."""
    forecast = pipeline["topics"].forecast(n_documents, options.max_features)
    progress.note(
        f"forecast for {options.max_features:,} words and texts of 100, before anything is spent:"
    )
    for line in str(forecast).splitlines():
        progress.note(line)


def current_step(pipeline: Any) -> str:
    """Say where a running fit is, from nothing but which steps are done."""
    done = hasattr(pipeline["counts"], "privacy_report_")
    return "learning topics" if done else "choosing the word list"


# -------------------------------------------------------- arguments, progress


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Find the topics of a collection of texts with differential privacy.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--input", type=Path, help="folder of .txt files, or .csv, .tsv, .jsonl, .parquet file")
    add("--text", metavar="COLUMN", help="the column that holds the text")
    add("--person", metavar="COLUMN", help="the column that names a person: protects persons")
    add("--vocabulary", type=Path, help="public words and how often they are used: costs nothing")
    add("--delimiter", type=delimiter, help="between the cells of a .csv or .tsv; 'tab' for tabs")
    add("--quoting", choices=["standard", "none"], help="whether cells may be quoted")
    add("--encoding", help="of text files, such as cp1252; utf-8 if not given")
    add("--epsilon", type=number_in(0, math.inf, "> 0"), default=4.0, help="budget; inf: no noise")
    add("--budget", type=number_in(0, math.inf, "> 0"), help="most that all runs may spend")
    add("--delta", type=number_in(0, 1, "between 0 and 1"), default=1e-6, help="below 1/n")
    add("--topics", type=integer_from(1), default=10, help="number of topics")
    add("--max-features", type=integer_from(2), default=2000, help="most words to use")
    add("--stop-words", choices=["english", "none"], default="english", help="words to drop")
    add("--output", type=Path, default=Path("demo-output"), help="folder for the results")
    add("--shares", action="store_true", help="write each document's topics: not protected")
    add("--forecast", action="store_true", help="show the forecast, spend nothing")
    add("--open", action="store_true", help="open the page in a browser when it is written")
    add("--seed", type=integer_from(0), help="for choices after the noise; never the noise")
    options = parser.parse_args(arguments)
    if options.person is not None and options.text is None:
        parser.error("--person needs --text")
    for name in ("text", "person", "delimiter", "quoting", "encoding"):
        if getattr(options, name) is not None and options.input is None:
            parser.error(f"--{name} needs --input")
    if options.topics > options.max_features:
        parser.error("--topics must not exceed --max-features")
    return options


def number_in(low: float, high: float, range_: str) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        # Only epsilon may be infinite; nan fails both comparisons.
        if not (low < value < high or value == high == math.inf):
            raise argparse.ArgumentTypeError(f"must be a number {range_}, got {text!r}")
        return value

    return number


def delimiter(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


def integer_from(low: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"must be a whole number >= {low}, got {text!r}")
        return int(text)

    return integer


if __name__ == "__main__":
    sys.exit(main())
