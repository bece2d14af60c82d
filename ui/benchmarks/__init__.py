"""The benchmark table of a project: its rows, and the form of one."""
