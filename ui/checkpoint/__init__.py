"""A checkpoint page: what it holds, how it scored, where it is restored from."""
