"""The translator's process: ``python -m shaderkiln.shaders.worker FD LIBRARY [MEMORY]``.

It says ``Hello``, then answers each request on the socket FD with ``Done`` until the other end closes. A translation that takes
longer than its request allows ends the process (SIGALRM), also where its parent is gone. MEMORY limits private data, in bytes.
"""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

from shaderkiln.drivers.frames import decode, frame, receive_payload
from shaderkiln.shaders.messages import Done, Hello, TranslationRequest
from shaderkiln.shaders.vkd3d import Vkd3dShader
from shaderkiln.system.limits import TIME_SIGNAL, end_after, leave_no_core_dump, limit_memory

_OUT_OF_MEMORY = -2
"""VKD3D_ERROR_OUT_OF_MEMORY"""


def serve(connection: socket.socket, library: Vkd3dShader) -> None:
    """Answer until the connection ends."""
    connection.sendall(frame(Hello(library.name, library.sources)))
    while (payload := receive_payload(connection)) is not None:
        request: TranslationRequest = decode(TranslationRequest, payload)
        end_after(max(1, request.seconds))
        try:
            answer = library.translate(request)
        except MemoryError:
            answer = Done(_OUT_OF_MEMORY, b"", "the translator has no memory left", 0.0)
        end_after(0)
        connection.sendall(frame(answer))


def main(arguments: Sequence[str]) -> int:
    """``FD LIBRARY [MEMORY]``"""
    if len(arguments) not in (2, 3):
        sys.stderr.write("usage: python -m shaderkiln.shaders.worker FD LIBRARY [MEMORY]\n")
        return 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(TIME_SIGNAL, signal.SIG_DFL)
    leave_no_core_dump()
    try:
        library = Vkd3dShader(arguments[1])
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if len(arguments) == 3:
        limit_memory(int(arguments[2]))
    # Without a parent nobody waits for an answer.
    with socket.socket(fileno=int(arguments[0])) as connection, suppress(ConnectionError):
        serve(connection, library)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
