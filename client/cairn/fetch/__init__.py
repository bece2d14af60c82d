"""Copies a checkpoint into a folder of this machine: in parallel, resumable, verified, and whole or not at all.

Files are written into `DEST.partial`, whose journal says which pieces are there, so that a fetch that was broken off
goes on where it stopped. Only when every file has its size, and its digest where the manifest has one, the folder gets
its name. What is there already under that name is never touched.
"""

from cairn.fetch.fetch import Fetched, FetchFailed, fetch

__all__ = ["FetchFailed", "Fetched", "fetch"]
