"""The only way out of a box that may reach some addresses: sockets that listen there and are handed to the host."""

from __future__ import annotations

import fcntl
import socket
import struct

SIOCSIFADDR, SIOCSIFFLAGS, IFF_UP = 0x8916, 0x8914, 1


def listen(addresses: list[tuple[str, int]]) -> list[int]:
    """Descriptors of sockets that listen on these IPv4 addresses of the box's own network."""
    if not addresses:
        return []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        set_up(asking, "lo")
        outer = [address for address in dict(addresses) if not address.startswith("127.")]
        for number, address in enumerate(outer, 1):
            name = f"lo:{number}"
            place = struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(asking, SIOCSIFADDR, place)
    return [bound(address, port) for address, port in addresses]


def set_up(asking: socket.socket, name: str) -> None:
    fcntl.ioctl(asking, SIOCSIFFLAGS, struct.pack("16sH", name.encode(), IFF_UP))


def bound(address: str, port: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as place:
        place.bind((address, port))
        place.listen(128)
        return place.detach()
