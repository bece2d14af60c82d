"""What has to be written again where a process goes on in another folder."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator

from cairn.spool.memory import MEMORY_RECORDS, Waiting

HEADS = ("start", "attempt")  # without which nobody can send the records of a stream
HEADS_BYTES = 4 * 1024 * 1024
Numbered = tuple[int, bytes]


class Again:
    """Of one writer. Its lock is held around each call."""

    def __init__(self) -> None:
        self._heads: list[Numbered] = []
        self._since_lease: deque[Numbered] = deque(maxlen=MEMORY_RECORDS)

    def opens(self, number: int, body: bytes) -> None:
        """This record opens an attempt."""
        self._heads.append((number, body))
        while len(self._heads) > 1 and sum(len(each) for _, each in self._heads) > HEADS_BYTES:
            del self._heads[0]

    def written(self, numbered: Iterable[Numbered]) -> None:
        """These were, into a folder that may have been lost since its lease was last renewed."""
        self._since_lease.extend(numbered)

    def renewed(self) -> None:
        """It was not: whoever takes it over from now on finds them."""
        self._since_lease.clear()

    def missed(self) -> list[Waiting]:
        """What others, who have taken the folder over, may not have read."""
        found = [Waiting(number, body) for number, body in self._since_lease]
        self._since_lease.clear()
        return found

    def heads(self, there: Collection[int]) -> Iterator[Waiting]:
        """Each folder can be sent by itself: what opens its attempts stands in it, sent already or not."""
        return (Waiting(number, body) for number, body in self._heads if number not in there)
