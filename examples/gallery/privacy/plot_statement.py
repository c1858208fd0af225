"""
What do I show the data protection officer?
===========================================

The privacy statement: one file for each fit that says what was
released, who is protected, and how well. A program checks that its
numbers fit together, so nobody has to take them on trust from the page.
"""

# %%
# A fit, and its statement
# ------------------------
#
# Twenty thousand messages, as counts of fifty words. They are made up.

import numpy as np

from sktensor_dp import PrivateSpectralLDA

rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(50, 0.1), size=3)
messages = rng.multinomial(
    20, rng.dirichlet(np.full(3, 0.3), size=20_000) @ topics
)

lda = PrivateSpectralLDA(n_components=3, epsilon=1.0, delta=1e-6).fit(
    messages
)
statement = lda.privacy_report_.to_json()

# %%
# In one sentence
# ---------------
#
# **Epsilon** limits odds: for whoever sees the topics, the odds that a
# certain message was among them rather than another change by a factor
# of at most e to the power of epsilon, 2.7 here. **Delta** is a tiny
# probability beside it. The statement says who is protected in words:

import json

parts = json.loads(statement)
print(parts["guarantee"]["in_words"])
print(parts["unit"]["in_words"])
print(parts["neighbours"]["in_words"])

# %%
# What was released
# -----------------
#
# The fit looked at the messages a few times. Each look is a *release*:
# a sum over all messages, with random noise. The *sensitivity* is how
# far one message can move that sum. The larger the noise is against it,
# the less the release tells, and the smaller is its fraction of the
# budget.

for release in parts["composition"]["releases"]:
    ratio = release["sigma"] / release["sensitivity"]
    print(f"{release['name']}: {release['description']}")
    print(
        f"    noise is {ratio:.0f} times what one message can change; "
        f"{release['fraction']:.0%} of the budget"
    )

# %%
# The releases in the order in which they were made, and what each took
# of the budget:

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

releases = parts["composition"]["releases"]
names = [
    f"{n}. {made['name'].replace('_', ' ')}"
    for n, made in enumerate(releases, start=1)
]
share = [100 * made["fraction"] for made in releases]
figure, axis = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
bars = axis.barh(names, share, color="C0")
axis.bar_label(bars, fmt="%.1f %%", padding=4)
axis.invert_yaxis()
axis.set(xlabel="share of the privacy budget (%)", xlim=(0, 100))
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Does it add up?
# ---------------
#
# In a terminal, ``sktensor-dp report check statement.json`` adds
# the costs up again. In Python:

from sktensor_dp import StatementError, load_statement

print(load_statement(statement).guarantee)

# %%
# Somebody who makes epsilon look smaller than it is will be found out,
# because the noise and the costs no longer fit:

parts["guarantee"]["epsilon"] = 0.1
try:
    load_statement(json.dumps(parts))
except StatementError as reason:
    print(str(reason).splitlines()[0])

# %%
# What is not covered
# -------------------
#
# The statement ends with what the promise does not extend to:

for limit in parts["not_covered"]:
    print("-", limit["in_words"])

# %%
# A check shows that the numbers belong together. It does not show that
# the fit was made as stated: for that, ask who ran it, and have them
# sign the file.
#
# What it costs
# -------------
#
# The fit cost epsilon = 1 for each message. The statement costs
# nothing, holds none of the data, and may be published with the model.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/statement`: every field, and the questions of NIST SP
#   800-226.
# - :doc:`/guarantee`: what the words mean.
# - :class:`~sktensor_dp.PrivacyReport`: tables, frames and JSON.
