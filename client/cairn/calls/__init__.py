"""The service's calls by subject. `cairn.Client` brings them together."""
