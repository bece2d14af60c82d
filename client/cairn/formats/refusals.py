"""The one error of the readers."""


class Refused(ValueError):
    """A file that cannot be read as what it is said to be; the message says what is wrong and what was expected."""
