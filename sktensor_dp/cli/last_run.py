"""State of a folder after its last run: what is paid for, and whether a new run may pay."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sktensor_dp.cli.manifest import Manifest
from sktensor_dp.cli.officer import PAGES

STATEMENT = "statement.json"
# Settings, in words, that a run which uses models of another takes from it.
COUNTED = "counted with it"
LEARNED = "models learned from"  # file, where a run adds but the last step to them
OF_PAYER = ("checked first", "words per text", COUNTED, LEARNED)
DIGESTS = ("lists", "values")  # settings that are digests of public lists
# Settings that say which rows are read, and how: a model can be added of those of other files.
OF_ROWS = {
    "file", "text", "person", "persons", "number", "delimiter", "quoting", "encoding",
    "normalise_labels", "no_check",
}  # fmt: skip


@dataclass(frozen=True)
class LastRun:
    """State of a folder after its last run, which decides whether a new run may pay.

    ======== ============== ==================================================================
    it is    settings       a run that is asked for now
    ======== ============== ==================================================================
    new                     pays for all (`paid` is empty)
    stopped  the same       goes on, and pays for the rest
    stopped  others         is refused: what was paid for would be lost
    finished any            makes a file that costs nothing, if it asks for it: what was paid for
                            suffices, and no setting counts but which rows are read
    finished the same       is refused
    finished others         pays for all, or for all but the first model if that does not depend
                            on them
    finished of an added    pays for the step that the settings are of, as of --by, with all of
             step, and rows its epsilon, which may be another, but is no other setting where there
                            is such a step. Settings of the other steps that are not given are
                            those of the folder
    finished of both        is refused
    ======== ============== ==================================================================

    Attributes
    ----------
    paid : sequence of str
        Names of the models that it paid for.
    is_finished : bool
        True if it wrote all its files.
    differs : sequence of str
        Those of its settings, in words, that are others now.
    first : sequence of str
        Names of the models of a finished run that do not depend on those.
    adds : bool
        True if it is finished, and the last model that is asked for can be added to its others.
    hinders : sequence of str
        Those of `differs` for which a last model that is asked for cannot.
    """

    paid: Sequence[str] = ()
    is_finished: bool = False
    differs: Sequence[str] = ()
    first: Sequence[str] = ()
    adds: bool = False
    hinders: Sequence[str] = ()

    @classmethod
    def left(
        cls,
        made: Manifest,
        asked: Mapping[str, str],
        models: Sequence[str],
        of_last: str,
        of_added: Collection[str],
    ) -> "LastRun":
        """Compare the run that `made` lists with one of these `models` and settings.

        On the setting `of_last` all models but the first of several depend; on those `of_added`
        one alone that this run adds to others, or leaves out.
        """
        paid = [name for name in models if made.protected.get(f"{name}.model")]
        if not paid:  # else there is a statement, which is written before a model
            return cls()
        # A setting may differ if no model that was paid for depends on it: all models but the first
        # depend on `of_last`.
        dependent = models[1:] or models
        ignored = OF_PAYER if {*dependent} & {*paid} else (*OF_PAYER, of_last)
        asks_for_added = any(name in asked for name in of_added)
        if not asks_for_added:
            ignored = (*ignored, *of_added)
        is_finished = bool(made.protected.get(PAGES[-1]))
        may_add = is_finished and asks_for_added
        if may_add and any(name in made.asked for name in of_added):
            ignored = (*ignored, "epsilon")  # another one alone pays for the same step again
        names = [name for name in {**made.asked, **asked} if name not in ignored]
        others = [name for name in names if made.asked.get(name) != asked.get(name)]
        hinders: list[str] = []
        if may_add:
            of_rest = [name for name in others if name not in {*of_added, *OF_ROWS, "epsilon"}]
            hinders = _in_words(of_rest, made)
        adds = may_add and bool(others) and not hinders
        first: list[str] = []
        if adds:
            first = [*models[:-1]]
        elif is_finished and others == [of_last]:
            first = [name for name in paid if name not in dependent]
        return cls(paid, is_finished, _in_words(others, made), first, adds, hinders)

    def usable(self, *, again: bool) -> Sequence[str]:
        """Models that a run uses without paying: those of a run that stopped, to go on from there;
        or those of a finished run of which a run with other settings, not `again`, learns more.
        """
        if self.differs:
            return () if again else self.first
        return () if self.is_finished else self.paid

    def is_in_the_way(self) -> bool:
        """Return True if a run that pays would pay again for what there is, or lose it."""
        # Other settings lose what a stopped run paid for; the same pay for a finished one again.
        pays_wrongly = not self.is_finished if self.differs else self.is_finished
        return bool(self.paid) and pays_wrongly

    def told(self, path: object, free: str) -> str:
        """Sentence on what is in the folder, and what costs nothing: also the option `free`."""
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
        return f"{said}; --{free} by it costs nothing" if free else said


def can_be_added_to(made: Manifest, models: Sequence[str]) -> bool:
    """Return True if the last of the models can be added to a run's others, or was begun to be."""
    is_added_to = made.protected.get(PAGES[-1]) or LEARNED in made.asked
    return bool(is_added_to) and all(made.protected.get(f"{one}.model") for one in models[:-1])


def _in_words(names: Sequence[str], made: Manifest) -> list[str]:
    """Settings of these names as a run had them; that a public list differs if nothing else."""
    told = [
        f"{name.replace('_', ' ')}: {made.asked.get(name, 'not given')}"
        for name in names
        if name not in DIGESTS
    ]
    return told if told or not names else ["public lists: of other contents"]
