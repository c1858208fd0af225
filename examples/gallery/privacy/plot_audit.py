"""
How do I audit my own private estimator?
========================================

Fit it many times on two data sets that differ in one person, and see
how well the results can be told apart. If they can be told apart better
than epsilon allows, there is a mistake.
:func:`~sktensor_dp.privacy.audit.audit` does this with a stated
confidence.
"""

# %%
# An estimator with a mistake
# ---------------------------
#
# **Epsilon** is a promise: whether one person's value is this or that
# changes the probability of any result by a factor of at most e to the
# power of epsilon. This estimator of a mean keeps it by adding Laplace
# noise. For a mean of n values between 0 and 1 the right scale of that
# noise is one over n times epsilon.
#
# If its author divides once too often, by 3 here, nobody sees that by
# looking at the results.

import numpy as np
from sklearn.base import BaseEstimator


class NoisyMean(BaseEstimator):
    """Mean of values between 0 and 1, with Laplace noise."""

    def __init__(self, epsilon=1.0, mistake=1.0):
        self.epsilon = epsilon
        self.mistake = mistake

    def fit(self, X, y=None):
        values = np.clip(X, 0, 1)
        scale = 1 / (len(values) * self.epsilon * self.mistake)
        # Fine for this page; never seed noise on real data.
        self.mean_ = values.mean() + np.random.default_rng().laplace(
            scale=scale
        )
        return self


right, wrong = (
    NoisyMean(epsilon=1.0),
    NoisyMean(epsilon=1.0, mistake=3.0),
)

# %%
# Two neighbours
# --------------
#
# An audit needs two data sets that differ in one person, as far as
# possible: here one value is 0 in the one and 1 in the other. It also
# needs a number to look at, which is the mean itself.

from sktensor_dp.privacy.audit import audit

data = np.full((10, 1), 0.5)
data[0] = 0
neighbour = data.copy()
neighbour[0] = 1

found = {}
for name, estimator in {
    "as it should be": right,
    "with the mistake": wrong,
}.items():
    found[name] = audit(
        estimator,
        data,
        neighbour,
        n_runs=2000,
        delta=0.0,
        statistic=lambda fitted: fitted.mean_,
    )
    print(
        f"{name}: epsilon is at least {found[name].epsilon_lower:.2f}; "
        "promised is 1"
    )

# %%
# The bounds hold with 95 % confidence. The second is above what was
# promised: the promise is refuted. The first is below. That proves
# nothing by itself, as a cleverer audit might find more; only a proof
# can bound epsilon from above.
#
# The picture shows what the audit has seen: how results are spread for
# each of the two data sets. The less the two overlap, the more they
# tell.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

figure, axes = plt.subplots(
    2,
    1,
    figsize=(6.4, 4.6),
    sharex=True,
    sharey=True,
    layout="constrained",
)
bins = np.linspace(0.1, 0.9, 65)
for axis, (name, result), estimator in zip(
    axes, found.items(), [right, wrong], strict=True
):
    for X, colour, label in [
        (data, "C0", "value is 0"),
        (neighbour, "C1", "value is 1"),
    ]:
        means = [estimator.fit(X).mean_ for _ in range(4000)]
        axis.hist(
            means,
            bins,
            density=True,
            color=colour,
            alpha=0.6,
            label=label,
        )
    least = result.epsilon_lower
    title = f"{name}: promised 1, audited at least {least:.2f}"
    axis.set_title(title, loc="left", fontsize="medium")
    axis.set(yticks=[])
    axis.spines[["top", "right", "left"]].set_visible(False)
axes[0].legend(frameon=False, title="one person's")
figure.supylabel("how often", fontsize="medium")
axes[1].set_xlabel("released mean")
plt.show()

# %%
# Estimators of this library
# --------------------------
#
# Theirs need no search for neighbours: ``worst_case`` returns data sets
# that move their releases as far as possible.

from sktensor_dp import PrivateCPCompletion
from sktensor_dp.privacy.audit import worst_case

model = PrivateCPCompletion(
    1, bounds=(0, 1), shape=(1, 1), epsilon=1.0, delta=0
)
case = worst_case(model)
print(
    audit(
        model,
        case.data,
        case.neighbour,
        n_runs=300,
        statistic=case.statistic,
    )
)

# %%
# What it costs
# -------------
#
# Nothing, as long as the data are made up, and they should be: an audit
# fits thousands of times and charges nobody.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/audit`: audits of every estimator, and what was found.
# - :doc:`/guarantee`: what is promised.
# - :func:`~sktensor_dp.privacy.audit.audit` and
#   :func:`~sktensor_dp.privacy.audit.worst_case`.
