"""What a run of the topics demo leaves behind: page, tables, figure, models."""

import argparse
import csv
import math
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

N_WORDS = 10
BUDGET_SHARES = (0.3, 0.7)  # for the word list, and for topics
PUBLIC_WORDS = (0.0, 1.0)
SHARES = "PRIVATE-document-shares.csv"
RESULTS = (
    "words.model", "topics.model", "topics.html", "topics.csv", "topic_words.csv", "topics.png",
    SHARES,
)  # fmt: skip


def keep_earlier(folder: Path) -> Path | None:
    """Move an earlier run's results, which were paid for, to a folder of their own."""
    found = [folder / name for name in RESULTS if (folder / name).exists()]
    if not found:
        return None
    number = 1
    while (folder / f"earlier-{number}").exists():
        number += 1
    target = folder / f"earlier-{number}"
    target.mkdir()
    for path in found:
        path.rename(target / path.name)
    return target


def save_models(folder: Path, pipeline: Any) -> list[Path]:
    """Write both fitted steps."""
    files = [folder / "words.model", folder / "topics.model"]
    for path, step in zip(files, ("counts", "topics"), strict=True):
        pipeline[step].save(path)
    return files


def order_of(model: Any) -> list[int]:
    """Rows of ``components_`` by falling weight."""
    weights = model.topic_prior_
    return sorted(range(len(weights)), key=lambda row: -weights[row])


def ranked_topics(model: Any, words: list[str]) -> list[Any]:
    """Topics by falling weight, numbered in this order."""
    from sktensor_dp.topic_page import topics_of

    return topics_of(model, words, N_WORDS)


def draw(model: Any, words: list[str]) -> bytes | None:
    from sktensor_dp.plotting import figure_png, plot_topics

    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return None
    order = order_of(model)
    figure = plot_topics(
        model.components_[order], words, model.topic_prior_[order], n_words=N_WORDS
    )
    return figure_png(figure)


def write_files(
    options: argparse.Namespace,
    total: tuple[float, float],
    pipeline: Any,
    words: list[str],
    png: bytes | None,
    told: Sequence[str],
) -> list[Path]:
    """Write page, tables and figure, of released values alone."""
    from sktensor_dp.topic_page import write_topic_page

    model = pipeline["topics"]
    topics = ranked_topics(model, words)
    files = [options.output / name for name in ("topics.html", "topics.csv", "topic_words.csv")]
    write_topic_page(
        files[0],
        title="Private topics" if options.input else "Private topics of Python docstrings",
        topics=topics,
        reports={name: step.privacy_report_ for name, step in pipeline.steps},
        total=total,
        facts=public_facts(options, words, len(topics)),
        warnings=told,
        model=model,
        feature_names=words,
        snippet=snippet(options),
    )
    write_top_words(files[1], topics, model, words)
    write_all_words(files[2], model, words)
    if png is not None:
        files.append(options.output / "topics.png")
        files[-1].write_bytes(png)
    return files


