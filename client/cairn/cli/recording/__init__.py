"""What `cairn record` sends: options, lines of standard input, and what is added to a recorded checkpoint."""
