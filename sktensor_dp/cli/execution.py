"""Runs of the command: read, check the budget, forecast, fit, write what was found."""

import math
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path

from sktensor_dp import __version__
from sktensor_dp.checks.display import plain, rounded_up
from sktensor_dp.cli.folder import LEDGER, Folder
from sktensor_dp.cli.groups import Groups
from sktensor_dp.cli.held_folder import held
from sktensor_dp.cli.interrupts import Interrupts
from sktensor_dp.cli.last_run import COUNTED, INHERITED, changed_since, released_before, take_up
from sktensor_dp.cli.manifest import MANIFEST, STATEMENT, Manifest
from sktensor_dp.cli.officer_page import (
    DOUBTS,
    LITTLE_PROMISED,
    PAGES,
    SHOWS,
    large_delta,
    officer_text,
    on_presence,
    write_officer_pages,
)
from sktensor_dp.cli.progress import Progress
from sktensor_dp.cli.ratings import Ratings
from sktensor_dp.cli.recommend import recommend
from sktensor_dp.cli.report_and_budget import check_statements, on_all_runs, show_budget, time_now
from sktensor_dp.cli.run import Run
from sktensor_dp.cli.topics import Topics
from sktensor_dp.estimator.forecast import LARGEST_ADVISED, MOST_UNITS, least_epsilon, least_number
from sktensor_dp.exceptions import BudgetError, NotEnoughDataError
from sktensor_dp.model_files.saving import check_saving
from sktensor_dp.plotting import save_svg
from sktensor_dp.privacy.payer import UNIT_COLUMN
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.privacy.statement import load_statement

KINDS_OF_RUN: dict[str, type[Run]] = {"topics": Topics, "ratings": Ratings, "groups": Groups}
EXACTLY = (
    "Names are compared exactly: if some differ in capitals alone, a person counts as several, and "
    "is protected less. --normalise-labels makes these one"
)
FOR_CHECK = "Only the check was charged"
ABOUT_TEXTS = "is about single texts, and nothing protects it: keep it with the texts"


def execute(options: Namespace) -> int:
    """Run the command that the options ask for; return the exit status."""
    commands: dict[str, Callable[[Namespace], int]] = {  # others are runs
        "report": check_statements, "budget": show_budget, "forecast": _show_forecast,
        "recommend": recommend,
    }  # fmt: skip
    return commands.get(options.command, _run)(options)


def _show_forecast(options: Namespace) -> int:
    """Print what a run may find, or the least epsilon or number for a target, and that forecast."""
    run = KINDS_OF_RUN[options.kind](options)
    run.n_units, run.n_items = options.persons or 1, options.items or 0
    run.build()
    then = []
    if options.find:
        asked, found = run, None
        if options.find == "epsilon":
            found = least_epsilon(lambda epsilon: asked.changed(epsilon=epsilon).is_enough())
            run, largest = asked.changed(epsilon=found or LARGEST_ADVISED), LARGEST_ADVISED
            of_run = f"for {run.units}"
        else:
            found = least = least_number(lambda n: asked.changed(n).is_enough())
            run, largest = asked.changed(least or MOST_UNITS), MOST_UNITS
            of_run = f"at --epsilon {run.options.epsilon:g}"
        option, where = f"--{options.find}", f"{of_run}, if {run.assumption()}."
        then = [f"No {option} up to {largest:,.0f}, as above, would be enough {where}"]
        if found:
            then = [f"{run.sought()} from {option} {found} on {where}"]
    presence = f"{on_presence(options.kind, is_hidden=False)}."
    print("\n".join([*run.forecast_lines(), presence, *then]))
    return 0


