"""Somebody with a CSV file of comments: a table, a figure and a page of its topics."""

from sklearn.pipeline import make_pipeline

from sktensor_dp import BudgetAccountant, PrivateCountVectorizer, PrivateSpectralLDA
from sktensor_dp.datasets import load_texts
from sktensor_dp.plotting import TopicsDisplay, save_svg
from sktensor_dp.topic_page import write_topic_page

texts = load_texts("comments.csv", "comment")
budget = BudgetAccountant(epsilon=4.0, delta=1e-6)
for_words, for_topics = budget.split([0.3, 0.7], ["vocabulary", "gaussian"])
counts = PrivateCountVectorizer(max_features=60, accountant=budget, **for_words)
lda = PrivateSpectralLDA(3, accountant=budget, random_state=0, **for_topics)
make_pipeline(counts, lda).fit(texts)

words = counts.get_feature_names_out()
lda.topic_table(words).to_csv("topics.csv")
save_svg(TopicsDisplay.from_estimator(lda, words).figure_, "topics.svg")
both = counts.privacy_report_.followed_by(lda.privacy_report_, budget.delta)
write_topic_page("topics.html", lda, words, report=both)
print(budget)
