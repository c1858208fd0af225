"""The scripts that redraw figures of papers: files, columns, and the measures they draw."""

import csv
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is optional")


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def words_in(path):
    tags = ET.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(tag.itertext()).strip() for tag in tags}


@pytest.fixture
def drawn(script, tmp_path, capsys):
    """Draw a figure: its rows, the words in the picture, and what is printed."""

    def draw(name, file, columns, *options):
        assert script(name).main(["--quick", *options, "--out", str(tmp_path)]) == 0
        rows = rows_of(tmp_path / f"{file}.csv")
        assert list(rows[0]) == columns.split()
        return rows, words_in(tmp_path / f"{file}.svg"), capsys.readouterr().out

    return draw


def test_wang_anandkumar_is_drawn(drawn):
    columns = "regime d sigma scale scaled_sigma trials failure failure_any_order"
    rows, words, out = drawn(
        "figure_wang_anandkumar", "wang-anandkumar-figure-1", columns, "--trials", "2"
    )
    assert len(rows) == 3 * 2 * 6
    for regime in ("random Gaussian", "adversarial", "weakly correlated"):
        mine = [row for row in rows if row["regime"] == regime]
        assert {row["d"] for row in mine} == {"25", "50"}
        failures = [float(row["failure"]) for row in mine if row["d"] == "25"]
        # The grid begins where trials succeed, and ends where noise outweighs the signal.
        assert (failures[0], failures[-1]) == (0.0, 1.0)
        assert all(float(row["failure_any_order"]) <= float(row["failure"]) for row in mine)
    assert {"d = 25", "d = 50", "adversarial noise", "σ · √d", "σ · ln d"} <= words
    assert "sigma_half" in out
    assert "paper" in out


def test_imtiaz_sarwate_is_drawn(script, drawn):
    columns = "D K sweep N epsilon delta method runs e_comp e_comp_se matched_tv matched_tv_se"
    rows, words, out = drawn("figure_imtiaz_sarwate", "imtiaz-sarwate-figure-1", columns)
    assert len(rows) == 2 * (2 + 2) * 7
    assert {(row["D"], row["K"]) for row in rows} == {("10", "5"), ("50", "10")}
    assert all(0 <= float(row["matched_tv"]) <= 1 for row in rows)
    assert set(script("figure_imtiaz_sarwate").METHODS) <= words
    assert "matched error" in out


def test_measures_of_topics(script):
    figure = script("figure_imtiaz_sarwate")
    true = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    assert figure.nearest_distance(true[::-1], true) == 0
    assert figure.matched_error(true[::-1], true) == 0
    # Copies of one topic: the printed measure does not see that the other is missing.
    copies = true[[0, 0]]
    assert figure.nearest_distance(copies, true) == 0
    assert figure.matched_error(copies, true) == pytest.approx(0.25)
    assert figure.matched_error(true[:1], true) == pytest.approx(0.5)
    assert figure.nearest_distance(np.eye(3)[:1], true) == pytest.approx(np.sqrt(0.5))


def test_documents_have_three_words_of_one_topic(script):
    figure = script("figure_imtiaz_sarwate")
    X, topics = figure.corpus(6, 2, 20_000, 3)
    assert X.shape == (20_000, 6)
    assert (X.sum(axis=1) == 3).all()
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    # Shares of words deviate by sqrt(p (1 - p) / 60000) < .003, and those of topics by .004.
    expected = topics.mean(axis=0)
    np.testing.assert_allclose(np.asarray(X.sum(axis=0)).ravel() / 60_000, expected, atol=0.03)


