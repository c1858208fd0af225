"""A web page of private topics, made of released values alone."""

from sktensor_dp.topic_page.page import (
    Topic,
    odds_after,
    odds_in_hundred,
    page,
    topics_of,
    write_topic_page,
)

__all__ = ["Topic", "odds_after", "odds_in_hundred", "page", "topics_of", "write_topic_page"]
