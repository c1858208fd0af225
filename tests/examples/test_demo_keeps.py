"""What a run of the demo cost is never lost, and never more than was allowed."""

import csv
import warnings

import pytest
from demo_fakes import folder_of, run

import sktensor_dp
from sktensor_dp.privacy.accountant import LedgerEntry
from sktensor_dp.privacy.calibration import gaussian_mu
from sktensor_dp.privacy.plan import PrivacyCost


@pytest.mark.usefixtures("fakes")
def test_what_was_paid_for_is_kept_even_if_drawing_fails(demo, texts, tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("no ink")

    monkeypatch.setattr(demo, "draw", fail)
    assert run(demo, tmp_path, "--input", texts, "--text", "review") == 2
    files = folder_of(tmp_path)
    assert files["topics.model"].read_bytes() == b"the topics"
    assert files["words.model"].read_bytes() == b"the word list"


@pytest.mark.usefixtures("fakes")
def test_later_runs_keep_what_earlier_ones_paid_for(demo, texts, tmp_path, capsys):
    for number in range(3):
        assert (
            run(demo, tmp_path, "--input", texts, "--text", "review", "--topics", 1 + number) == 0
        )
    out = tmp_path / "out"
    for number, folder in enumerate((out / "earlier-1", out / "earlier-2", out)):
        with (folder / "topic_words.csv").open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        assert head == ["word", "all_texts", *(f"topic_{i}" for i in range(1, number + 2))]
        assert len(rows) == 12
        # Six significant digits are written.
        assert sum(float(row[2]) for row in rows) == pytest.approx(1, abs=1e-5)
        assert (folder / "topics.model").exists()


@pytest.mark.usefixtures("fakes")
def test_shares_of_documents_are_written_on_request_alone(demo, texts, tmp_path, capsys):
    arguments = ["--input", texts, "--text", "review"]
    run(demo, tmp_path, *arguments)
    assert not any("shares" in name for name in folder_of(tmp_path))
    run(demo, tmp_path, *arguments, "--shares")
    with folder_of(tmp_path)["PRIVATE-document-shares.csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 50
    assert [rows[0][f"topic_{i}"] for i in (1, 2, 3)] == ["0.500000", "0.333333", "0.166667"]
    assert "no noise protects it" in capsys.readouterr().out


def test_a_forecast_is_shown_first_and_costs_nothing(demo, fakes, texts, tmp_path, capsys):
    arguments = ["--input", texts, "--text", "review"]
    assert run(demo, tmp_path, *arguments) == 0
    err = capsys.readouterr().err
    assert err.index("a forecast of 50 by 2000") < err.index("[2/4]")
    fakes.counts.fit = lambda *_: pytest.fail("data was used")
    before = sktensor_dp.BudgetAccountant(path=tmp_path / "out" / "budget.sqlite", scope="texts")
    spent = before.total()
    assert run(demo, tmp_path, *arguments, "--forecast") == 0
    assert before.total() == spent
    assert "nothing was spent" in capsys.readouterr().out


@pytest.fixture
def charged(fakes):
    """Let the fakes charge what the real steps would, at these parameters."""

    def charge(step, reserved):
        mu = gaussian_mu(step.epsilon, step.delta - reserved)
        step.accountant.charge([LedgerEntry("Step", "all", 1, PrivacyCost(mu, 0.0, reserved))])

    def patched(fit, share):
        def with_charge(self, X, y=None):
            charge(self, self.delta * share)
            # Its own charge, of another size, goes to another budget.
            accountant, self.accountant = self.accountant, sktensor_dp.BudgetAccountant()
            fit(self, X)
            self.accountant = accountant
            return self

        return with_charge

    fakes.counts.fit = patched(fakes.counts.fit, 0.5)
    fakes.topics.fit = patched(fakes.topics.fit, 0.0)


@pytest.mark.usefixtures("charged")
def test_runs_add_up_and_are_refused_beyond_their_budget(demo, texts, tmp_path, capsys):
    arguments = ["--input", texts, "--text", "review", "--epsilon", 2]
    # Two runs at (2, 1e-6) compose to (2.94, 1e-6), a third to (3.71, 1e-6).
    assert run(demo, tmp_path, *arguments, "--budget", 3) == 0
    assert "All runs of this folder: epsilon = 2 at delta = 1e-06 of a budget of 3" in (
        capsys.readouterr().out
    )
    assert run(demo, tmp_path, *arguments) == 0
    out = capsys.readouterr().out
    assert "Total: epsilon = 2 at delta = 1e-06" in out
    assert "All runs of this folder: epsilon = 2.94" in out
    texts.unlink()  # nor are texts looked for
    for more in ([], ["--budget", 3]):
        assert run(demo, tmp_path, *arguments, *more) == 2
        err = capsys.readouterr().err
        assert "would bring the runs of this folder to 3.71" in err
        assert "Nothing was read or charged" in err
    assert run(demo, tmp_path, *arguments, "--budget", 4) == 2
    assert "a budget is set once" in capsys.readouterr().err


@pytest.mark.usefixtures("charged")
def test_a_budget_named_later_counts_earlier_runs(demo, texts, tmp_path, capsys):
    arguments = ["--input", texts, "--text", "review", "--epsilon", 2]
    assert run(demo, tmp_path, *arguments) == 0
    assert "no BUDGET is set" in capsys.readouterr().out
    assert run(demo, tmp_path, *arguments, "--budget", 2.5) == 2
    assert "their budget is 2.5, of which 2 is spent" in capsys.readouterr().err
    assert run(demo, tmp_path, *arguments, "--budget", 3) == 0


@pytest.mark.usefixtures("charged")
def test_many_runs_are_stated_at_the_delta_they_need(demo, texts, tmp_path, capsys):
    for _ in range(11):
        assert run(demo, tmp_path, "--input", texts, "--text", "review", "--epsilon", 0.1) == 0
    out = capsys.readouterr().out
    assert "at delta = 2.1e-06; no BUDGET is set" in out


@pytest.mark.filterwarnings("default:too few")
@pytest.mark.filterwarnings("default:what numpy says")
def test_the_page_shows_what_the_fit_warned_of_from_releases(demo, fakes, texts, tmp_path):
    def fit(self, X, y=None, fit=fakes.topics.fit):
        warnings.warn("too few <documents>", sktensor_dp.NotEnoughDataWarning, stacklevel=2)
        warnings.warn("what numpy says of rows", RuntimeWarning, stacklevel=2)
        return fit(self, X)

    fakes.topics.fit = fit
    assert run(demo, tmp_path, "--input", texts, "--text", "review", "--delta", 0.03) == 0
    page = folder_of(tmp_path)["topics.html"].read_text(encoding="utf-8")
    assert "<h2>Warnings</h2>" in page
    assert "too few &lt;documents&gt;" in page
    assert "is above 1/n = 0.02" in page
    assert "numpy says" not in page


def test_a_topic_below_its_noise_is_marked(demo, fakes, texts, tmp_path, capsys):
    def fit(self, X, y=None, fit=fakes.topics.fit):
        fit(self, X)
        self.unigram_ = 0.999 * self.components_[1] + 0.001 * self.components_[0]
        return self

    fakes.topics.fit = fit
    assert run(demo, tmp_path, "--input", texts, "--text", "review") == 0
    out = capsys.readouterr().out
    assert "    2* 33.3%" in out
    assert out.count("%  word") == 3
    assert "* below its noise" in out
    page = folder_of(tmp_path)["topics.html"].read_text(encoding="utf-8")
    assert page.count("Below its noise: too little") == 1
