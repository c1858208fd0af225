"""The boundary: every step at which raw data becomes public, and nothing else.

The catalogue is made of the queries that the package registers; each says what it is, and by how
much one unit can move it, which its page in ``docs/proofs`` proves. Its `laws` and `coordinates`
pick its noise from `MECHANISMS` (mechanisms.py). The session refuses what is not listed here.
"""

from dataclasses import dataclass

from sktensor_dp.privacy.mechanisms import MECHANISMS, Mechanism
from sktensor_dp.privacy.partition_selection import PartitionSelection
from sktensor_dp.queries import (  # noqa: F401  # they register their queries
    count_moments,
    entries,
    expected_counts,
    gradients,
    held_out,
    mixtures,
    norm_histogram,
    person_entries,
    samples,
    texts,
    topic_shares,
)
from sktensor_dp.queries.laws import GAUSSIAN_THRESHOLDED
from sktensor_dp.queries.query import REGISTERED, Query


@dataclass(frozen=True)
class Release:
    """Entry of the catalogue: a query, and how the noise of its answer is drawn."""

    query: type[Query]
    gaussian: Mechanism | PartitionSelection  # for a cost in mu
    pure: Mechanism | PartitionSelection | None = None  # for a pure epsilon, if there is one


def _entry(query: type[Query]) -> Release:
    """Entry of a query; TypeError unless it has one law in mu and at most one pure law."""
    if [law.pure for law in query.laws] not in ([False], [False, True]):
        raise TypeError(f"{query.name}: laws must be one in mu, and then none or a pure one.")
    mechanisms: list[Mechanism | PartitionSelection] = []
    for law in query.laws:
        if law is GAUSSIAN_THRESHOLDED:
            mechanisms.append(PartitionSelection())
        elif (law, query.coordinates) in MECHANISMS:
            mechanisms.append(MECHANISMS[law, query.coordinates])
        else:
            raise TypeError(f"{query.name}: {law.id} noise cannot be drawn in {query.coordinates}.")
    return Release(query, *mechanisms)


CATALOGUE: dict[str, Release] = {name: _entry(query) for name, query in REGISTERED.items()}
