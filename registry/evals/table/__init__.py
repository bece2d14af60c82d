"""The benchmark table of a project as people see and change it."""