def _run(options: Namespace) -> int:
    """Read, check the budget, show the forecast, fit and write; return the exit status."""
    run, progress, folder = KINDS_OF_RUN[options.command](options), Progress(), None
    # Without a file it shows what it does, on built-in texts.
    path = options.output or Path(f"private-{options.command}" if options.file else "demo-output")
    options.output = path
    column_before = UNIT_COLUMN.set(options.person)
    try:
        run.build()
        with progress.warned(), ExitStack() as run_alone:
            with progress.step("Reading"):
                run.read()
                run.build()  # by the number of units
            epsilon, spending = options.epsilon, ""  # `_prepare` may lower that of options
            try:
                if os.path.lexists(path) or not options.forecast:  # a forecast makes no folder
                    run_alone.enter_context(held(path))
                folder = _prepare(run, path)
                taken_off = ""
                if options.epsilon < epsilon:
                    taken_off = "what earlier runs spent"
                elif run.checked and not run.used.models:
                    taken_off = "the check, which is paid for"
                difference = f"{epsilon:g} less {taken_off}" if taken_off else ""
                charge = run.charge(options.epsilon)
                spending = folder.spending(charge, run.epsilon, difference, run.used.models)
            except ValueError as error:
                if not options.forecast:
                    raise
                progress.note(f"warning: a run would be refused: {error}")
                if isinstance(error, NotEnoughDataError):  # on models that the folder has
                    return 0
            settings = {**run.settings(), "epsilon": plain(epsilon)}  # as asked for
            stated = [] if run.used.applies else [f"{name}: {settings[name]}" for name in settings]
            progress.note("; ".join(filter(None, [*stated, spending])))
            _show_used(run, path, progress)
            if not run.used.applies:
                _show_protection(run, path, progress, has_noise=math.isfinite(epsilon))
            if folder is None or options.forecast:
                if unchecked := run.unchecked():
                    progress.note(f"warning: {unchecked}: a run needs --no-check.")
                progress.note("This was the forecast: nothing was spent.")
                return 0
            _refuse_or_write_budget(run, folder)
            run.build(folder.ledger)
            if run.used.applies:
                _apply(run, folder, progress)
            else:
                _learn(run, folder, progress)
    except KeyboardInterrupt:
        print(f"\nStopped. {_spending_so_far(run, folder)}", file=sys.stderr)
        return 130
    except Exception as error:
        if folder is not None and folder.spent_by_run() and FOR_CHECK not in str(error):
            print(_spending_so_far(run, folder), file=sys.stderr)
        raise
    finally:
        UNIT_COLUMN.reset(column_before)
    return 0


def _refuse_or_write_budget(run: Run, folder: Folder) -> None:
    """Write the folder's budget before a first charge; ValueError if a run must not begin."""
    if run.options.budget is not None:  # it holds for later runs, also if this one is refused
        folder.write_budget()
    if not run.is_paid:  # else it spends nothing
        _refuse_few(run, folder)
    if unchecked := run.unchecked():
        raise ValueError(
            f"{unchecked}. Look at a few rows of each column, then say --no-check. Nothing was "
            "spent."
        )
    folder.write_budget()


def _learn(run: Run, folder: Folder, progress: Progress) -> None:
    """Check rows, fit the models, and write what was found."""
    with Interrupts(progress.note) as interrupts:
        folder.begin()
        paid: Sequence[PrivacyReport] = ()
        try:
            paid = _check_rows(run, folder, progress)
            stated = run.settings()
            folder.made.asked |= {name: str(stated[name]) for name in INHERITED if name in stated}
            _fit_and_write(run, folder, progress, interrupts, paid)
        except (Exception, KeyboardInterrupt) as error:
            if not folder.made.finished:
                with suppress(OSError):  # the run's own error says more
                    _state_unfinished(run, folder, progress, paid, error)
            raise


def _fit_and_write(
    run: Run, folder: Folder, progress: Progress, interrupts: Interrupts,
    paid: Sequence[PrivacyReport],
) -> None:  # fmt: skip
    """Fit the models, state them with what was `paid` before, and write what was found."""
    reports = [*paid]
    # Models that a finished run paid for: its other files are moved away now.
    if (used := run.used.models) and not folder.made.names:
        folder.keep_earlier([STATEMENT, *(f"{name}.model" for name in used)])
        _write_statement(run, folder, reports)
    interrupts.stop_if_asked()
    with progress.step(f"Learning {run.added if run.used.adds else run.options.command}"):
        *_, last = run.models
        # Save each model as soon as it was paid for, whatever happens later; a statement never
        # lacks what is beside it.
        for name in run.fit():
            reports.append(run.models[name].privacy_report_)
            _write_statement(run, folder, reports)
            folder.add(f"{name}.model", run.models[name].save)
            if name != last:
                interrupts.stop_if_asked()
    if folder.made.protected.get(f"{last}.model"):  # else the same command may pay for it
        folder.end()
    _write(run, folder, progress, _write_statement(run, folder, reports))


