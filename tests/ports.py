"""Ports that nobody else takes between the moment they are found and the moment a server listens on them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """A port of the loopback that stays ours for the block: only who names it can listen on it, time and again.

    A bound socket that never listens keeps the system from giving the port to anybody else, also for an outgoing
    connection; whoever sets SO_REUSEADDR, as servers do, may still bind it. Until then a call to it is refused.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
