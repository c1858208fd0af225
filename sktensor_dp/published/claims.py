"""Privacy claims in print, their verdicts, and the warning where a claim does not hold."""

import dataclasses
import math
import warnings
from dataclasses import dataclass
from typing import Literal

from sktensor_dp.checks.callers import level_of_caller
from sktensor_dp.exceptions import UnsoundClaimWarning

Verdict = Literal["holds", "holds if", "does not hold", "no claim"]

TOO_LARGE = (
    "The printed noise is enough for small epsilon only, and this one is beyond that. Exact "
    "composition of the same noise gives the epsilon that holds."
)
TESTS = "tests/published/test_verdicts_"
TOO_LARGE_EVIDENCE = f"{TESTS}calibration.py::test_classical_calibration_first_fails_beyond_seven"


@dataclass(frozen=True)
class Claim:
    """Privacy claimed in print, and the verdict.

    Attributes
    ----------
    algorithm, neighbours : str
        The algorithm with its paper, and the data sets between which privacy is claimed.
    verdict : {"holds", "holds if", "does not hold", "no claim"}
        "holds if" says under which condition in `reason`, and that it is met here; "no claim"
        that the paper does not speak of privacy.
    reason, evidence : str
        Two sentences, and the test that shows it, as ``path::name``.
    counterpart : str
        Sound method to use instead.
    epsilon, delta : float
        Guarantee claimed for the parameters of a call; before one, NaN and 0.
    exact_epsilon : float
        Smallest epsilon that the noise as computed here gives at ``delta``, by exact
        composition; infinity where it gives none, and before a call.

    Examples
    --------
    >>> printed = Claim("X (a paper)", "one document", "holds", "A. B.", "tests/t.py::t", "Y")
    >>> printed.at(1.0, 1e-6, 0.5).holds, printed.at(1.0, 1e-6, 1.5).verdict
    (True, 'does not hold')
    """

    algorithm: str
    neighbours: str
    verdict: Verdict
    reason: str
    evidence: str
    counterpart: str
    epsilon: float = math.nan
    delta: float = 0.0
    exact_epsilon: float = math.inf

    @property
    def holds(self) -> bool:
        """True if the claim is true of the parameters in use."""
        return self.verdict in ("holds", "holds if")

    def at(self, epsilon: float, delta: float, exact_epsilon: float = math.inf) -> "Claim":
        """Return the claim for the parameters of a call, whose noise gives `exact_epsilon`."""
        claim = dataclasses.replace(self, epsilon=epsilon, delta=delta, exact_epsilon=exact_epsilon)
        if not self.holds or exact_epsilon <= epsilon:
            return claim
        return dataclasses.replace(
            claim, verdict="does not hold", reason=TOO_LARGE, evidence=TOO_LARGE_EVIDENCE
        )

    def __str__(self) -> str:
        is_of_call = not math.isnan(self.epsilon)
        numbers = f"({self.epsilon:g}, {self.delta:g})" if is_of_call else "privacy"
        claim = f"claims {numbers} for {self.neighbours}"
        if self.verdict == "no claim":
            claim = "claims no privacy"
        exact = f"Epsilon that holds: {self.exact_epsilon:.4g}. " if is_of_call else ""
        return (
            f"{self.algorithm}: {claim}. Verdict: {self.verdict}. {self.reason} {exact}"
            f"Sound counterpart: {self.counterpart}."
        )


WANG = "Wang & Anandkumar, Algorithm"
IMTIAZ = "Imtiaz & Sarwate, Algorithm 1"
WEI = "Wei et al., Algorithm"
DECAROLIS = "Spectral LDA (DeCarolis et al., configuration"
NO_PRIVACY_CLAIMED = "any data: the paper claims no privacy for it"
SYMMETRISED = "data sets of equally many documents that differ in one, moments symmetrised"
IN_ORDER = "data sets of equally many documents that differ in one, words in their order"
CORPORA = "corpora of equally many documents that differ in one"
ONE_VALUE = "tensors observed at the same coordinates that differ in one value"
TELLS_APART = (
    f"{TESTS}wang_anandkumar.py::test_power_iterations_without_noise_tell_neighbours_apart"
)
IF_SYMMETRISED = (
    "Theorem 1 holds if the moments are symmetrised, as here, in real arithmetic. On moments of "
    "ordered words, as printed, symmetric noise leaves the antisymmetric part free of noise."
)
ORDER_IS_FREE = (
    "Symmetric noise leaves the antisymmetric part of the moments free of noise. Documents with "
    "the same words in another order are told apart with certainty."
)
ORDER_TEST = f"{TESTS}imtiaz_sarwate.py::test_symmetric_noise_does_not_cover_the_order_of_words"
ONE_TOPIC = "PrivateSpectralLDA(perturbation='moment_tensor', doc_topic_prior=0"
COMPLETIONS = "PrivateCPCompletion or PrivateTuckerCompletion with public bounds and perturbation="

