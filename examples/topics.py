"""Private topics of a text collection: table, figure, web page, privacy report.

Without arguments it works on the docstrings of numpy, scipy and scikit-learn::

    python examples/topics.py
    python examples/topics.py --input reviews.csv --text review --epsilon 2
"""

import argparse
import csv
import math
import shutil
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

N_WORDS = 10
BUDGET_SHARES = (0.3, 0.7)  # for the word list, and for topics
N_STEPS = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0, 2 on bad input, or 130 if interrupted."""
    options = parse_arguments(arguments)
    try:
        with short_warnings():
            run(options)
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


def run(options: argparse.Namespace) -> None:
    progress = Progress(N_STEPS, sys.stderr)
    # A folder that cannot be written should show before anything is spent.
    options.output.mkdir(parents=True, exist_ok=True)
    with progress.step("reading texts"):
        texts = read_texts(options)
    progress.note(f"{len(texts):,} documents")
    if options.delta > 1 / len(texts):
        progress.note(
            f"warning: delta = {options.delta:g} is above 1/n = {1 / len(texts):.2g}: "
            "it would allow publishing a document picked at random"
        )
    accountant, pipeline = build(options)
    with progress.step("learning topics", lambda: current_step(pipeline)):
        pipeline.fit(texts)
    del texts  # everything below is made of what was released
    words = [str(word) for word in pipeline["counts"].get_feature_names_out()]
    with progress.step("drawing"):
        png = draw(pipeline["topics"], words)
    with progress.step("writing files"):
        files = write_files(options, accountant, pipeline, words, png)
    print_results(accountant, pipeline, words)
    if png is None:
        print("No figure: matplotlib is not installed (pip install 'sktensor-dp[plots]').")
    print("Written:", *(f"\n  {file}" for file in files))


# ------------------------------------------------------------------ the work


def read_texts(options: argparse.Namespace) -> list[str]:
    from sktensor_dp.datasets import load_docstrings, load_texts

    if options.input is None:
        return load_docstrings()
    return load_texts(options.input, column=options.text)


def build(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return one budget and the pipeline of two steps that share it."""
    from sklearn.pipeline import Pipeline

    from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, PrivateSpectralLDA

    accountant = BudgetAccountant(epsilon=options.epsilon, delta=options.delta)
    for_words, for_topics = accountant.split(BUDGET_SHARES, thresholds=1)
    counts = PrivateCountVectorizer(
        stop_words=stop_words(options),
        max_features=options.max_features,
        accountant=accountant,
        **for_words,
    )
    topics = PrivateSpectralLDA(
        n_components=options.topics,
        accountant=accountant,
        random_state=options.seed,
        **for_topics,
    )
    return accountant, Pipeline([("counts", counts), ("topics", topics)])


def stop_words(options: argparse.Namespace) -> str | None:
    """Return the list to drop: scikit-learn's is public, so dropping its words is free."""
    return None if options.stop_words == "none" else str(options.stop_words)


def current_step(pipeline: Any) -> str:
    """Say where a running fit is, from nothing but which steps are done."""
    done = hasattr(pipeline["counts"], "privacy_report_")
    return "learning topics" if done else "choosing the word list"


def draw(model: Any, words: list[str]) -> bytes | None:
    from sktensor_dp.plotting import figure_png, plot_topics

    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return None
    figure = plot_topics(model.components_, words, model.topic_prior_, n_words=N_WORDS)
    return figure_png(figure)


def ranked_topics(model: Any, words: list[str]) -> list[Any]:
    """Topics by falling weight, numbered by their row of ``components_``."""
    from sktensor_dp.topic_page import Topic

    shares = model.topic_prior_ / model.topic_prior_.sum()
    top = model.top_words(N_WORDS, words)
    topics = [
        Topic(number, float(share), tuple(row))
        for number, (share, row) in enumerate(zip(shares, top, strict=True), start=1)
    ]
    return sorted(topics, key=lambda topic: -topic.weight)


# ------------------------------------------------------------------- results


def write_files(
    options: argparse.Namespace,
    accountant: Any,
    pipeline: Any,
    words: list[str],
    png: bytes | None,
) -> list[Path]:
    from sktensor_dp.topic_page import write_topic_page

    topics = ranked_topics(pipeline["topics"], words)
    files = [options.output / "topics.html", options.output / "topics.csv"]
    write_topic_page(
        files[0],
        title="Private topics" if options.input else "Private topics of Python docstrings",
        topics=topics,
        reports={name: step.privacy_report_ for name, step in pipeline.steps},
        total=accountant.total(),
        facts=public_facts(options, words, len(topics)),
        figure_png=png,
        snippet=snippet(options),
    )
    write_csv(files[1], topics, pipeline["topics"].components_, words)
    image = options.output / "topics.png"
    if png is None:
        image.unlink(missing_ok=True)  # an earlier run's figure shows other topics
    else:
        image.write_bytes(png)
        files.append(image)
    return files


def write_csv(path: Path, topics: list[Any], components: Any, words: list[str]) -> None:
    column_of = {word: column for column, word in enumerate(words)}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", "weight", "rank", "word", "probability"])
        for topic in topics:
            for rank, word in enumerate(topic.words, start=1):
                probability = components[topic.number - 1, column_of[word]]
                writer.writerow(
                    [topic.number, f"{topic.weight:.6f}", rank, word, f"{probability:.6g}"]
                )


