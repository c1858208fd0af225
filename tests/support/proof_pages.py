"""What the page of a proof states, in a form that can be held against the code.

Every page has a block of definitions that ends with those of ``L2`` and ``L1``: sensitivities
of the sum over units when one unit is replaced, from the public attributes of the query. Where
units may come and go it has a second block, for one unit added or removed.
"""

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np

from sktensor_dp.privacy.curator import sensitivity
from sktensor_dp.privacy.mechanisms import Mechanism
from sktensor_dp.privacy.releases import Release

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "docs" / "proofs"
CHANGES = {"replace_one": "replaced", "add_remove": "added or removed"}
BLOCKS = {
    relation: re.compile(
        rf"^Sensitivity of the sum, one unit {change}:\n\n```python\n(.*?)```$",
        re.DOTALL | re.MULTILINE,
    )
    for relation, change in CHANGES.items()
}
WORDS = {
    "abs": np.abs,
    "bincount": np.bincount,
    "ceil": np.ceil,
    "clamp": np.clip,
    "floor": np.floor,
    "inf": np.inf,
    "kind": lambda item: type(item).__name__,
    "len": len,
    "log2": np.log2,
    "max": max,
    "min": min,
    "sqrt": np.sqrt,
}


def stated(page: str, query: Any, relation: str = "replace_one") -> tuple[float, float]:
    """L2 and L1 sensitivity that a page states, at the parameters of a query."""
    blocks = BLOCKS[relation].findall(page)
    assert len(blocks) == 1, "the page states its sensitivities once"
    tree = ast.parse(blocks[0])
    # A page that asked the query for its bound would agree with whatever that is.
    asked = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    asked += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bounds = ("sensitivity", "contribution", "farthest", "largest_norms")
    assert [name for name in asked if any(bound in name for bound in bounds)] == []

    class Names(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return WORDS[name] if name in WORDS else getattr(query, name)

    names = Names()
    exec(compile(tree, "page", "exec"), {"__builtins__": {}}, names)
    return float(names["L2"]), float(names["L1"])


def check_page(entry: Release, page: str, queries: list[Any]) -> None:
    """Fail unless a page is about a release and states what its queries compute."""
    of = f"{entry.query.__module__}.{entry.query.__name__}"
    assert page.split("\n\n")[1].startswith(f"Release `{entry.name}`; query `{of}`; law")
    for part in ("## Statement", "\\blacksquare", "\n## Tests\n"):
        assert part in page, f"the page has no {part}"
    named = re.findall(r"`(tests/.*?\.py)`", page)
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []
    comes_and_goes = hasattr(queries[0], "l2_contribution")
    assert bool(BLOCKS["add_remove"].search(page)) == comes_and_goes
    for query in queries:
        assert type(query) is entry.query
        for relation in list(CHANGES)[: 1 + comes_and_goes]:
            # Both sides are a few roundings.
            computed = [sensitivity(query, norm, relation) for norm in ("l2", "l1")]
            np.testing.assert_allclose(stated(page, query, relation), computed, rtol=1e-12)
    for law in (entry.gaussian, entry.pure):
        if isinstance(law, Mechanism) and law.norm == "l1":
            assert any(np.isfinite(query.l1_sensitivity) for query in queries)
            if comes_and_goes:
                assert any(np.isfinite(query.l1_contribution) for query in queries)