@pytest.mark.parametrize("name", ["gaussian", "adversarial", "weakly_correlated"])
def test_oracles_of_noise_are_those_of_symmetric_tensors(script, name):
    figure = script("figure_wang_anandkumar")
    oracle = getattr(figure, f"{name}_noise")(5, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    u, v = rng.standard_normal((2, 5, 1))

    def form(a, b):
        """E(I, a, b) by polarisation."""
        return (oracle(a + b) - oracle(a - b)) / 4

    w = rng.standard_normal((5, 1))
    values = [np.sum(w * form(u, v)), np.sum(u * form(v, w)), np.sum(v * form(w, u))]
    np.testing.assert_allclose(values, values[0], rtol=1e-4)
    assert abs(values[0]) > 1e-3


def test_norms_of_the_structured_noises(script):
    figure = script("figure_wang_anandkumar")
    for noise, norm in ((figure.adversarial_noise, 3.0), (figure.weakly_correlated_noise, 1.0)):
        found = figure.operator_norm(noise(12, None), 12, rng=np.random.default_rng(0))
        assert found == pytest.approx(norm, rel=1e-6)


def test_trial_succeeds_without_noise_and_in_order(script):
    figure = script("figure_wang_anandkumar")
    noise = figure.adversarial_noise(30, None)
    assert figure.fails(noise, 0.0, 30, np.random.default_rng(0)) == (False, False)
    # v2 is found first where its weight .75 + sigma is above 1: a failure in order alone.
    assert figure.fails(noise, 0.5 / 3, 30, np.random.default_rng(0)) == (True, False)


def test_wei_is_drawn(script, drawn, tmp_path):
    columns = "model method private epsilon runs rmse rmse_sd"
    (rows, words, out), looks = (
        drawn("figure_wei", "wei-figure-2", columns),
        script("figure_wei").LOOKS,
    )
    assert len(rows) == 2 * 2 * len(looks)
    errors = {(row["model"], row["method"], row["epsilon"]): float(row["rmse"]) for row in rows}
    for model in ("CP", "Tucker"):
        # The model explains the tensor; the mean does not; noise at epsilon = 1 hides it.
        mean = errors[model, "mean alone", "1"]
        assert errors[model, "default, no noise", "10"] < 0.4 * mean
        assert errors[model, "input", "1"] > mean
    assert not (tmp_path / "wei-figure-3.csv").exists()
    assert set(looks) <= words
    # A smaller experiment than in print says so on the figure.
    assert any(text.startswith("runs: 1 (50 in print); SGD in blocks") for text in words)
    assert "give its folder as --movielens" in out


def test_wei_reads_ratings(script, tmp_path):
    figure = script("figure_wei")
    (tmp_path / "ua.base").write_text("1\t1\t4\t86500\n1\t2\t5\t86600\n2\t1\t3\t259200\n")
    (tmp_path / "ua.test").write_text("2\t2\t1\t86400\n")
    task = figure.movielens(tmp_path)
    assert task.shape == (943, 1682, 3)
    np.testing.assert_array_equal(task.X, [[0, 0, 0], [0, 1, 0], [1, 0, 2]])
    np.testing.assert_array_equal(task.y_test, [1])


def test_bi_scaling(script):
    figure = script("figure_wei")
    # Two users of two items each on one day, and one rating on another day.
    X = np.array([[0, 0, 0], [0, 1, 0], [1, 2, 0], [1, 3, 0], [0, 0, 1]])
    y = np.array([4.0, 5.0, 1.0, 3.0, 2.0])
    scaling = figure.BiScaling(X, y, (2, 4, 2))
    np.testing.assert_allclose(scaling.scaled[:4], [-1, 1, -1, 1], atol=1e-12)
    np.testing.assert_allclose(scaling.restored(X, scaling.scaled), y)
    # One value changed moves another: no bound on single values bounds this.
    neighbour = figure.BiScaling(X, np.array([4.0, 3.0, 1.0, 3.0, 2.0]), (2, 4, 2))
    np.testing.assert_allclose(neighbour.scaled[:2], [1, -1], atol=1e-12)


THEOREMS = {
    "theorem_power_method": {"d = 15", "tolerance against k", "theorem: 1/√k"},
    "theorem_stream": {"samples needed", "corollary: d²", "d (k + L)"},
    "theorem_whitening": {"noise borne", "power method", "against √d ‖E‖"},
    "theorem_incoherence": {"√(μ₀ k log d / d)", "noise alone"},
    "theorem_spectral_lda": {"config. 1: e3, e4, e8", "whitened tensor", "error of topics"},
    "theorem_private_power_method": {"same noise, exact ε", "theorem: at most k²"},
}


@pytest.mark.parametrize("name", THEOREMS)
def test_theorem_is_drawn_and_judged(script, name, tmp_path, capsys):
    theorem, files = script(name), script("figure_files")
    assert theorem.main(["--quick", "--out", str(tmp_path)]) == 0
    assert words_in(tmp_path / f"{theorem.NAME}.svg") >= THEOREMS[name]
    rows = files.read_rows(tmp_path / f"{theorem.NAME}.csv")
    judged = theorem.claims(rows)
    assert judged
    assert {claim.verdict for claim in judged} <= {"reproduced", "in part", "not reproduced"}
    assert all(claim.words and claim.measured for claim in judged)
    out = capsys.readouterr().out
    assert "exponent" in out or "over its rate" in out


def test_stream_has_the_moments_that_the_theorem_asks_for(script):
    theorem = script("theorem_stream")
    rng = np.random.default_rng(0)
    X = np.vstack(list(theorem.samples(6, 200_000, rng)))
    assert X.shape == (200_000, 6)
    # Means of 200,000 products of bounded variance: six standard errors are below .05.
    moments = np.einsum("ni,nj,nk->ijk", X, X, X, optimize=True) / len(X)
    expected = np.zeros((6, 6, 6))
    expected[range(3), range(3), range(3)] = theorem.WEIGHTS
    np.testing.assert_allclose(moments, expected, atol=0.05)
    np.testing.assert_allclose(X.T @ X / len(X), np.eye(6), atol=0.05)


def test_errors_of_components_are_matched_and_scaled(script):
    theorem = script("theorem_power_method")

    def silent(U):
        return np.zeros(U.shape)

    rng = np.random.default_rng(0)
    epsilon, vectors, values = theorem.recovered(silent, 1.0, theorem.WEIGHTS, 8, rng)
    assert epsilon == 0
    np.testing.assert_allclose(vectors, 0, atol=1e-6)
    np.testing.assert_allclose(values, 0, atol=1e-9)


def test_private_power_method_finds_the_first_component_at_a_large_epsilon(script):
    theorem = script("theorem_private_power_method")
    V = script("incoherent_components").incoherent_components(32, 4, 1)
    rng = np.random.default_rng(0)
    noise = script("figure_wang_anandkumar").gaussian_noise(32, rng)
    for vector in (theorem.by_iteration(V, 1e6, rng), theorem.by_input(V, noise, 1e6, rng)):
        np.testing.assert_allclose(vector, V[0], atol=0.01)
    # What is printed for epsilon = 1 is several times as much noise as that needs.
    assert 0.1 < theorem.exact_epsilon("incoherent", 1024, 4, 1.0) < 0.2
    assert 0.7 < theorem.exact_epsilon("input", 64, 4, 1.0) < 1