def _state_unfinished(
    run: Run, folder: Folder, progress: Progress, paid: Sequence[PrivacyReport],
    error: BaseException,
) -> None:  # fmt: skip
    """Write statement and officer's pages of a run that an `error` ended after a charge.

    A check alone that ended well is left to the next run, which takes and states it.
    """
    failed = getattr(error, "privacy_report_", None)
    if folder.made.protected.get(STATEMENT):  # with all models so far
        paid = [load_statement((folder.path / STATEMENT).read_bytes())]
    elif failed is None:
        return
    whole = _write_statement(run, folder, [*paid, *([] if failed is None else [failed])])
    shows = "no finished results: an error or an interrupt ended the run after it was charged"
    _certify(run, folder, whole, progress.warnings, shows, progress.doubts)


def _prepare(run: Run, path: Path) -> Folder:
    """Open the folder, use what is paid for there, and make models that its budget allows."""
    options = run.options
    # Budget of a new folder; built-in texts are public, so theirs is unlimited.
    first_budget = math.inf if options.file is None else options.epsilon
    folder = Folder(path, first_budget, options.delta, options.budget, options.raise_budget)
    last = take_up(run, folder)
    # Where this run goes on with a stopped one, it does what the sentence advises.
    goes_on = bool(run.used.models) and not last.is_finished
    _lower_epsilon(run, folder, "" if goes_on else last.in_words(path, run.free_option))
    for model in run.models.values():
        check_saving(model)
    return folder


def _lower_epsilon(run: Run, folder: Folder, on_last_run: str) -> None:
    """Lower epsilon to what the budget leaves to the run; BudgetError if that is too little."""
    if run.is_paid:
        return
    goes_on, options = bool(run.used.models) and not run.used.adds, run.options
    try:
        affordable = folder.affordable(run.charge, options.epsilon, options.delta, goes_on=goes_on)
    except BudgetError as error:
        error.args = (_in_context(str(error), run, folder, on_last_run),)
        raise
    options.epsilon = folder.made.epsilon = affordable
    run.build()


def _in_context(refusal: str, run: Run, folder: Folder, on_last_run: str) -> str:
    """Put before a refusal by the budget what this run would add, or the sentence `on_last_run`."""
    if run.used.adds:
        others = (
            f" If {run.file_name} is of other persons, a budget of their own needs Python: "
            "docs/how_to/topics_by_group.md."
        )
        return (
            f"This run would add {run.added} alone to the models of {folder.path}. {refusal}"
            f"{others if run.used.source else ''}"
        )
    return f"{on_last_run}. {refusal}" if on_last_run else refusal


def _apply(run: Run, folder: Folder, progress: Progress) -> None:
    """Apply the models of an earlier run, and write the shares of topics in each text."""
    with progress.step(f"Applying {' and '.join(run.used.models)}"):
        list(run.fit())  # fits no model: all are paid for
        before = set(os.listdir(folder.path))
        name = run.write_document_shares(folder)
    replaced = ", in the place of the former one" if name in before else ""
    print(f"Written: {folder.path / name}{replaced}, and nothing else. It {ABOUT_TEXTS}")


def _spending_so_far(run: Run, folder: Folder | None) -> str:
    """Say what a run that ended early spent, and where its files are."""
    if folder is None or not folder.spent_by_run():
        return "Nothing was spent."
    where = folder.where()
    files = f"\nWhat it found before is in {where}" if where else ""
    kept = [name for name in map("{}.model".format, run.models) if name in folder.made.protected]
    if not kept and run.checked is not None and isinstance(sys.exception(), KeyboardInterrupt):
        kept = ["the check"]
    if kept:
        files += "\nThe same command goes on from there, and does not pay again for "
        files += " and ".join(kept)
    return f"What was charged is spent. {folder.summary()}{files}"


def _show_used(run: Run, path: Path, progress: Progress) -> None:
    """Print what the models in use were learned from, unless from the file as it is now."""
    file, source, models = run.options.file, run.used.source, [*run.used.models]
    adds_to_none = run.added in run.models and not (models or Manifest.of(path).finished)
    if adds_to_none and os.path.lexists(path / LEDGER):
        progress.note(
            f"warning: {path} has no finished run to add {run.added} to: this run begins anew"
        )
    # Another file than that of the models may well be younger.
    if models and not source:
        changed = [changed_since(file, path / f"{models[0]}.model")]
        made = Manifest.of(path).asked
        learned = made["number"] if made["file"] == run.file_name else run.units
        # The number of units is public, and tells of a change where a copy kept the file's time.
        if learned != run.units and not run.number_is_private:
            changed.append(
                f"{run.file_name} had {learned} when {' and '.join(models)} were learned, and has "
                f"{run.units}."
            )
        for said in filter(None, changed):
            progress.note(f"warning: {said}")
    if run.used.applies:
        progress.note(
            f"{' and '.join(run.models)} were learned from {source or run.file_name}: they are "
            f"applied to {run.file_name}, and nothing is learned from it. Other settings do not "
            "count (--again learns all anew)"
        )


