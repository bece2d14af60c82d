"""Whether this installation is well: looked at, never changed. What `cairn-server doctor` prints."""
