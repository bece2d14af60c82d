"""Callbacks of training frameworks, one module each: a framework is imported only by its own.

from cairn.callbacks.transformers import CairnCallback
from cairn.callbacks.lightning import CairnCallback
"""
