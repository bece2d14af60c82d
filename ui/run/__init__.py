"""A run page: its plots, tables and sentences."""
