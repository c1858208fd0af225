"""One self-contained web page: style, sections, and at most one script that it allows."""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path


def page(title: str, sections: Sequence[str], data: str | None = None, program: str = "") -> str:
    """HTML of a page that loads nothing, with `sections` of HTML.

    `program` is a script, there only with `data` for it: JSON that is safe within a page.
    """
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    script = ""
    if data is not None:
        digest = base64.b64encode(hashlib.sha256(program.encode("utf-8")).digest()).decode("ascii")
        # Allow this script by its digest and no other, whatever words the page holds.
        policy += f"; script-src 'sha256-{digest}'"
        script = f'<script type="application/json" id="data">{data}</script>\n'
        script += f"<script>{program}</script>\n"
    style, body = template(__file__, "page.css"), "\n".join(sections)
    return template(__file__, "page.html").format(
        title=escape(title), policy=policy, style=style, body=body, script=script
    )


def template(module: str, name: str) -> str:
    """Text of a file beside that of a module."""
    return Path(module).with_name(name).read_text(encoding="utf-8")