def write_rows(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def write_top_words(path: Path, topics: list[Any], model: Any, words: list[str]) -> None:
    """One line per leading word; `row` is the topic's in ``components_`` of the saved model."""
    column_of = {word: column for column, word in enumerate(words)}
    head = ["topic", "weight", "rank", "word", "probability", "below_noise", "row"]
    lines = []
    for topic, row in zip(topics, order_of(model), strict=True):
        for rank, word in enumerate(topic.words, start=1):
            probability = f"{model.components_[row, column_of[word]]:.6g}"
            hidden = "yes" if topic.below_noise else "no"
            lines.append(
                [topic.number, f"{topic.weight:.6f}", rank, word, probability, hidden, row]
            )
    write_rows(path, head, lines)


def write_all_words(path: Path, model: Any, words: list[str]) -> None:
    """Every word with its probability in every topic, and in all texts."""
    order = order_of(model)
    head = ["word", "all_texts", *(f"topic_{number}" for number in range(1, len(order) + 1))]
    columns = [model.unigram_, *(model.components_[row] for row in order)]
    write_rows(
        path,
        head,
        (
            [word, *(f"{column[place]:.6g}" for column in columns)]
            for place, word in enumerate(words)
        ),
    )


def write_shares(path: Path, pipeline: Any, texts: list[str]) -> Path:
    """What each document holds of each topic: raw data, which no noise protects."""
    order = order_of(pipeline["topics"])
    shares = pipeline.transform(texts)[:, order]
    head = ["document", *(f"topic_{number}" for number in range(1, len(order) + 1))]
    rows = (
        [number, *(f"{share:.6f}" for share in row)] for number, row in enumerate(shares, start=1)
    )
    write_rows(path, head, rows)
    return path


def budget_shares(options: argparse.Namespace) -> tuple[float, float]:
    """Shares of the word list and of topics: public words cost nothing."""
    return BUDGET_SHARES if options.vocabulary is None else PUBLIC_WORDS


def public_words(options: argparse.Namespace) -> dict[str, float] | None:
    """The commonest words of a public list, as texts are split into words."""
    from sktensor_dp import PrivateCountVectorizer
    from sktensor_dp.datasets import load_word_frequencies

    if options.vocabulary is None:
        return None
    words = load_word_frequencies(options.vocabulary)
    split = PrivateCountVectorizer(stop_words=stop_words(options)).build_analyzer()
    kept = [word for word in words if split(word) == [word]][: options.max_features]
    if not kept:
        raise ValueError("--vocabulary has no word but stop words")
    return {word: words[word] for word in kept}


def stop_words(options: argparse.Namespace) -> str | None:
    """Return the list to drop: scikit-learn's is public, so dropping its words is free."""
    return None if options.stop_words == "none" else str(options.stop_words)


def public_facts(options: argparse.Namespace, words: list[str], n_topics: int) -> dict[str, str]:
    from sktensor_dp import __version__

    return {
        "Texts": "a file of the custodian" if options.input else "numpy, scipy, sklearn docstrings",
        "Protected": "a document" if options.person is None else "a person, with all their texts",
        "Topics asked for": str(options.topics),
        "Topics found": str(n_topics),
        "Words asked for": f"at most {options.max_features:,}",
        "Words dropped": f"stop words: {options.stop_words}",
        "Words released": f"{len(words):,}",
        "Budget": f"ε = {options.epsilon:g}, δ = {options.delta:g}",
        "Share of word list": f"{budget_shares(options)[0]:.0%} of μ²",
        "sktensor-dp": __version__,
    }


def snippet(options: argparse.Namespace) -> str:
    # The name of a private file may itself be private.
    given = {
        "column": options.text, "delimiter": options.delimiter, "quoting": options.quoting,
        "encoding": options.encoding,
    }  # fmt: skip
    if options.person is not None:
        given["person"] = options.person
    column = "".join(f", {name}={value!r}" for name, value in given.items() if value)
    loader, fit = "load_docstrings", "pipeline.fit(load_docstrings())"
    if options.input:
        loader = "load_texts" if options.person is None else "load_texts_by_person"
        call = f'{loader}("path/to/your/texts"{column})'
        fit = f"pipeline.fit({call})"
        if options.person is not None:
            fit = (
                f"texts, persons = {call}\n"
                "pipeline.fit(texts, counts__groups=persons, topics__groups=persons)"
            )
    if options.vocabulary is not None:
        return public_snippet(options, loader, fit)
    epsilon = 'float("inf")' if math.isinf(options.epsilon) else repr(options.epsilon)
    fit = fit.replace("\n", "\n        ")
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
        {fit}

        words = pipeline["counts"].get_feature_names_out()
        for topic in pipeline["topics"].top_words({N_WORDS}, words):
            print(*topic)
        print(budget.total())
        """)


def public_snippet(options: argparse.Namespace, loader: str, fit: str) -> str:
    epsilon = 'float("inf")' if math.isinf(options.epsilon) else repr(options.epsilon)
    fit = fit.replace("\n", "\n        ")
    return textwrap.dedent(f"""\
        from sklearn.pipeline import Pipeline
        from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, PrivateSpectralLDA
        from sktensor_dp.datasets import {loader}, load_word_frequencies

        budget = BudgetAccountant(epsilon={epsilon}, delta={options.delta!r})
        known = load_word_frequencies("path/to/your/words")
        split = PrivateCountVectorizer(stop_words={stop_words(options)!r}).build_analyzer()
        words = [word for word in known if split(word) == [word]][:{options.max_features}]
        pipeline = Pipeline([
            ("counts", PrivateCountVectorizer(
                stop_words={stop_words(options)!r}, vocabulary=words)),
            ("topics", PrivateSpectralLDA(
                n_components={options.topics}, accountant=budget, epsilon={epsilon},
                delta={options.delta!r}, word_frequencies=[known[word] for word in words])),
        ])
        {fit}

        for topic in pipeline["topics"].top_words({N_WORDS}, words):
            print(*topic)
        print(budget.total())
        """)


def print_results(budget: Any, total: tuple[float, float], pipeline: Any, words: list[str]) -> None:
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    print("\nTopic  Weight  Distinctive words")
    topics = ranked_topics(pipeline["topics"], words)
    for topic in topics:
        line = " ".join(
            "".join(c if c.isprintable() else "?" for c in w) for w in topic.distinctive
        )
        mark = "*" if topic.below_noise else " "
        label = f"{topic.number:>5}{mark} {topic.weight:>5.1%}  "
        print(textwrap.fill(line, width, initial_indent=label, subsequent_indent=" " * len(label)))
    if any(topic.below_noise for topic in topics):
        print("* below its noise: too little sets it apart from the word frequencies of all texts")
    for name, step in pipeline.steps:
        print(f"\nPrivacy of {name}\n{step.privacy_report_}")
    epsilon, delta = total
    if math.isinf(epsilon):
        print("\nTotal: no noise was added; NOT PRIVATE")
    else:
        print(f"\nTotal: epsilon = {epsilon:.6g} at delta = {delta:g}, both steps together")
    print(budget.of_all_runs())