def _show_protection(run: Run, path: Path, progress: Progress, *, has_noise: bool) -> None:
    """Print who is protected, what weakens that, and the forecast; ValueError for a large delta."""
    options, unit, column = run.options, run.unit, run.options.person
    # Without noise there is no promise that delta could weaken.
    weak = large_delta(options.delta, run.n_units, unit) if has_noise else ""
    if weak and not options.forecast:
        raise ValueError(f"{weak}. Nothing was spent.")
    with_rows = "" if column is None else f", with all rows of one {column!r}"
    progress.note(f"{run.units}; each {unit} is protected{with_rows}")
    if column is not None and not options.normalise_labels:
        progress.note(EXACTLY)
    if options.file is not None:
        progress.note(on_presence(options.command, is_hidden=run.number_is_private))
    if unit != "person" and options.file is not None:
        progress.note(
            f"warning: whoever is behind several {unit}s is not protected as a person. Name the "
            "column that says whose each is: --person COLUMN"
        )
    if weak:
        progress.warn(weak)
    if not run.is_paid:
        ahead = [*run.check_ahead(), *released_before(run, path)]
        progress.note("\n".join([*run.forecast_lines(), *ahead]))


def _why_stopped(run: Run, folder: Folder) -> str:
    """Say why a run stopped, and which change of one option would allow more, the least first."""

    def stands_out(name: str, number: int) -> bool:
        other = run.changed(None, **{name: number})
        forecast = other.forecast()
        return other.is_likely() and bool(forecast.n_samples >= forecast.n_samples_needed)

    options, changes = run.options, []  # factors, and options changed by them
    least = least_epsilon(
        lambda x: x > options.epsilon and run.changed(None, epsilon=x).is_likely()
    )
    if least and folder.covers(run.charge(least)):
        changes.append((least / options.epsilon, f"--epsilon {least:g}"))
    for name in ("topics", "groups"):
        asked = vars(options)[name] or 0
        for number in dict.fromkeys(math.ceil(asked / 1.25**power) for power in range(1, 25)):
            # One group is no answer.
            if 2 <= number < asked and stands_out(name, number):
                changes.append((asked / number, f"--{name} {number}"))
                break
    ways = [option for _, option in sorted(changes)]
    if n := least_number(lambda n: run.changed(n).is_likely()):
        ways.append(f"{rounded_up(n)} {run.unit}s")
    ways += run.ways_by_guess()
    # Where no number of units would be enough, they are not what is short.
    short = f"{run.verdict()} {run.unit}s" if n else f"too many {run.noun}s"
    rows = ""
    if run.checked is not None and run.checked.length is not None and not run.used.adds:
        short += f" of about {run.checked.length:.3g} words (between blanks or signs)"
        rows = " Empty texts and codes such as 'n/a' count as short ones: leave out their rows."
    return (
        f"{short} for this, so it stopped.{rows} More can be expected with "
        f"{' or '.join(ways) or 'other data'}."
    )


def _check_rows(run: Run, folder: Folder, progress: Progress) -> list[PrivacyReport]:
    """Check what rows can be used, which is charged; return the reports on all charges so far.

    Runs that go on with the models of an earlier one rely on its check.
    """
    reports = []
    if run.used.models:  # the statement of that run includes its check
        reports = [load_statement((folder.path / STATEMENT).read_bytes())]
        if folder.made.names or not run.used.adds:
            return reports
    run.check(folder)
    if run.checked is None:
        return reports
    progress.note(str(run.checked))
    _refuse_few(run, folder)  # by what it has released, too
    if any(str(run.checked) in report.notes for report in reports):  # it was kept by that run
        return reports
    return [*reports, run.checked.privacy_report_]


