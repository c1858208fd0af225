"""What `make papers` runs: scripts two at a time, verdicts by the numbers, tables in pages."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is optional")

ROOT = Path(__file__).parents[2]
SCRIPTS, PAPERS = ROOT / "papers", ROOT / "docs" / "papers"


@pytest.fixture
def papers(script, tmp_path, monkeypatch):
    """The runner, with scripts of its own to run: their names and what they do."""
    papers = script("redraw")
    monkeypatch.setattr(papers, "HERE", tmp_path)

    def write(**bodies):
        for name, body in bodies.items():
            (tmp_path / f"{name}.py").write_text("import os, sys, pathlib\n" + body)
        return list(bodies)

    papers.write = write
    return papers


def test_all_scripts_run_with_their_arguments(papers, tmp_path, capfd):
    say = "pathlib.Path({!r}, 'said').write_text(' '.join(sys.argv[1:]) + os.environ['{}'])"
    scripts = papers.write(
        first=say.format(str(tmp_path), "OPENBLAS_NUM_THREADS"), second="print('quiet')"
    )
    out = tmp_path / "out"
    assert papers.main(["--quick", "--out", str(out)], scripts) == 0
    assert (tmp_path / "said").read_text() == f"--out {out} --quick1"
    shown = capfd.readouterr()
    assert set(re.findall(r"(\w+): done", shown.err)) == {"first", "second"}
    assert "quiet" not in shown.out + shown.err


def test_a_script_that_fails_is_shown_and_the_others_run(papers, tmp_path, capfd):
    scripts = papers.write(
        broken="print('so far'); raise ValueError('no such number')",
        after=f"pathlib.Path({str(tmp_path)!r}, 'ran').touch()",
    )
    arguments = ["--quick", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert papers.main(arguments, scripts) == 1
    shown = capfd.readouterr().err
    assert "broken: FAILED" in shown
    assert "  so far" in shown
    assert "ValueError: no such number" in shown
    assert shown.rstrip().endswith("FAILED: broken")
    assert (tmp_path / "ran").exists()


def test_folder_of_ratings_reaches_the_one_script_that_reads_it(papers, tmp_path, capfd):
    say = f"pathlib.Path({str(tmp_path)!r}, sys.argv[0] + '.said').write_text(str(sys.argv))"
    scripts = papers.write(figure_wei=say, other=say)
    ratings = tmp_path / "ml"
    ratings.mkdir()
    arguments = ["--quick", "--movielens", str(ratings), "--out", str(tmp_path / "out")]
    (ratings / "ua.base").touch()
    assert papers.main(arguments, scripts) == 2
    assert "ua.base and ua.test are not both in" in capfd.readouterr().err
    (ratings / "ua.test").touch()
    assert papers.main(arguments, scripts) == 0
    said = {path.stem: path.read_text() for path in tmp_path.glob("*.said")}
    assert str(ratings) in said["figure_wei.py"]
    assert str(ratings) not in said["other.py"]


def test_without_ratings_and_network_figure_3_says_so(papers, tmp_path, monkeypatch, capfd):
    def offline():
        raise OSError("could not be fetched")

    monkeypatch.setattr(papers.movielens, "ratings_folder", offline)
    (tmp_path / "out").mkdir()
    assert papers.main(["--out", str(tmp_path / "out")], papers.write(one="")) == 0
    shown = capfd.readouterr().out
    assert "MovieLens 100K: could not be fetched" in shown
    assert "Figure 3 of Wei et al. was not drawn anew" in shown


def test_drafts_do_not_go_where_pages_quote_numbers(papers, capfd):
    with pytest.raises(SystemExit):
        papers.main(["--quick"], [])
    assert "--quick needs another folder" in capfd.readouterr().err


def test_claims_are_those_of_the_numbers_beside_them(script, tmp_path):
    claims = script("paper_claims")
    for file in PAPERS.glob("*.csv"):
        shutil.copy(file, tmp_path)
    judged = claims.write_claims(tmp_path)
    assert set(judged) == set(claims.CLAIMS)
    assert (tmp_path / "claims.csv").read_text() == (PAPERS / "claims.csv").read_text()


def test_every_figure_has_a_page_with_its_claims(script):
    claims = script("paper_claims")
    pages = "".join(page.read_text(encoding="utf-8") for page in PAPERS.glob("*.md"))
    for name in claims.CLAIMS:
        assert pages.count(f"```{{results}} claims.csv\n:data: {name}\n```") == 1
        assert f"({name}.svg)" in pages
        assert f"({name}.csv)" in pages


def test_claims_of_wrong_numbers_are_not_reproduced(script):
    """Verdicts come from the numbers: those of another law change them."""
    files, stream = script("figure_files"), script("theorem_stream")
    rows = files.read_rows(PAPERS / f"{stream.NAME}.csv")
    assert [claim.verdict for claim in stream.claims(rows)] == ["reproduced"] * 4
    for row in rows:
        row["error"] **= 2
        row["peak_numbers"] **= 2
    rate, _, samples, memory = stream.claims(rows)
    assert [rate.verdict, memory.verdict] == ["not reproduced"] * 2
    assert samples.verdict in ("reproduced", "not reproduced")


def test_rates_are_those_of_the_laws_they_are_read_off(script):
    rates = script("fitted_rates")
    x = np.array([10.0, 20.0, 40.0])
    Y = np.array([[2.0], [3.0]]) * x**-0.5
    slope, error = rates.slope_over_trials(x, Y)
    assert slope == pytest.approx(-0.5)
    assert error == pytest.approx(0, abs=1e-12)
    assert rates.log_slope(x, 7 * x**2, [0.1] * 3)[0] == pytest.approx(2)
    # Of slopes, the error is that of the ends over the distance: sqrt(2) .1 / log 4.
    assert rates.log_slope(x, x, [0.1] * 3)[1] == pytest.approx(0.1 * 2**0.5 / np.log(4))
    levels = np.geomspace(1, 16, 5)
    assert rates.half_point(levels, [0, 0, 1, 1, 1], 20) == (pytest.approx(8**0.5), 0)
    assert rates.half_point(levels, [0, 0, 0, 0, 0.5], 20)[0] == np.inf
    assert np.isnan(rates.half_point(levels, [0.5, 1, 1, 1, 1], 20)[0])


@pytest.mark.parametrize("mu0", [1, 4, 16])
def test_components_have_the_incoherence_asked_for(script, mu0):
    incoherence = script("tensor_diagnostics").incoherence

    V = script("incoherent_components").incoherent_components(64, 4, mu0)
    assert incoherence(V) == pytest.approx(mu0)
    with pytest.raises(ValueError, match="mu0 must divide d"):
        script("incoherent_components").incoherent_components(64, 4, 32)
