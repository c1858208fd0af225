"""A fit leaves what it would leave on a new estimator, whatever was fitted with it before."""

from cases import AXES, FRAMES, MODELS, OF_GROUPS, Case, Data, covered, observed, plain
from replaying import state


def earlier(case: Case) -> Data:
    """Data of another draw and another size."""
    data = case.draw(seed=1)
    if case.of.family == "tensors":
        return Data(data.X[:3, :3, :3])
    parts = (None if part is None else part[:40] for part in (data.y, data.groups))
    return Data(data.X[:40], *parts)


def used_before(case: Case):
    """The estimator after a fit of a table with names, by the parameters of another model."""
    peers = [name for name, model in MODELS.items()
             if (model.kind, model.family) == (case.of.kind, case.of.family)]  # fmt: skip
    peer = plain(peers[peers.index(case.model) - 1], payer="none")
    if set(FRAMES) <= {*AXES[case.of.family]["container"]} and case.of.family != "texts":
        peer = peer.with_(container="pandas")
    model, _ = observed(peer, earlier(peer))
    return model.set_params(**case.build().get_params(deep=False))


def holds(case: Case) -> None:
    # What a stream keeps of a ledger is the ledger's.
    case, data, kept = case.with_(payer="none"), case.draw(), []
    for used in (False, True):
        model = used_before(case) if used else case.build()
        model, _ = observed(case, data, model=model)
        kept.append(sorted(vars(model).items()))
    fresh, again = (state(one, whole=False) for one in kept)
    assert fresh == again


def other(row):
    return row.get("container") == "batches"


test_refit, test_refit_in_triples = covered(holds, OF_GROUPS, (*MODELS,), other)
