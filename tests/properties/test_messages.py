"""Warnings and errors point at the caller's line, name the parameter, and quote no data."""

import re
import traceback
import warnings

import numpy as np
from cases import Case, covered
from commands import PLURAL_OF_ONE

SECRET, NUMBER = "swordfish", 987654


def said_by(call) -> tuple[str, list]:
    """All that an error says and shows, with what led to it, and the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            lines = traceback.format_exception(error)
            return "".join(line for line in lines if not line.startswith("  File")), caught
    return "", caught


def with_secrets(case: Case):
    """Data that no fit takes, whose wrong value is a secret."""
    data = case.draw()
    if case.of.family == "texts":
        return [*data.X[:-1], {"text": f"{SECRET} {NUMBER}"}]
    X = np.array(data.X, dtype=object)
    wrong = f"{SECRET} {NUMBER}"
    X[(len(X) // 2,) + (0,) * (X.ndim - 1)] = wrong
    return X


def holds(case: Case) -> None:
    data, model = case.draw(), case.build()
    said, caught = said_by(lambda: case.fit(model, data))
    assert said == ""
    shown = " ".join([str(model.privacy_report_), *(str(one.message) for one in caught)])
    assert not PLURAL_OF_ONE.search(shown)
    for warning in caught:
        # The call of the library is in the file of cases, whatever the call is.
        assert warning.filename.endswith("cases.py"), (warning.filename, str(warning.message))
    if case["neighbours"] == "add_remove":
        # Their number is private; at so little a budget what is released of it is another one.
        _, caught = said_by(lambda: case.fit(case.build(delta=0.1, epsilon=0.01), data))
        assert not re.search(rf"\b{len(data)}\b", " ".join(str(one.message) for one in caught))
    X = with_secrets(case)
    values = [] if data.y is None else [data.y]
    door = model.fit_tensor if case.of.family == "tensors" else model.fit
    entries = len(model.accountant.entries) if model.accountant is not None else 0
    said, _ = said_by(lambda: door(X, *values))
    assert re.search(r"\b(X|T|raw_documents)\b", said)
    assert SECRET not in said
    assert str(NUMBER) not in said
    for name, wrong in (("epsilon", -1.0), ("delta", 2.0), ("verbose", "loud")):
        said, _ = said_by(lambda n=name, w=wrong: case.fit(case.build(**{n: w}), data))
        assert f"'{name}'" in said
    if model.accountant is not None:
        assert len(model.accountant.entries) == entries


test_messages, test_messages_in_triples = covered(holds, ("neighbours",))
