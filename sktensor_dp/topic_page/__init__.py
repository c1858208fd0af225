"""A web page of private topics, made of released values alone."""

from sktensor_dp.topic_page.page import Topic, topics_of, write_topic_page

__all__ = ["Topic", "topics_of", "write_topic_page"]
