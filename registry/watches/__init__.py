"""Standing watches: what falls on a watched run or alias is noticed when the score arrives."""
