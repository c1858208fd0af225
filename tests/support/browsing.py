"""A headless Chromium, if there is one, and pages to look at in it."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sktensor_dp import PrivateSpectralLDA
from sktensor_dp.privacy.composition import Composition, ReleaseRecord
from sktensor_dp.privacy.report import PrivacyReport
from sktensor_dp.topic_page import write_topic_page

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage",
)  # fmt: skip
SEA = "ship sail harbour captain crew storm cargo deck anchor tide"
STATE = "tax budget levy minister vote law senate reform deficit pension"
SPORT = "goal league coach match season striker referee cup team"
ALL = "fans said year people time new"
WORDS = tuple(f"{SEA} {STATE} {SPORT} {ALL}".split())


def chromium() -> str | None:
    """Path of the browser, by its names on Debian and on machines of public forges."""
    return shutil.which("chromium") or shutil.which("google-chrome")


def missing() -> str | None:
    """What is missing to start a browser, if anything."""
    for program, found in (
        ("chromium", chromium()),
        ("chromedriver", shutil.which("chromedriver")),
    ):
        if found is None:
            return f"{program} is not installed (Debian: chromium and chromium-driver)"
    for package in ("selenium", "axe_selenium_python"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed (the extra 'tests' has it)"
    return None


def need_browser() -> None:
    """Skip where there is no browser; fail where there has to be one."""
    reason = missing()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@contextmanager
def browser() -> Iterator[object]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium()
        for argument in (*QUIET, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": profile})
        service = Service(shutil.which("chromedriver"))
        driver = webdriver.Chrome(options=options, service=service)
        driver.downloads = Path(profile)
        try:
            yield driver
        finally:
            driver.quit()


def look(driver, width: int, dark: bool = False, height: int = 900) -> None:
    """Show pages at a width, in light or dark."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def axe_source() -> str:
    found = importlib.util.find_spec("axe_selenium_python")
    folder = Path(found.origin).parent
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def report() -> PrivacyReport:
    row = ReleaseRecord("moments", "means of pairs", 0.0123, 0.456, 0.02697, 0.0, 0.0, 3, "gauss")
    whole = Composition("releases", (row,))
    return PrivacyReport(1.5, 1e-6, "document", "replace_one", 12345, False, whole, ("a note",))


def model() -> PrivateSpectralLDA:
    """Topics that no fit made: four to read, of which one is below its noise."""
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    topics = np.full((4, len(WORDS)), 0.002)
    for row, first in enumerate((10, 20, 0)):
        topics[row, first : first + 9] += np.geomspace(0.2, 0.01, 9)
    topics[:, 29:] += np.linspace(0.1, 0.04, len(WORDS) - 29)
    topics[3] = shares[:3] @ topics[:3]
    topics /= topics.sum(axis=1, keepdims=True)
    unigram = shares @ topics
    found = PrivateSpectralLDA(4)
    found.__dict__.update(
        components_=topics, components_std_=0.004 + 0.05 * topics, topic_prior_=shares,
        n_components_seen_=3, mixing_covariance_=None,
        unigram_=unigram, n_components_=4, n_features_in_=len(WORDS), privacy_report_=report(),
        coherence_=np.array([-2.5, -2.8, -3.0, -4.0]),
    )  # fmt: skip
    return found


def write_page(folder: Path, **changes) -> SimpleNamespace:
    """Page of the made-up topics, and where it is."""
    arguments = {
        "warnings": ["Of 4 topics asked for, the released second moment shows 3 above its noise."]
    }
    path = write_topic_page(folder / "page.html", model(), WORDS, **(arguments | changes))
    return SimpleNamespace(path=path, url=path.as_uri(), text=path.read_text(encoding="utf-8"))
