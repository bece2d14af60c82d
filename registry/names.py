"""When two names of runs are one."""

import unicodedata


def run_name(said: str) -> str:
    """What reads the same is one name: without spaces around it, its letters composed (Unicode NFC).

    A file system may hand out 'é' as two code points, and a launch script a space too many: neither makes another run.
    """
    return composed(said).strip()


def composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
