"""The page of a search: in words, with evidence, or in the filter language, as a table."""
