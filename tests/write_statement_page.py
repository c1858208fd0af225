"""The filled-in statement on docs/statement.md, made by a fit.

Run as a program, it writes docs/statement.json anew: ``python tests/write_statement_page.py``.
All that the statement holds is public numbers here, the clip included: every fit gives the same.
"""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from sktensor_dp import PrivateSpectralLDA

FILE = Path(__file__).parents[1] / "docs" / "statement.json"
# Every text has words of one of five topics: fits find them, and ask for all that they plan.
TOPICS = np.kron(np.eye(5), np.full(10, 5.0))
COUNTS = np.random.default_rng(0).poisson(np.resize(TOPICS, (20_000, 50))).astype(float)


def statement() -> str:
    """What a fit of topics states."""
    model = PrivateSpectralLDA(
        5, clip_norm={"counts": 8.0, "triples": 8.0}, n_refinements=1, epsilon=1.0
    )
    with warnings.catch_warnings():
        # Whether topics are found in noise does not matter here.
        warnings.simplefilter("ignore")
        return model.fit(COUNTS).privacy_report_.to_json()


def shown(text: str) -> str:
    """The statement with short lines: what has no inner list or object takes one."""

    def lines(value: Any, indent: str) -> str:
        flat = json.dumps(value, ensure_ascii=False)
        if len(indent + flat) <= 150 or not isinstance(value, dict | list):
            return flat
        deeper = indent + "  "
        if isinstance(value, list):
            inner = [deeper + lines(item, deeper) for item in value]
            return "[\n" + ",\n".join(inner) + f"\n{indent}]"
        inner = [f"{deeper}{json.dumps(key)}: {lines(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner) + f"\n{indent}}}"

    return lines(json.loads(text), "")


if __name__ == "__main__":
    FILE.write_text(shown(statement()) + "\n", encoding="utf-8")
