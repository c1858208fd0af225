"""Progress of fits: lines in a log, and no data."""

import io
import re
import sys

import numpy as np
import pytest

from sktensor_dp import PrivateSpectralLDA

COUNTS = np.random.default_rng(0).poisson(1.0, (500, 6))
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def test_a_log_gets_lines_without_times(capsys):
    PrivateSpectralLDA(2, verbose=1).fit(COUNTS)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 3
    pattern = r"\[PrivateSpectralLDA\] release \d+ of \d+: [a-z_]+"
    assert all(re.fullmatch(pattern, line) for line in lines)


def test_a_log_that_is_closed_costs_no_paid_fit(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert PrivateSpectralLDA(2, verbose=1).fit(COUNTS).privacy_report_.rows
