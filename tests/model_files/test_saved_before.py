"""What earlier versions wrote, as files and as pickles, still loads and says the same."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from small_completions import X0
from small_models import COUNTS, SAMPLES, answers, equal

from sktensor_dp import PrivateCountVectorizer

HERE = Path(__file__).parent
FILES, PICKLES = HERE / "files", HERE / "pickles"
NAMES = sorted(path.stem for path in (FILES / "v1").iterdir())
FORMATS = sorted(path.name for path in FILES.iterdir() if path.is_dir())
pytestmark = pytest.mark.filterwarnings("ignore::sktensor_dp.NotEnoughDataWarning")


def unpickled(name):
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("these pickles were written with numpy 2, and numpy 1 does not read such ones")
    return pickle.loads((PICKLES / f"{name}.pickle").read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_models_in_files_and_pickles_of_then_say_the_same(name):
    """Both are of one fit, and what they say is computed now."""
    model = unpickled(name)
    file = FILES / "v1" / f"{name}.model"
    before, after = answers(model), answers(type(model).load(file))
    assert before.keys() == after.keys()
    assert [key for key in before if not equal(before[key], after[key])] == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("version", FORMATS)
def test_files_of_then_are_saved_as_files_of_now(version, name, tmp_path):
    cls = type(unpickled(name))
    model = cls.load(FILES / version / f"{name}.model")
    model.save(tmp_path / "model")
    before, after = answers(model), answers(cls.load(tmp_path / "model"))
    assert [key for key in before if not equal(before[key], after[key])] == []


@pytest.mark.parametrize("n_batches", [1, 3, 8])
def test_streams_of_components_of_then_go_on(n_batches):
    name = f"components-stream-{n_batches}"
    stream = unpickled(name)
    loaded = type(stream).load(FILES / "v1" / f"{name}.model")
    # Not only where it stood: the starts to come are drawn from where the generator was.
    first, second = stream._stream.method, loaded._stream.method
    for _ in range(7):
        assert np.array_equal(first.ask(), second.ask())
        answer = np.random.default_rng(0).standard_normal(first.ask().shape)
        first.tell(answer)
        second.tell(answer)
    assert all(map(np.array_equal, first.components(), second.components()))
    for model in (unpickled(name), loaded):
        assert model.partial_fit(SAMPLES).n_batches_seen_ == model._stream.method.n_answers


def test_streams_of_topics_of_then_go_on():
    stream = unpickled("topics-stream")
    loaded = type(stream).load(FILES / "v1" / "topics-stream.model")
    for model in (stream, loaded):
        assert model._stream.n_batches == 2
        assert model.partial_fit(COUNTS)._stream.n_batches == 3
        assert len(model.privacy_report_.rows) >= 2


def test_pickled_searches_units_and_forecasts_of_then_are_whole():
    for name, X in (("search-topics", COUNTS), ("search-components", COUNTS[:, :4])):
        search = unpickled(name)
        assert len(search.transform(X)) == len(X)
        assert search.best_params_.keys() == {"n_components"}
        assert search.privacy_report_.guarantee
    assert np.isfinite(unpickled("units").predict(X0)).all()
    for kind in ("topics", "components", "completion"):
        assert str(unpickled(f"forecast-{kind}"))
    split = unpickled("vocabulary-split")
    assert isinstance(split, PrivateCountVectorizer)
    assert split.transform(["a a b"]).toarray().tolist() == [[2]]
