"""Empirical lower bounds on what a fit gives away.

A proof bounds epsilon from above; an audit bounds it from below, with confidence, by
telling neighbouring data sets apart. An audit that exceeds the claim has found an error,
in a proof, in its implementation or in the noise; one that stays below it proves nothing.

:func:`audit` fits an estimator many times on two neighbouring data sets,
:func:`audit_samples` needs no more than the numbers that came out, and
:func:`audit_in_one_run` tells many canaries apart in a single fit. :func:`worst_case`
gives data sets on which the estimators of this package give away the most.
"""

from sktensor_dp.privacy.audit.fits import AuditResult, WorstCase, audit, audit_samples, worst_case
from sktensor_dp.privacy.audit.one_run import (
    OneRunResult,
    audit_in_one_run,
    guesses_from_scores,
    one_run_audit,
    one_run_p_value,
)

__all__ = [
    "AuditResult",
    "OneRunResult",
    "WorstCase",
    "audit",
    "audit_in_one_run",
    "audit_samples",
    "guesses_from_scores",
    "one_run_audit",
    "one_run_p_value",
    "worst_case",
]
