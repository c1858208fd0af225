"""One self-contained web page that shows private topics and what they cost."""

from sktensor_dp.topic_page.page import Topic, topics_of, write_topic_page

__all__ = ["Topic", "topics_of", "write_topic_page"]