def _refuse_few(run: Run, folder: Folder) -> None:
    """Raise NotEnoughDataError if few rows match, or too few for what is asked for."""
    if not run.options.no_check and (unfit := run.refusal()):
        consent = "--no-check"
        unfit += " Once that is mended, the same command takes what is left."
        # Where most rows fail, columns may be exchanged.
        if run.options.person and run.checked is not None and run.checked.mostly_fails:
            unfit += (
                f" Persons by another column than {run.options.person} need a new --output, where "
                "nobody counts what this folder spent: it adds up for the same people."
            )
    elif run.options.anyway:
        return
    elif unfit := _why_stopped(run, folder) if run.too_few() else run.why_not():
        consent = "--anyway"
    else:
        return
    spent = "Nothing was spent"
    if run.checked is not None:
        consent += ", which does not pay again for the check"
        if folder.spent_by_run():
            price, epsilon = run.price_of_check(), run.options.epsilon
            spent = (
                f"{FOR_CHECK}, which takes {price:.2g} of epsilon {epsilon:.4g} (its own epsilon "
                "is larger: epsilons of runs add up to less than their sum)"
            )
    raise NotEnoughDataError(f"{unfit} {spent}. To go on all the same: {consent}")


def _write_statement(run: Run, folder: Folder, reports: Sequence[PrivacyReport]) -> PrivacyReport:
    """Write the statement of this run, and of the run whose models it uses, so far; return it."""
    steps = [replace(report, unit=run.unit) for report in reports]
    paid = [report for report in steps if report.epsilon] or steps
    whole = reduce(lambda one, later: one.followed_by(later, run.options.delta), paid)
    folder.add_text(STATEMENT, whole.to_json() + "\n")
    return whole


def _write(run: Run, folder: Folder, progress: Progress, report: PrivacyReport) -> None:
    """Write tables, pages and a picture; then show what was found."""
    most = folder.left(run.charge, LARGEST_ADVISED) if folder.is_limited() else LARGEST_ADVISED
    doubts = run.doubts(most)
    shows = run.for_officer()
    of_results = [one for one in [*progress.doubts, doubts] if one and one not in shows]
    warnings = [*progress.warnings, *of_results]
    try:
        figure = run.write_and_draw(folder, report, warnings)
        folder.add(f"{run.options.command}.svg", lambda file: save_svg(figure, file))
    except ImportError:  # by the figure, which comes after all tables
        progress.note("No picture: it needs matplotlib (pip install matplotlib)")
    _certify(run, folder, report, progress.warnings, shows, of_results)
    folder.finish()
    promise = f"Each {run.unit} is protected by differential privacy: {report.in_brief}."
    if report.in_brief == "not private":
        promise = f"{report.guarantee}: nothing is protected."
    elif report.epsilon > LARGEST_ADVISED:
        promise += f" {LITTLE_PROMISED}"
    print("\n".join(["", *run.lines(), "", promise, folder.summary()]), flush=True)
    if doubts:
        progress.note(f"warning: {doubts}")
    print(f"Written to {folder.where()}")
    if folder.earlier is not None:
        print(f"What an earlier run found is in {folder.earlier}")
    if folder.made.private:
        print(f"{', '.join(folder.made.private)} {ABOUT_TEXTS}")


def _certify(
    run: Run, folder: Folder, report: PrivacyReport, warnings: Sequence[str], shows: str,
    doubts: Sequence[str],
) -> None:  # fmt: skip
    """Write the pages for the officer.

    They certify the files of this run by their names, and say what it `shows`, and what `doubts`
    there are of that; `warnings` are of protection.
    """
    now = time_now()
    settings = {
        "date": now, "version": f"sktensor_dp {__version__}",
        "command": f"sktensor-dp {run.options.command}", **run.settings(),
    }  # fmt: skip
    said = {SHOWS: shows, DOUBTS: " ".join(doubts)}
    settings |= {name: one for name, one in said.items() if one}
    folder.made.warnings, folder.made.doubts = [*warnings], [*doubts]
    # A run that uses models of an earlier one states its own epsilon, and that of both.
    of_own = f"{settings['epsilon']}, and " if COUNTED in settings else ""
    of_other = f" with {settings[COUNTED]}" if COUNTED in settings else ""
    settings["epsilon"] = f"{of_own}{report.epsilon:.4g}{of_other}"
    names = ", ".join(dict.fromkeys([*folder.made.protected, *PAGES]))
    source = (
        f"Each of these files ({MANIFEST} has the SHA-256 of each, which sktensor-dp report check "
        f"FOLDER compares), and no other: {names},"
    )
    if folder.made.private:
        kept = ", ".join(folder.made.private)
        source += f" but not {kept} (raw data, which must stay with the texts),"
    others = on_all_runs(folder.ledger, folder.path, folder.summary(), now)
    text = officer_text(settings, report, source, others, warnings)
    write_officer_pages(folder.add_text, text)
