"""docs/statement.md shows a statement as a fit makes it."""

import json
import re

from write_statement_page import FILE, shown, statement

from sktensor_dp.privacy.composition import Kind
from sktensor_dp.privacy.statement import load_statement
from sktensor_dp.privacy.statement_schema import schema_text

TEXT = FILE.with_suffix(".md").read_text("utf-8")
AGAIN = "run `python tests/write_statement_page.py`"
# Digits beyond it may differ with the machine's arithmetic.
NUMBER = re.compile(r"-?\d+\.\d{8,}(?:e-?\d+)?")


def rounded(text: str) -> str:
    return NUMBER.sub(lambda found: f"{float(found[0]):.8g}", text)


def test_the_statement_is_what_a_fit_gives() -> None:
    assert rounded(shown(statement()) + "\n") == rounded(FILE.read_text("utf-8")), AGAIN


def test_the_statement_on_the_page_adds_up() -> None:
    report = load_statement(FILE.read_text("utf-8"))
    assert (report.unit, report.n_units) == ("document", 20_000)
    assert len(report.rows) == 5


def test_the_page_explains_what_the_schema_has() -> None:
    schema = json.loads(schema_text())
    for kind in Kind.__args__:
        assert f"| `{kind}` |" in TEXT
    unit = schema["properties"]["unit"]["properties"]["name"]
    for name in unit["examples"]:
        assert f"`{name}` (" in TEXT
    # Fields that the table of questions names are those of statements.
    for name in ("in_words", "sampler", "seeded", "fraction", "unit_costs"):
        assert f"`{name}`" in TEXT or f".{name}`" in TEXT
        assert f'"{name}"' in schema_text()
