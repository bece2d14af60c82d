"""Patterns of a query in two scripts: a word of letters ends where Chinese begins, as in 在step 20000之前."""

import re


def pattern_of(text: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """With ASCII's idea of a word: for all of Unicode a Chinese character is a letter too, and `\\b` lies at no end."""
    return re.compile(text, flags | re.ASCII)
