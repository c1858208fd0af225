"""The last run of a folder: what it paid for, what a new run uses of it, and if that may pay."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from sktensor_dp.checks.display import plain
from sktensor_dp.cli.folder import Folder, earlier_runs, runs_with
from sktensor_dp.cli.manifest import Manifest
from sktensor_dp.cli.run import Run, Used
from sktensor_dp.exceptions import BudgetError

# Settings, in words, that a run takes from another one whose models it uses: the run that they
# were counted with, and the file that they were learned from, where a last step is added to them.
COUNTED = "counted with it"
LEARNED = "models learned from"
FIRST_EPSILON = "epsilon of that run"
INHERITED = ("checked first", "words per text", COUNTED, FIRST_EPSILON, LEARNED)
DIGESTS = ("lists", "values")  # settings that are digests of public lists
# Settings that say which rows are read, and how. They may differ where a last model is added.
OF_ROWS = {
    "file", "text", "person", "persons", "number", "delimiter", "quoting", "encoding",
    "normalise_labels",
}  # fmt: skip


@dataclass(frozen=True)
class LastRun:
    """State of a folder after its last run, which decides whether a new run may pay.

    ========= ================= ==============================================================
    last run  settings that     a run that is asked for now
              changed
    ========= ================= ==============================================================
    none                        pays for all (`paid` is empty)
    stopped   none              goes on, and pays for the rest
    stopped   some              is refused: what was paid for would be lost
    finished  any               writes the file of `Run.free_option` at no cost, if asked to
    finished  none              is refused; if the last run left its added step out, as noise
                                would have hidden the result, pays for that step
    finished  some              pays for all; if the number of topics alone changed, or epsilon to a
                                smaller one beside it, for all but the words
    finished  of the added step pays for the added step (shares by --by) with all of its epsilon.
              (--by ...) or of  Settings of other steps that are not given are those of the
              rows (FILE ...)   last run
    finished  of the added step is refused
              and of others
    ========= ================= ==============================================================

    Attributes
    ----------
    paid : sequence of str
        Names of the models that it paid for.
    is_finished : bool
        True if it wrote all its files.
    differs : sequence of str
        Settings, in words, that the last run had and that have changed.
    first : sequence of str
        Names of its models that do not depend on those, if it is finished.
    adds : bool
        True if it is finished, and a last model that it did not make, or made with other settings,
        can be added to its others.
    hinders : sequence of str
        Those of `differs` that prevent that.
    """

    paid: Sequence[str] = ()
    is_finished: bool = False
    differs: Sequence[str] = ()
    first: Sequence[str] = ()
    adds: bool = False
    hinders: Sequence[str] = ()

    @classmethod
    def compared(cls, run: Run, asked: Mapping[str, str], made: Manifest) -> "LastRun":
        """Compare the run that `made` lists with a `run` of the settings `asked`."""
        names, is_finished = [*run.models], made.finished
        paid = [name for name in names if made.protected.get(f"{name}.model")]
        if not paid:  # else there is a statement, which is written before a model
            return cls()
        # All models but the first of several depend on how many topics or groups are asked for.
        independent = [name for name in names[:1] if len(names) > 1]
        number_counts = not {*paid} <= {*independent}
        others = _changed_settings(run, asked, made, number_counts=number_counts)
        # Words of an epsilon as large are as good as new ones, and paid for: they are kept if only
        # the number of topics changed, or epsilon beside it.
        are_as_good = run.options.epsilon <= _first_epsilon(made)
        keeps_words = {run.option} <= {*others} <= {run.option, "epsilon"} and are_as_good
        is_added = any(name in asked for name in run.added_settings)
        may_add = is_finished and is_added and not keeps_words
        of_rest = [one for one in others if one not in {*run.added_settings, *OF_ROWS, "epsilon"}]
        hinders = _settings_in_words(of_rest, made) if may_add else []
        adds = may_add and not hinders and (bool(others) or run.added not in paid)
        first = names[:-1] if adds else []
        if is_finished and keeps_words:
            first = [name for name in paid if name in independent]
        return cls(paid, is_finished, _settings_in_words(others, made), first, adds, hinders)

    def usable(self, *, again: bool) -> Sequence[str]:
        """Models that a run uses without paying.

        They are those of a run that stopped, to go on from there; or those of a finished run, of
        which a run with other settings, not `again`, learns more.
        """
        if self.differs or self.adds:
            return () if again else self.first
        return () if self.is_finished else self.paid

    def is_in_the_way(self) -> bool:
        """Return True if a run that pays would pay again for what there is, or lose it."""
        # Other settings lose what a stopped run paid for; the same pay for a finished one again.
        pays_wrongly = not self.is_finished if self.differs else self.is_finished
        return bool(self.paid) and pays_wrongly and not self.adds

    def in_words(self, path: object, free_option: str) -> str:
        """Sentence on what is in the folder, and what costs nothing: also the `free_option`."""
        if not self.paid:
            return ""
        settings = ", ".join(self.differs)
        if not self.is_finished:
            paid = " and ".join(f"{name}.model" for name in self.paid)
            return (
                f"A run that stopped in {path} has paid for {paid}; with its settings ({settings}) "
                "the command goes on from there, and does not pay again"
            )
        said = f"This run is finished: its results are in {path}"
        if self.differs:
            said = f"The run in {path} is finished, with other settings ({settings})"
        return f"{said}; --{free_option} by it costs nothing" if free_option else said


def take_up(run: Run, folder: Folder) -> LastRun:
    """Use what the last run paid for; BudgetError if this one would pay for the same again."""
    path, options, again = folder.path, run.options, run.options.again
    made = Manifest.of(path)

    @cache
    def load(name: str) -> Any:
        """Model of the folder."""
        return run.models[name].load(path / f"{name}.model")

    if not again and _can_be_added_to(run, made):
        run.take_settings(made.asked, {name: load(name) for name in run.added_to})
        run.build()
    settings = run.asked_settings()
    last = LastRun.compared(run, settings, made)
    if not again:
        run.take_check(folder, settings)
    is_free = last.is_finished and vars(options).get(run.free_option)
    if is_free and not (again and last.differs):  # the file of a free option, by what is there
        models = {name: load(name) for name in last.paid if name in run.added_to}
        run.use(Used(models, _source(run, made), applies=True))
        folder.made = made
        return last
    if last.hinders and not again:
        raise BudgetError(
            f"{run.added.capitalize()} would be added to the {' and '.join(run.added_to)} of the "
            f"finished run in {path}, which has other settings ({', '.join(last.hinders)}): take "
            "those, or learn all anew with --again. Nothing was spent."
        )
    folder.made.asked = settings
    if usable := last.usable(again=again):
        _use(run, folder, made, last, {name: load(name) for name in usable})
    # Built-in texts are public, and without noise nothing is kept from anybody.
    protects = folder.is_limited() or (options.file is not None and math.isfinite(options.epsilon))
    # A run that goes on from a stopped one pays for nothing again; one that learns more may.
    pays_for_more = bool(last.first) or not usable
    if protects and pays_for_more and not again:
        _refuse_to_pay_again(run, path, settings, last)
    return last


def _use(run: Run, folder: Folder, made: Manifest, last: LastRun, models: dict[str, Any]) -> None:
    """Use models of the last run; list its files as those of this one if that goes on with it."""
    source, stated = _source(run, made), _stated(made, last, [*models])
    # A last model is added now, or by the stopped run that this one goes on with.
    adds = last.adds or (not last.first and LEARNED in made.asked)
    if adds:
        stated[LEARNED] = source or run.file_name
    if not (last.adds or last.first):  # goes on with the epsilon that it began with
        run.options.epsilon = made.epsilon
    run.use(Used(models, source, stated, adds=adds))
    # Other files of a finished run are moved away before the first of this one is written.
    files = Manifest() if last.first else made
    folder.made = replace(files, asked=folder.made.asked | stated, epsilon=run.options.epsilon)


def _stated(made: Manifest, last: LastRun, used: Sequence[str]) -> dict[str, str]:
    """Settings of the `last` run that one which uses its models of names `used` has to state."""
    stated = {one: made.asked[one] for one in INHERITED if one in made.asked and one != LEARNED}
    if last.first:  # a finished run, of which this one uses the first models
        stated[COUNTED] = f"the run whose {' and '.join(used)} it uses"
        stated[FIRST_EPSILON] = plain(_first_epsilon(made))
    if last.adds:
        stated.pop("checked first", None)  # this run has a check of its own
    return stated


def _first_epsilon(made: Manifest) -> float:
    """Epsilon of the run that learned the first model: of `made`, or of one before."""
    return float(made.asked.get(FIRST_EPSILON, made.asked["epsilon"]))


def _refuse_to_pay_again(run: Run, path: Path, asked: Mapping[str, str], last: LastRun) -> None:
    """Raise BudgetError if the last run, or an earlier one, paid for what is asked for."""
    runs = [(path, last, run.free_option)] if last.is_in_the_way() else []
    for earlier in earlier_runs(path):
        before = LastRun.compared(run, asked, Manifest.of(earlier))
        if before.is_finished and not before.differs and not before.adds:
            runs.append((earlier, before, ""))
    if runs:
        where, before, free_option = runs[0]
        changed = changed_since(run.options.file, where / f"{before.paid[0]}.model")
        advice = "To pay for all again: --again. Nothing was spent."
        said = [f"{before.in_words(where, free_option)}.", changed, advice]
        raise BudgetError(" ".join(filter(None, said)))


def changed_since(file: Path | None, model: Path) -> str:
    """Sentence that a file of data is younger than a model of it; "" if it is not."""
    # No digest of the data is kept: whoever has the folder could compare guesses with it.
    if file is None or file.stat().st_mtime <= model.stat().st_mtime:
        return ""
    return f"{file} was changed since {model.name} was learned, which is of its former rows."


def released_before(run: Run, path: Path) -> list[str]:
    """Warning, if any, that runs added the same to these models before, of this file or others."""
    if not run.used.adds:
        return []
    asked, kept = run.asked_settings(), [f"{name}.model" for name in run.added_to]
    files = [
        f"{made.asked['file']} ({where})"
        for where, made in runs_with(path, kept)
        if made.protected.get(f"{run.added}.model")
        and all(made.asked.get(name) == asked.get(name) for name in run.added_settings)
    ]  # fmt: skip
    said = (
        f"warning: {run.added} by the same column and values were released of "
        f"{' and '.join(files)}: if {run.file_name} holds the same rows, this pays for them again"
    )
    return [said] if files else []


def _can_be_added_to(run: Run, made: Manifest) -> bool:
    """Return True if a last model can be added to those of `made`, or if this was begun before."""
    # Once it was begun, the manifest says from which file the other models were learned.
    is_added_to = made.finished or LEARNED in made.asked
    has_all = all(made.protected.get(f"{name}.model") for name in run.added_to)
    return run.added in run.models and is_added_to and has_all


def _source(run: Run, made: Manifest) -> str:
    """Name of the file that models of `made` were learned from; "" if it is that of the run."""
    source = made.asked.get(LEARNED, made.asked["file"])
    return source if source != run.file_name else ""


def _changed_settings(
    run: Run, asked: Mapping[str, str], made: Manifest, *, number_counts: bool
) -> list[str]:
    """Names of changed settings on which something depends that is paid for.

    The number of topics or groups is one of them if `number_counts`.
    """
    ignored = {*INHERITED} if number_counts else {*INHERITED, run.option}
    if not any(name in asked for name in run.added_settings):
        ignored |= {*run.added_settings}
    elif made.finished and any(name in made.asked for name in run.added_settings):
        ignored |= {"epsilon"}  # a change of it alone would pay for the same step again
    names = [name for name in {**made.asked, **asked} if name not in ignored]
    return [name for name in names if made.asked.get(name) != asked.get(name)]


def _settings_in_words(names: Sequence[str], made: Manifest) -> list[str]:
    """Settings of these names as a run had them; if all are lists, a sentence that lists differ."""
    told = [
        f"{name.replace('_', ' ')}: {made.asked.get(name, 'not given')}"
        for name in names
        if name not in DIGESTS
    ]
    return told if told or not names else ["public lists: of other contents"]
