"""No published function without its claim, no claim without its test, no row without either."""

import ast
import importlib
import inspect
import pkgutil
import re
import typing
import warnings
from pathlib import Path

import numpy as np
import pytest
from plain_moments import exact_corpus

import sktensor_dp
from sktensor_dp import UnsoundClaimWarning, published
from sktensor_dp.published.claims import Claim, Verdict
from sktensor_dp.published.completion import SGDSettings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers" / "verdicts.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| claim", "| **"))
]
CLAIMS = [claim for group in published.claims().values() for claim in group]
# Its noise turned out to give twice the epsilon.
SHORT = published.claims()["agn"][0].at(1.0, 1e-6, 2.0)

X = np.arange(40).reshape(10, 4) % 5 + 1
CORPUS, LARGE = np.tile(X, (1000, 1)), np.tile(exact_corpus(), (50, 1))
CUBE, ORDERED = np.argwhere(np.ones((3, 3, 3))), ([[0, 1, 2]] * 9, 3, 2)
ENTRIES, QUICK = (CUBE, CUBE[:, 0], (3, 3, 3), 1), {"sgd": SGDSettings(max_iter=1)}
# Arguments of every function, in every one of its forms.
CALLS = {
    "agn": [((X, 1, 1e3), {})],
    "agn_of_words": [(ORDERED, {})],
    "avn": [((CORPUS, 1), {})],
    "avn_of_words": [(ORDERED, {})],
    "dp_spectral_lda": [((CORPUS, 1), {"configuration": c, "epsilon": 1e3}) for c in (1, 2, 3, 4)],
    "dp_tpm": [((CORPUS, 1), {"sensitivity": s}) for s in ("printed", "per_document")],
    "gradient_perturbation": [(ENTRIES, QUICK)],
    "input_perturbation": [(ENTRIES, {"bounds": b, **QUICK}) for b in ((0, 2), None)],
    "online_tensor_power_method": [(([np.eye(3)] * 11, 1), {})],
    "output_perturbation": [(ENTRIES, QUICK)],
    "private_tensor_power_method": [((np.ones((2, 2, 2)), 1), {})],
    "robust_tensor_power_method": [((np.ones((2, 2, 2)), 1), {})],
}


def defined_tests():
    return {
        (path.relative_to(ROOT).as_posix(), node.name)
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_function_that_returns_a_result_is_registered_and_exported():
    returning = set()
    for info in pkgutil.iter_modules(published.__path__):
        module = importlib.import_module(f"{published.__name__}.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            result = typing.get_type_hints(function).get("return")
            if not name.startswith("_") and "claim" in getattr(result, "__annotations__", {}):
                returning.add(name)
    exported = {n for n in published.__all__ if inspect.isfunction(getattr(published, n))}
    assert returning == exported - {"claims"} == set(published.claims()) == set(CALLS)


def test_results_cannot_be_made_without_a_claim():
    results = [getattr(published, n) for n in published.__all__ if n.startswith("Published")]
    for result in [*results, published.WhitenedMoments]:
        assert result.__dataclass_fields__["claim"].type in (Claim, "Claim")
        with pytest.raises(TypeError, match="claim"):
            result(*range(len(result.__dataclass_fields__) - 1))


@pytest.mark.parametrize("name", CALLS)
def test_calls_carry_their_claim_and_warn_where_it_does_not_hold(name):
    printed = published.claims()[name]
    assert len(CALLS[name]) == len(printed)
    for (data, options), claim in zip(CALLS[name], printed, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = getattr(published, name)(*data, **options).claim
        assert found.algorithm == claim.algorithm
        unsound = [w for w in caught if w.category is UnsoundClaimWarning]
        assert len(unsound) == (found.verdict == "does not hold")
        assert found.holds == (found.verdict in ("holds", "holds if"))
        # What the noise gives says the same as the verdict.
        if found.verdict != "no claim":
            assert found.holds == (found.exact_epsilon <= found.epsilon)
        if unsound:
            assert str(unsound[0].message) == str(found)
            assert unsound[0].filename == __file__


@pytest.mark.parametrize(
    "call",
    [
        lambda epsilon: published.agn(LARGE, 2, epsilon, random_state=0),
        lambda epsilon: published.avn(LARGE, 2, epsilon, random_state=0),
        lambda epsilon: published.dp_spectral_lda(LARGE, 2, 1.0, 1, epsilon, random_state=0),
        lambda epsilon: published.private_tensor_power_method(
            np.zeros((2, 2, 2)), 1, 20 * epsilon, random_state=0
        ),
    ],
    ids=["agn", "avn", "dp_spectral_lda", "private_tensor_power_method"],
)
def test_noise_is_fresh_and_too_little_of_it_at_a_huge_epsilon(call):
    with pytest.warns(UnsoundClaimWarning, match="small epsilon only"):
        claim = call(500.0).claim
    assert not claim.holds
    assert claim.exact_epsilon > claim.epsilon
    first, second = call(1.0), call(1.0)
    assert not np.array_equal(first.weights, second.weights)


@pytest.mark.parametrize("claim", [*CLAIMS, SHORT], ids=lambda claim: claim.algorithm)
def test_claims_say_all_they_have_to(claim):
    assert claim.verdict in typing.get_args(Verdict)
    assert len(re.findall(r"\.(?=\s|$)", claim.reason)) == 2
    assert tuple(claim.evidence.split("::")) in defined_tests()
    name = re.match(r"(published\.)?(\w+)", claim.counterpart)
    assert hasattr(published if name[1] else sktensor_dp, name[2])
    # Where the counterpart is a call of a constructor, it runs.
    call = re.match(r"Private\w+\([^)]*\)", claim.counterpart)
    if call:
        eval(call[0], {name[2]: getattr(sktensor_dp, name[2])})


def test_claims_say_what_is_claimed_and_what_holds():
    assert "claims (1, 1e-06)" in str(SHORT)
    assert "Epsilon that holds: 2." in str(SHORT)
    before_a_call = str(published.claims()["agn"][0])
    assert "claims privacy for data sets" in before_a_call
    assert "nan" not in before_a_call
    assert "Epsilon that holds" not in before_a_call
    assert "claims no privacy" in str(published.claims()["robust_tensor_power_method"][0])


CITED = {row[3].strip("`") for row in ROWS}
# Of the harness itself, and of steps beside a cited one.
UNCITED = {
    "test_hockey_stick_is_the_integral_that_defines_it",
    "test_classical_calibration_is_a_quarter_too_much_at_one",
    "test_corrected_moments_are_sums_over_topics",
    "test_norm_of_unique_entries_is_not_that_of_the_proof",
}


def test_the_page_has_a_row_for_every_claim_and_function():
    for name, group in published.claims().items():
        assert f"`{name}" in PAGE
        assert {claim.evidence.split("::")[1] for claim in group} <= CITED


def test_rows_of_the_page_cite_tests_and_verdict_tests_have_their_row():
    verdicts = ("holds", "does not hold", "no claim", "not proved", "attained")
    assert {len(row) for row in ROWS} == {4}
    assert [row[0] for row in ROWS if not (row[0] and row[2] and row[1].startswith(verdicts))] == []
    tests = {name: path for path, name in defined_tests() if name.startswith("test_")}
    assert set() == CITED - set(tests)
    assert {name for name, path in tests.items() if "test_verdicts_" in path} - CITED == UNCITED
