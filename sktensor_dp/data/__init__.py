"""Raw data as units of privacy: samples, counts, entries, slices, texts, in memory or in parts."""