# Claims of each published function, one for each form of its call.
# fmt: off
PRINTED: dict[str, tuple[Claim, ...]] = {
    "robust_tensor_power_method": (Claim(
        f"Robust tensor power method ({WANG} 1)", NO_PRIVACY_CLAIMED, "no claim",
        "Not private: every power step is an exact function of the tensor. Neighbours have "
        "different outputs, always.",
        TELLS_APART, "PrivateTensorPowerMethod().fit_tensor(T)",
    ),),
    "online_tensor_power_method": (Claim(
        f"Online robust tensor power method ({WANG} 2)", NO_PRIVACY_CLAIMED, "no claim",
        "Not private: every power step is an exact mean of samples. Neighbours have different "
        "outputs, always.",
        TELLS_APART, "PrivateTensorPowerMethod(perturbation='stream')",
    ),),
    "private_tensor_power_method": (Claim(
        f"Private tensor power method ({WANG} 3)",
        "symmetric tensors that differ in one entry by 1, up to symmetrisation", "holds",
        "Theorem 4.1 holds, though not by its proof: the printed epsilon' composes to 1.29 "
        "epsilon, exact composition of the same noise to about an eighth. One entry is "
        "protected, not a document or a person behind many entries.",
        f"{TESTS}wang_anandkumar.py::test_entry_bounds_hold_and_are_attained",
        "PrivateTensorPowerMethod(perturbation='iteration').fit_tensor(T)",
    ),),
    "agn": (Claim(
        f"AGN ({IMTIAZ})", SYMMETRISED, "holds if", IF_SYMMETRISED,
        f"{TESTS}imtiaz_sarwate.py::test_symmetrised_words_move_moments_by_root_two",
        f"{ONE_TOPIC})",
    ),),
    "avn": (Claim(
        f"AVN ({IMTIAZ})", SYMMETRISED, "holds if", IF_SYMMETRISED,
        f"{TESTS}imtiaz_sarwate.py::test_norm_of_unique_entries_keeps_avn_private",
        f"{ONE_TOPIC}, delta=0)",
    ),),
    "agn_of_words": (Claim(
        f"AGN of ordered words ({IMTIAZ})", IN_ORDER, "does not hold", ORDER_IS_FREE,
        ORDER_TEST, "published.agn",
    ),),
    "avn_of_words": (Claim(
        f"AVN of ordered words ({IMTIAZ})", IN_ORDER, "does not hold", ORDER_IS_FREE,
        ORDER_TEST, "published.avn",
    ),),
    "dp_tpm": (Claim(
        "DP-TPM (Imtiaz & Sarwate, section 4)", SYMMETRISED, "holds",
        "The noise is N times what the bound of a mean of N documents, 2 |u|_inf^2 / N, asks "
        "for: the 1 / N is missing. A comparison with it says nothing about Algorithm 3.",
        f"{TESTS}imtiaz_sarwate.py::test_dp_tpm_is_compared_with_noise_n_times_too_large",
        "PrivateSpectralLDA(doc_topic_prior=0)",
    ), Claim(
        "DP-TPM (Imtiaz & Sarwate, section 4), with 1 / N", SYMMETRISED, "holds",
        "Queries move by 2 |u|_inf^2 / N at most, and the noise is for that. The printed "
        "epsilon' and delta' make it several times what exact composition asks for.",
        f"{TESTS}wang_anandkumar.py::test_document_bounds_hold_and_are_nearly_attained",
        "PrivateSpectralLDA(doc_topic_prior=0)",
    )),
    "dp_spectral_lda": (Claim(
        f"{DECAROLIS} 1: e3, e4, e8)", CORPORA, "holds if",
        "The noise is enough if the moments subtract repeated documents as (33) and (42) do, "
        "as here; (20) and (21) as printed have another scale. Sensitivities in L1 and simple "
        "composition make up for the factor sqrt(2) that the calibration lacks.",
        f"{TESTS}calibration.py::test_sensitivities_in_l1_make_up_for_it_in_configuration_1",
        "PrivateSpectralLDA(perturbation='moment_tensor')",
    ), Claim(
        f"{DECAROLIS} 2: e6, e8)", CORPORA, "does not hold",
        "Theorem 5 does not hold: one document can turn the whitener, and T moves by 2.28 against "
        "a bound of 0.0016 at N = 10,000. T in one frame is unwhitened in another besides.",
        f"{TESTS}decarolis.py::test_rotation_alone_breaks_theorem_5", "PrivateSpectralLDA()",
    ), Claim(
        f"{DECAROLIS} 3: e7, e8)", CORPORA, "does not hold",
        "Theorem 6 takes Theorem 5 and a theorem for orthogonal tensors, which those of corpora "
        "are not. The bound on gamma_s is released with noise for a sensitivity that is unbounded.",
        f"{TESTS}decarolis.py"
        "::test_leading_eigenvector_jumps_where_no_orthogonal_decomposition_exists",
        "PrivateSpectralLDA()",
    ), Claim(
        f"{DECAROLIS} 4: e9)", CORPORA, "does not hold",
        "Theorem 7 takes Theorems 5 and 6, and a bound on pseudo-inverses that one document can "
        "break. The bound on gamma_s is released with noise for a sensitivity that is unbounded.",
        f"{TESTS}decarolis.py::test_gap_of_the_whitened_tensor_moves_without_bound",
        "PrivateSpectralLDA()",
    )),
    "input_perturbation": (Claim(
        f"Input perturbation ({WEI} 1), public bounds", ONE_VALUE, "holds if",
        "Theorem 1 holds if values are clamped to public bounds at public coordinates, as here. "
        "The solver after it is free.",
        f"{TESTS}wei.py::test_laplace_noise_with_a_public_range_holds", f"{COMPLETIONS}'input'",
    ), Claim(
        f"Input perturbation ({WEI} 1)", ONE_VALUE, "does not hold",
        "The range is taken from the values, so that the noise of all follows the one value that "
        "sets it. Scaling by minimum and maximum, or by rows and columns, first has the same "
        "effect.",
        f"{TESTS}wei.py::test_a_range_of_the_values_themselves_tells_neighbours_apart",
        f"{COMPLETIONS}'input'",
    )),
    "gradient_perturbation": (Claim(
        f"Gradient perturbation ({WEI} 2)", ONE_VALUE, "does not hold",
        "All factors but the last, and the core, are updated by exact gradients and released. In "
        "the last factor epsilon is spent in every step, and not added up.",
        f"{TESTS}wei.py::test_an_attack_finds_more_than_epsilon_from_a_secret_start",
        f"{COMPLETIONS}'gradient'",
    ),),
    "output_perturbation": (Claim(
        f"Output perturbation ({WEI} 3)", ONE_VALUE, "does not hold",
        "All factors but the last, and the core, are released as they are. Where the last one is "
        "noised, 2 tau L eta needs a convex objective, and this one is not.",
        f"{TESTS}wei.py::test_output_moves_by_more_than_two_tau_l_eta", f"{COMPLETIONS}'output'",
    ),),
}
# fmt: on


def claim_of_call(
    name: str, epsilon: float, delta: float, exact_epsilon: float = math.inf, *, form: int = 0
) -> Claim:
    """Claim of a call, number `form` of those of the published function; warn if it fails."""
    claim = PRINTED[name][form].at(epsilon, delta, exact_epsilon)
    if claim.verdict == "does not hold":
        warnings.warn(str(claim), UnsoundClaimWarning, stacklevel=level_of_caller())
    return claim


def claims() -> dict[str, tuple[Claim, ...]]:
    """Return the claims of every published function, by its name.

    Returns
    -------
    dict of str to tuple of Claim
        As printed: a call adds the numbers.

    Examples
    --------
    >>> from sktensor_dp import published
    >>> [claim.verdict for claim in published.claims()["input_perturbation"]]
    ['holds if', 'does not hold']
    """
    return dict(PRINTED)
