"""Pictures of the page of topics in eight states: ``python tests/page_shots.py FOLDER``."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))

from browsing import browser, look, missing, write_page

# Name, state, width, dark.
SHOTS = (
    ("topic", "", 1280, False),
    ("two-topics", "#compare=2", 1280, False),
    ("word", "#word=ship", 1280, True),
    ("search", "#find=s", 1280, False),
    ("below-noise", "#topic=4", 1280, True),
    ("phone", "", 390, False),
    ("phone-two-topics", "#compare=3", 390, True),
    ("releases", "", 1280, False),
)


def main() -> int:
    """Write the pictures; return 1 where there is no browser."""
    reason = missing()
    if reason is not None:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "page-shots")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, browser() as driver:
        url = write_page(Path(made)).url
        for name, state, width, dark in SHOTS:
            look(driver, width, dark)
            driver.get("about:blank")
            driver.get(url + state)
            if name == "releases":
                driver.execute_script("document.querySelector('details').open = true")
            height = driver.execute_script("return document.documentElement.scrollHeight")
            look(driver, width, dark, height)
            path = folder / f"{name}.png"
            driver.save_screenshot(str(path))
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
