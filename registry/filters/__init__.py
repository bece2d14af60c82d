"""The filter language: text -> syntax tree -> SQL with bound parameters, and back to canonical text."""
