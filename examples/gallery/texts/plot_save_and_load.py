"""
How do I save a private model and use it elsewhere?
===================================================

Call ``save``, copy the file, and call ``load`` on the other computer.
The file holds what was released and nothing of the texts, so it may be
given to anyone who may see the topics.
"""

# %%
# Where the data are
# ------------------
#
# A hospital learns what its patients' messages are about. They are
# counts of words here, made up from three subjects.

import numpy as np

WORDS = [
    "date",
    "doctor",
    "appointment",
    "cancel",
    "pain",
    "fever",
    "cough",
    "tablet",
    "bill",
    "insurance",
    "refund",
    "paid",
]
SUBJECTS = np.repeat(np.eye(3), 4, axis=1) * 0.22 + 0.01

rng = np.random.default_rng(0)
shares = rng.dirichlet(np.full(3, 0.2), size=20_000)
messages = rng.multinomial(
    10, shares @ (SUBJECTS / SUBJECTS.sum(axis=1, keepdims=True))
)

# %%
# The fit adds noise, so that one message cannot be recognised in the
# topics. **Epsilon** says how well that is hidden: odds that a message
# was there rather than another change by a factor of at most e to the
# power of epsilon.

import tempfile
from pathlib import Path

from sktensor_dp import PrivateSpectralLDA

folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "topics.model"

lda = PrivateSpectralLDA(3, epsilon=1.0).fit(messages)
lda.save(file)
print(f"{file.name}: {file.stat().st_size:,} bytes")

# %%
# Somewhere else
# --------------
#
# A clinic that has never seen these messages loads the model. Loading
# runs no code of the file and checks every number in it, unlike pickle.
# The privacy report comes with the model.

elsewhere = PrivateSpectralLDA.load(file)
print(elsewhere.privacy_report_.guarantee)
print(
    "same topics, bit for bit:",
    np.array_equal(elsewhere.components_, lda.components_),
)

# %%
# The clinic asks which subjects its own new messages have. What it
# hands to ``transform`` is its own data, and so is the answer: noise
# protects neither.

new = [
    "fever cough pain tablet fever",
    "cancel appointment date doctor",
    "doctor bill paid refund",
]
counts = np.array(
    [[message.split().count(word) for word in WORDS] for message in new]
)
found = elsewhere.transform(counts)

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

titles = [", ".join(words) for words in elsewhere.top_words(3, WORDS)]
figure, axis = plt.subplots(figsize=(6.4, 3), layout="constrained")
left = np.zeros(len(new))
for title, share, colour in zip(
    titles, 100 * found.T, ["C0", "C1", "C2"], strict=True
):
    axis.barh(
        range(len(new)),
        share,
        left=left,
        color=colour,
        label=title,
        edgecolor="white",
    )
    left += share
axis.set_yticks(
    range(len(new)),
    [f"“{message}”" for message in new],
    fontsize="small",
)
axis.invert_yaxis()
axis.set(xlabel="share of the topic in the message (%)", xlim=(0, 100))
axis.spines[["top", "right"]].set_visible(False)
figure.legend(
    loc="outside upper right", frameon=False, fontsize="small", ncols=3
)
plt.show()

folder.cleanup()

# %%
# What it costs
# -------------
#
# The fit cost epsilon = 1 for each message. Saving, copying, loading
# and using the model cost nothing more, however often they are done:
# all of them look at released values only.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/model_files`: what is in the file, and what is checked.
# - :doc:`/security`: whom you have to trust with what.
# - :class:`~sktensor_dp.PrivateSpectralLDA`: ``save`` and ``load``,
#   which all estimators have.
