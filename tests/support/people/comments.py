"""Somebody with a CSV file of comments: a table, a figure and a page of its topics."""

from sklearn.pipeline import make_pipeline

from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, PrivateSpectralLDA
from sktensor_dp.datasets import load_texts
from sktensor_dp.plotting import figure_png, plot_topics
from sktensor_dp.topic_page import write_topic_page

texts = load_texts("comments.csv", "comment")
budget = BudgetAccountant(epsilon=4.0, delta=1e-6)
for_words, for_topics = budget.split([0.3, 0.7], thresholds=1)
counts = PrivateCountVectorizer(max_features=60, accountant=budget, **for_words)
lda = PrivateSpectralLDA(3, accountant=budget, random_state=0, **for_topics)
make_pipeline(counts, lda).fit(texts)

words = counts.get_feature_names_out()
lda.topic_table(words).to_csv("topics.csv")
figure = figure_png(plot_topics(lda.components_, words, lda.topic_prior_))
reports = {"words": counts.privacy_report_, "topics": lda.privacy_report_}
write_topic_page(
    "topics.html", model=lda, feature_names=words, reports=reports, total=budget.total(),
    figure_png=figure,
)  # fmt: skip
print(budget)
