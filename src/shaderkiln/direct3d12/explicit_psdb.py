"""Explicit PSDBs: cache sessions that descs name, each for devices of the adapter by whose device it was made (EP-09 to EP-12)."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from shaderkiln.descriptions.direct3d12.enums import ShaderCacheSessionSubobjectFlags
from shaderkiln.descriptions.direct3d12.psdb_subobject import ShaderCacheSessionSubobjectDesc, check_psdb
from shaderkiln.errors import InvalidArgumentError
from shaderkiln.identity import CompilerIdentity
from shaderkiln.sessions.interface import SessionReference, ShaderCacheSession

_adapters: WeakKeyDictionary[ShaderCacheSession, CompilerIdentity] = WeakKeyDictionary()
"""By which adapter's devices the sessions were made: their object code is for no other one."""


def made_by(compiler: CompilerIdentity, session: ShaderCacheSession) -> ShaderCacheSession:
    """The session, which was made by a device of that adapter."""
    _adapters[session] = compiler
    return session


def check_session(session: object, compiler: CompilerIdentity) -> ShaderCacheSession:
    """The session, if a device of that adapter has made it. Raises InvalidArgumentError otherwise."""
    if not isinstance(session, ShaderCacheSession):
        raise InvalidArgumentError(f"psdb.session: {type(session).__name__} is no shader cache session")
    adapter = _adapters.get(session)
    if adapter != compiler:
        whose = "no device" if adapter is None else f"a device of {adapter.family} or another driver build"
        raise InvalidArgumentError(f"psdb.session: made by {whose}, not by one of {compiler.family}")
    return session


class ExplicitPsdb:
    """The explicit PSDB of an object that is being created, which is kept open until its creation ends."""

    def __init__(self, desc: ShaderCacheSessionSubobjectDesc | None, compiler: CompilerIdentity) -> None:
        """Raises InvalidArgumentError for a subobject that is not valid, a closed session and one of another adapter."""
        self.session: ShaderCacheSession | None = None
        self._reference: SessionReference | None = None
        self._keep = False
        if desc is None:
            return
        check_psdb(desc)
        if desc.session is None:
            return
        self.session = check_session(desc.session, compiler)
        self._reference = self.session.retain()
        self._keep = not desc.flags & ShaderCacheSessionSubobjectFlags.CREATE_ONLY

    def kept(self) -> SessionReference | None:
        """The reference that the created object gets: none with CREATE_ONLY."""
        if not self._keep:
            return None
        reference, self._reference = self._reference, None
        return reference

    def __enter__(self) -> ExplicitPsdb:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reference is not None:
            self._reference.release()
