"""Raw data as units of privacy: samples, counts, entries, persons, texts, in memory or in parts."""
