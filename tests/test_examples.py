"""The short examples run as a reader would run them."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gaussian_mixture_prints_and_draws(tmp_path, capsys):
    target = tmp_path / "deep" / "mixture.png"
    arguments = ["--samples", "20000", "--epsilon", "1", "inf", "--output", str(target)]
    assert load("gaussian_mixture").main(arguments) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table[1:3]] == ["1", "inf"]
    # Four standard errors of a mean of 2000 samples in ten dimensions are .3.
    assert float(table[2].split()[1]) < 0.3
    assert target.read_bytes().startswith(b"\x89PNG")


def test_gaussian_mixture_explains_a_wrong_epsilon(tmp_path, capsys):
    arguments = ["--samples", "100", "--epsilon", "-1", "--output", str(tmp_path / "m.png")]
    assert load("gaussian_mixture").main(arguments) == 2
    assert "epsilon" in capsys.readouterr().err


def test_stream_shows_progress_and_finds_directions(capsys):
    arguments = ["--features", "20", "--rows", "20000", "--epsilon", "2"]
    assert load("stream").main(arguments) == 0
    shown = capsys.readouterr()
    last = shown.err.strip().splitlines()[-1]
    assert "batch 30 of 30" in last
    assert all(float(value) > 0.9 for value in last.split("|cosine|")[1].split())
    assert "differential privacy for replacing one sample of 600000" in shown.out


@pytest.mark.parametrize("arguments", [["--epsilon", "0"], ["--features", "2", "--rows", "0"]])
def test_stream_explains_wrong_numbers(arguments, capsys):
    assert load("stream").main(arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")
