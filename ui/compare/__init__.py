"""The page of a comparison: the sentence, the scores, and what else changed."""
