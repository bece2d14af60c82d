"""The fault ledger: what stopped a run and when, what it cost, and which checkpoint is to blame for failing to load.

Stands below attempts and checkpoints, which tell it of every sign of life and every commit.
"""
