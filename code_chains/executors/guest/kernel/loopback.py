"""The only way out of a sandbox that may reach some addresses: listening sockets in it, which are handed to the host."""

from __future__ import annotations

import fcntl
import socket
import struct

SIOCSIFADDR, SIOCSIFFLAGS, IFF_UP = 0x8916, 0x8914, 1
MAX_BACKLOG = 128


def listen(addresses: list[tuple[str, int]]) -> list[int]:
    """Return descriptors of sockets that listen on IPv4 addresses of the sandbox's own network."""
    if not addresses:
        return []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        set_up(control, "lo")
        aliases = [address for address in dict(addresses) if not address.startswith("127.")]
        for number, address in enumerate(aliases, 1):
            name = f"lo:{number}"
            request = struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(control, SIOCSIFADDR, request)
    return [bind(address, port) for address, port in addresses]


def set_up(control: socket.socket, interface: str) -> None:
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH", interface.encode(), IFF_UP))


def bind(address: str, port: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as listener:
        listener.bind((address, port))
        listener.listen(MAX_BACKLOG)
        return listener.detach()