def public_facts(options: argparse.Namespace, words: list[str], n_topics: int) -> dict[str, str]:
    from sktensor_dp import __version__

    return {
        "Texts": "a file of the custodian" if options.input else "numpy, scipy, sklearn docstrings",
        "Topics asked for": str(options.topics),
        "Topics found": str(n_topics),
        "Words asked for": f"at most {options.max_features:,}",
        "Words dropped": f"stop words: {options.stop_words}",
        "Words released": f"{len(words):,}",
        "Budget": f"ε = {options.epsilon:g}, δ = {options.delta:g}",
        "Share of word list": f"{BUDGET_SHARES[0]:.0%} of μ²",
        "sktensor-dp": __version__,
    }


def snippet(options: argparse.Namespace) -> str:
    # The name of a private file may itself be private.
    column = f", column={options.text!r}" if options.text else ""
    loader, call = (
        ("load_texts", f'load_texts("path/to/your/texts"{column})')
        if options.input
        else ("load_docstrings", "load_docstrings()")
    )
    epsilon = 'float("inf")' if math.isinf(options.epsilon) else repr(options.epsilon)
    return textwrap.dedent(f"""\
        from sklearn.pipeline import Pipeline
        from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, PrivateSpectralLDA
        from sktensor_dp.datasets import {loader}

        budget = BudgetAccountant(epsilon={epsilon}, delta={options.delta!r})
        for_words, for_topics = budget.split({list(BUDGET_SHARES)!r}, thresholds=1)
        pipeline = Pipeline([
            ("counts", PrivateCountVectorizer(
                stop_words={stop_words(options)!r}, max_features={options.max_features},
                accountant=budget, **for_words)),
            ("topics", PrivateSpectralLDA(
                n_components={options.topics}, accountant=budget, **for_topics)),
        ])
        pipeline.fit({call})

        words = pipeline["counts"].get_feature_names_out()
        for topic in pipeline["topics"].top_words({N_WORDS}, words):
            print(*topic)
        print(budget.total())
        """)


def print_results(accountant: Any, pipeline: Any, words: list[str]) -> None:
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    print("\nTopic  Weight  Most probable words")
    for topic in ranked_topics(pipeline["topics"], words):
        line = " ".join("".join(c if c.isprintable() else "?" for c in w) for w in topic.words)
        label = f"{topic.number:>5}  {topic.weight:>5.1%}  "
        print(textwrap.fill(line, width, initial_indent=label, subsequent_indent=" " * len(label)))
    for name, step in pipeline.steps:
        print(f"\nPrivacy of {name}\n{step.privacy_report_}")
    epsilon, delta = accountant.total()
    if math.isinf(epsilon):
        print("\nTotal: no noise was added; NOT PRIVATE")
    else:
        print(f"\nTotal: epsilon = {epsilon:.6g} at delta = {delta:g}, both steps together")


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
    add("--epsilon", type=number_in(0, math.inf, "> 0"), default=4.0, help="budget; inf: no noise")
    add("--delta", type=number_in(0, 1, "between 0 and 1"), default=1e-6, help="below 1/n")
    add("--topics", type=integer_from(1), default=10, help="number of topics")
    add("--max-features", type=integer_from(2), default=2000, help="most words to use")
    add("--stop-words", choices=["english", "none"], default="english", help="words to drop")
    add("--output", type=Path, default=Path("demo-output"), help="folder for the results")
    add("--seed", type=integer_from(0), help="for choices after the noise; never the noise")
    options = parser.parse_args(arguments)
    if options.text is not None and options.input is None:
        parser.error("--text needs --input")
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


def integer_from(low: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"must be a whole number >= {low}, got {text!r}")
        return int(text)

    return integer


class Progress:
    """Numbered steps with the time they take, on one stream."""

    def __init__(self, n_steps: int, stream: TextIO, seconds_between: float | None = None) -> None:
        self.n_steps = n_steps
        self.stream = stream
        self.live = stream.isatty()
        self.seconds_between = seconds_between or (0.5 if self.live else 15.0)
        self.started = 0

    @contextmanager
    def step(self, label: str, current: Callable[[], str] | None = None) -> Iterator[None]:
        """Announce a step and time it; `current` says which part of it is running."""
        self.started += 1
        head = f"[{self.started}/{self.n_steps}]"
        begin = time.monotonic()
        over = threading.Event()

        def beat() -> None:
            while not over.wait(self.seconds_between):
                self._show(f"{head} {current() if current else label} ...", begin)

        if not self.live:
            print(f"{head} {label} ...", file=self.stream, flush=True)
        ticker = threading.Thread(target=beat, daemon=True)
        ticker.start()
        try:
            yield
        finally:
            over.set()
            ticker.join()
            if self.live:
                print("\r\x1b[K", end="", file=self.stream)
        print(f"{head} {label}: {time.monotonic() - begin:.1f} s", file=self.stream, flush=True)

    def note(self, text: str) -> None:
        """Print a line that belongs to the last step."""
        print(f"      {text}", file=self.stream, flush=True)

    def _show(self, text: str, begin: float) -> None:
        start, end = ("\r\x1b[K", "") if self.live else ("", "\n")
        elapsed = f"{time.monotonic() - begin:.0f} s"
        print(f"{start}{text} {elapsed}", end=end, file=self.stream, flush=True)


@contextmanager
def short_warnings() -> Iterator[None]:
    """Show each warning as one line, without the source line that raised it."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"      warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


if __name__ == "__main__":
    sys.exit(main())
