"""The properties hold in a process that was spawned, in workers of Dask, and for the command."""

import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import dask
import numpy as np
import pytest
from cases import EXACT, Case, cases, observed, plain
from commands import SMALL, write_posts

from sktensor_dp import (
    BudgetAccountant,
    BudgetError,
    PrivacyLeakWarning,
    PrivateCountVectorizer,
    PrivateSpectralLDA,
    unsafe_recorded_releases,
    unsafe_seeded_noise,
)
from sktensor_dp.cli import main
from sktensor_dp.cli.folder import LEDGER

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def there(case: Case) -> dict:
    """What a fit in this process shows, and what a refused one and a recording one say."""
    data, model, said = case.draw(), case.build(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with unsafe_seeded_noise(0):
            case.fit(model, data)
        before, paid = model.privacy_report_, len(model.accountant.entries)
        small = BudgetAccountant(1e-3, 1e-9)
        try:
            case.fit(model.set_params(accountant=small), data)
        except BudgetError as error:
            said.append(str(error))
        assert model.privacy_report_ is before
        try:
            with unsafe_recorded_releases():
                pass
        except RuntimeError as error:
            said.append(str(error))
    shown = {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    return {"shown": shown, "said": said, "paid": paid, "unpaid": len(small.entries)}


SPAWNED = [plain("topics", payer="file"), plain("CP, persons", payer="file")]


def _agrees(case: Case, found: dict) -> None:
    known, _ = observed(case, case.draw())
    for name, value in found["shown"].items():
        np.testing.assert_array_equal(value, getattr(known, name))
    assert found["paid"] == len(known.accountant.entries) > 0
    assert found["unpaid"] == 0
    charge, recording = found["said"]
    assert "othing was charged" in charge
    assert "worker process" in recording


@pytest.fixture(scope="module")
def pool():
    """One spawned process: to import the library takes it longer than all fits."""
    with ProcessPoolExecutor(1, get_context("spawn")) as found:
        yield found


@pytest.mark.parametrize("case", SPAWNED, ids=lambda case: case.name)
def test_spawned_processes(case, pool):
    _agrees(case, pool.submit(there, case).result())


@pytest.mark.nightly
@pytest.mark.parametrize("family", ["counts", "samples", "entries", "slices"])
def test_spawned_processes_in_pairs(family, pool):
    for case in cases(family, ("payer",)):
        if case["payer"] == "file" and case.model not in EXACT:
            _agrees(case, pool.submit(there, case).result())


def test_workers_of_dask(pool):
    """The same releases from partitions that other processes sum, and no exact value there."""
    case = plain("topics", container="dask array")
    data = case.draw()
    X = case.given(data)[0]
    known, expected = observed(case, data)
    with (
        dask.config.set(scheduler="processes", pool=pool),
        pytest.warns(PrivacyLeakWarning),
        unsafe_recorded_releases() as releases,
        unsafe_seeded_noise(0),
    ):
        found = case.build().fit(X)
    for one, other in zip(releases, expected, strict=True):
        assert np.abs(one.exact - other.exact).max() <= 1e-9 * one.sensitivity
    np.testing.assert_array_equal(found.components_, known.components_)


POSTS = ("topics", "posts.csv", "--text", "post", *SMALL)
COMMANDS = {
    "topics": POSTS,
    "topics of public words": (*POSTS, "--vocabulary", "known.csv"),
    "groups": ("groups", "people.csv", "--range", "age", 0, 99, "--category", "side", "north",
               "south", "--groups", 1, "--anyway"),
}  # fmt: skip
# Of words that are public, and not in the order of the alphabet.
KNOWN = {**{f"omega{i}": 40 - i for i in range(20)}, **{f"alpha{i}": 20 - i for i in range(20)}}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command(name, tmp_path, monkeypatch, capsys):
    """Persons are charged for as was said, inputs stay, and a refused run adds nothing."""
    monkeypatch.chdir(tmp_path)
    write_posts(tmp_path / "posts.csv", 1200, 600)
    listed = "\n".join(f"{word},{count}" for word, count in KNOWN.items())
    (tmp_path / "known.csv").write_text(f"word,count\n{listed}")
    people = "\n".join(
        f"author{i // 2},{i % 90},{'north' if i % 3 else 'south'}" for i in range(900)
    )
    (tmp_path / "people.csv").write_text(f"author,age,side\n{people}")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    given = [*COMMANDS[name], "--person", "author", "--epsilon", 2, "--budget", 2.5]
    folder, statuses, spent = tmp_path / f"private-{given[0]}", [], []
    for _ in range(2):
        statuses.append(main([str(argument) for argument in given]))
        capsys.readouterr()
        ledger = BudgetAccountant(path=folder / LEDGER)
        assert {entry.unit for entry in ledger.entries} == {"person: author"}
        spent.append((len(ledger.entries), ledger.total()[0]))
    assert statuses == [0, 2]
    assert spent[0] == spent[1]
    assert spent[0][1] == pytest.approx(2, rel=1e-3)
    assert {file: file.read_bytes() for file in before} == before
    if name == "topics of public words":
        words = PrivateCountVectorizer.load(folder / "words.model").get_feature_names_out()
        topics = PrivateSpectralLDA.load(folder / "topics.model")
        joined = dict(zip(words, topics.word_frequencies, strict=True))
        assert max(joined, key=joined.get) == next(iter(KNOWN))
        assert sorted(joined, key=joined.get) == sorted(KNOWN, key=KNOWN.get)
