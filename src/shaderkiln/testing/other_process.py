"""A second process that opens sessions and does as it is told: ``python -m shaderkiln.testing.other_process``."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO, Self

from ..errors import ShaderkilnError
from ..identity import ApplicationIdentity, CompilerIdentity
from ..sessions import SessionEnvironment, ShaderCacheSession, StoreFlags, ValueRequest, create_shader_cache_session1
from ..sessions.descs import SessionDesc1


class OtherProcess:
    """A process with one session at a time. Errors that it meets are raised here. Use it in a ``with`` statement."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def open(
        self, desc: SessionDesc1, application: ApplicationIdentity | None = None, compiler: CompilerIdentity | None = None
    ) -> None:
        """Open a session, after closing the one before."""
        self._call("open", desc, application, compiler)

    def find(self, key: bytes) -> dict[int, bytes]:
        """Every value of a key by type; empty for an unknown key."""
        found: dict[int, bytes] = self._call("find", key)
        return found

    def store(self, key: bytes, values: Mapping[int, bytes], flags: StoreFlags) -> None:
        """``store_value1`` there."""
        self._call("store", key, dict(values), int(flags))

    def close(self) -> None:
        """Close the session; the process stays."""
        self._call("close")

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _call(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        pickle.dump((name, arguments), self._process.stdin)
        self._process.stdin.flush()
        error, result = pickle.load(self._process.stdout)
        if error is not None:
            kind, text, code = error
            raised: ShaderkilnError = kind(text)
            raised.code = code
            raise raised
        return result


class _Server:
    def __init__(self) -> None:
        self._session: ShaderCacheSession | None = None

    def open(self, desc: SessionDesc1, application: ApplicationIdentity | None, compiler: CompilerIdentity | None) -> None:
        self.close()
        self._session = create_shader_cache_session1(desc, SessionEnvironment(application, compiler))

    def find(self, key: bytes) -> dict[int, bytes]:
        assert self._session is not None
        requests = [ValueRequest(type) for type in (0, 1)]  # type: ignore[arg-type]
        try:
            self._session.find_value1(key, requests, lambda size, _: bytearray(size))
        except ShaderkilnError as error:
            if error.code != "DXGI_ERROR_NOT_FOUND":
                raise
        return {int(request.type): bytes(request.buffer) for request in requests if request.buffer is not None}

    def store(self, key: bytes, values: dict[int, bytes], flags: int) -> None:
        assert self._session is not None
        self._session.store_value1(key, list(values.items()), StoreFlags(flags))  # type: ignore[arg-type]

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    server = _Server()
    while True:
        try:
            name, arguments = pickle.load(requests)
        except EOFError:
            server.close()
            return
        try:
            answer: tuple[Any, Any] = (None, getattr(server, name)(*arguments))
        except ShaderkilnError as error:
            # Some errors need more than a text to be made: the nearest that does not.
            kind = next(one for one in type(error).__mro__ if one.__module__ == ShaderkilnError.__module__)
            answer = ((kind, str(error), error.code), None)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
