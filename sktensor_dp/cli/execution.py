"""Runs of the command: read, check the budget, forecast, fit, write what was found."""

import math
import sys
import webbrowser
from argparse import Namespace
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from sktensor_dp.cli.folder import Folder
from sktensor_dp.cli.officer import write_officer_pages
from sktensor_dp.cli.progress import Progress
from sktensor_dp.cli.runs import RUNS, SHARES
from sktensor_dp.cli.statements import check_statements, show_budget
from sktensor_dp.estimator.forecast import least_epsilon, least_number
from sktensor_dp.exceptions import NotEnoughDataError
from sktensor_dp.plotting import save_svg
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.tables import plain

WRITTEN = (".html", ".md", ".json", ".csv", ".svg", ".model", ".sqlite")


def execute(options: Namespace) -> int:
    """Do what was asked for; return the status."""
    if options.command == "report":
        return check_statements(options)
    if options.command == "budget":
        return show_budget(options)
    if options.command == "forecast":
        return _show_forecast(options)
    return _run(RUNS[options.command](options))


def _show_forecast(options: Namespace) -> int:
    run = RUNS[options.kind](options)
    run.n_units, run.n_items = options.persons, getattr(options, "items", 0)
    run.build()
    print("\n".join(run.expected()))
    if options.find:
        print(_least(run, options.find))
    return 0


def _least(run: Any, sought: str) -> str:
    """Say from which epsilon, or from how many persons, on the forecast is good enough."""
    if sought == "epsilon":
        epsilon = least_epsilon(lambda value: _changed(run, epsilon=value).is_enough())
        if epsilon is None:
            return f"No epsilon up to 100 would be enough for {run.units}."
        return f"Enough from --epsilon {epsilon:g} on, for {run.units}."

    def reached(n: int) -> bool:
        other = copy(run)
        other.n_units = n
        return bool(other.is_enough())

    n = least_number(reached)
    if n is None:
        return f"No number of persons would be enough at --epsilon {run.options.epsilon:g}."
    return f"Enough from --persons {n} on, at --epsilon {run.options.epsilon:g}."


def _run(run: Any) -> int:
    options, progress = run.options, Progress()
    public = options.file is None  # built-in texts
    folder = Folder(
        options.output or Path("demo-output" if public else f"private-{options.command}")
    )
    status = 0
    first = math.inf if public else options.epsilon
    folder.open(first, options.delta, options.budget, options.raise_budget)
    try:
        run.build()
        with progress.warned():
            with progress.step("Reading"):
                run.read()
            used = [f"{what}: {value}" for what, value in run.settings().items()]
            if not options.forecast:
                folder.check(run.cost, run.ledger_unit, options.epsilon)
                used.append(folder.spending(options.epsilon))
            progress.note("; ".join(used))
            if _is_enough(run, progress):
                run.build(folder.keep())
                with progress.step(f"Learning {options.command}"):
                    run.fit()
                if doubts := run.doubts(progress.noisy):
                    progress.warn(doubts)
                _write(run, folder, progress)
    except KeyboardInterrupt:
        spent = "its budget is spent" if folder.spent_by_run() else "nothing was spent"
        print(f"\nStopped; {spent}. {folder.summary()}", file=sys.stderr)
        status = 130
    except NotEnoughDataError as error:
        spent = f" The budget of this run is spent. {folder.summary()}"
        error.args = (f"{error}{spent * folder.spent_by_run()}",)
        raise
    finally:
        folder.tidy()
    return status


def _is_enough(run: Any, progress: Progress) -> bool:
    """Show the forecast, and say whether to go on."""
    options = run.options
    progress.note(f"{run.units}; each {run.unit} is protected")
    if run.unit != "person" and options.file is not None:
        progress.note(
            f"warning: whoever is behind several {run.unit}s is not protected as a person. Name "
            "the column that says whose each is: --person COLUMN"
        )
    if options.delta > 1 / run.n_units:
        progress.note(
            f"warning: delta {options.delta:g} is above 1 in {run.n_units:,}: it would allow to "
            f"publish a {run.unit} picked at random. Take a smaller --delta"
        )
    progress.note("\n".join(run.expected()))
    if options.forecast:
        progress.note("This was the forecast: nothing was spent.")
        return False
    if run.too_few() and not options.anyway:
        ways = " or ".join(_proposals(run))
        better = f"More can be expected with {ways}" if ways else "No change of one option would do"
        raise NotEnoughDataError(
            f"too few {run.unit}s for this, so it stopped; nothing was spent. {better}. To go on "
            "all the same: --anyway"
        )
    return True


def _promise(report: PrivacyReport) -> str:
    """Say in a line what is promised to whom."""
    if report.seeded or math.isinf(report.epsilon):
        return f"{report.guarantee}: nothing is protected."
    return (
        f"Each of {report.n_units:,} {report.unit}s is protected by differential privacy: epsilon "
        f"{report.epsilon:.4g}, delta {plain(report.delta)}, for replacing one {report.unit}."
    )


def _changed(run: Any, **options: Any) -> Any:
    """Make the same run with other options, built anew."""
    other = copy(run)
    other.options = Namespace(**{**vars(run.options), **options})
    other.build()
    return other


def _proposals(run: Any) -> Iterator[str]:
    """Changes of one option each with which the forecast is better."""
    for name, factor in (("epsilon", 2), ("topics", 0.5), ("groups", 0.5), ("words", 0.5)):
        value = getattr(run.options, name, 0)
        for power in range(1, 7):
            changed = value * factor**power
            if changed < 1 and name != "epsilon":
                break
            changed = changed if name == "epsilon" else int(changed)
            if not _changed(run, **{name: changed}).too_few():
                yield f"--{name} {changed:g}"
                break


def _write(run: Any, folder: Folder, progress: Progress) -> None:
    """Write models, which were paid for, before anything else can fail."""
    options, earlier, path = run.options, folder.keep_earlier(), folder.path
    for name, model in run.models.items():
        model.save(path / f"{name}.model")
    reports = [model.privacy_report_ for model in run.models.values() if model.privacy_report_.rows]
    both = reduce(lambda one, later: one.followed_by(later, options.delta), reports)
    report = replace(both, unit=run.unit)
    (path / "statement.json").write_text(report.to_json() + "\n", encoding="utf-8")
    unprotected = SHARES if getattr(options, "shares", False) else ""
    settings = {"command": f"sktensor-dp {options.command}", **run.settings()}
    write_officer_pages(path, settings, report, folder.summary(), unprotected)
    try:
        save_svg(run.write(path, report, progress.warnings), path / f"{options.command}.svg")
    except ImportError:
        progress.note("No picture: it needs matplotlib (pip install matplotlib)")
    print("\n".join(["", *run.lines(), "", _promise(report), folder.summary()]))
    files = sorted(file.name for file in path.iterdir() if file.suffix in WRITTEN)
    print(f"Written to {path}: {', '.join(files)}")
    if earlier is not None:
        print(f"What an earlier run found is in {earlier}")
    if unprotected:
        print(
            f"{unprotected} is about single texts, and nothing protects it: keep it with the texts"
        )
    if options.open:
        page = "topics.html" if options.command == "topics" else "for-the-officer.html"
        webbrowser.open((path / page).resolve().as_uri())
