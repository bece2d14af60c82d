"""The page of a rollback: the question, the candidates, since when it fell."""
