"""The same data in any form gives the same released inputs, and then the same model."""

import numpy as np
from cases import ALL_BUT_FORMS, READERS, SEARCHES, STREAMED, Case, covered, observed_once


def numbers_of(exact):
    return np.array([exact[key] for key in sorted(exact)]) if isinstance(exact, dict) else exact


def unlike_rows(case: Case) -> bool:
    """Whether persons of one row differ from rows: in the coins that deal them."""
    return case.model in SEARCHES | STREAMED or case["container"] == "batches"


def holds(case: Case) -> None:
    model, releases = observed_once(case)
    other = case.plain()
    if case["groups"] == "one row each" and not unlike_rows(case):
        other = other.with_(groups="none")
    plain, expected = observed_once(other)
    assert [one.name for one in releases] == [one.name for one in expected]
    # Entries come, and get their noise, in the order in which they are given.
    in_order = True
    for one, other in zip(releases, expected, strict=True):
        assert (one.sensitivity, one.sigma) == (other.sensitivity, other.sigma)
        found, known = numbers_of(one.exact), numbers_of(other.exact)
        if one.name == "entries" and not np.allclose(found, known):
            in_order = False
            assert np.allclose(np.sort(found), np.sort(known))
            break
        assert np.abs(found - known).max(initial=0) <= 1e-9 * one.sensitivity, one.name
    if case["groups"] and releases:
        assert (model.privacy_report_.unit == "person") is (case["groups"] != "none")
    assert model.privacy_report_.rows == plain.privacy_report_.rows
    for name, value in vars(plain).items() if in_order else ():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(getattr(model, name), value, rtol=1e-6, atol=1e-9)


test_forms, test_forms_in_triples = covered(holds, models=READERS)
test_models, test_models_in_triples = covered(holds, ALL_BUT_FORMS)
