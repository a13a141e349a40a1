"""The subobject that attaches an explicit PSDB session to one pipeline state or state object (EP-02, EP-09 to EP-12)."""

from __future__ import annotations

from typing import ClassVar, Protocol

from msgspec import Struct

from shaderkiln.descriptions.direct3d12.enums import ShaderCacheSessionSubobjectFlags, StateSubobjectType
from shaderkiln.errors import InvalidArgumentError


class ShaderCacheSession(Protocol):
    """A cache session, which descriptions only carry: what made it is all that they could ask."""

    def get_desc(self) -> object: ...


class ShaderCacheSessionSubobjectDesc(Struct, frozen=True, tag_field="class"):
    """D3D12_SHADER_CACHE_SESSION_SUBOBJECT_DESC. Without a session it means that none is named."""

    session: ShaderCacheSession | None = None
    flags: ShaderCacheSessionSubobjectFlags = ShaderCacheSessionSubobjectFlags.NONE

    subobject_type: ClassVar[StateSubobjectType] = StateSubobjectType.PSDB


def psdb_subobject(
    session: ShaderCacheSession | ShaderCacheSessionSubobjectDesc | None,
    flags: ShaderCacheSessionSubobjectFlags = ShaderCacheSessionSubobjectFlags.NONE,
) -> ShaderCacheSessionSubobjectDesc:
    """A checked subobject from a desc, or from a session and flags (EP-13).

    Raises InvalidArgumentError as ``check_psdb`` does, and for flags beside a desc, which has its own.
    """
    if isinstance(session, ShaderCacheSessionSubobjectDesc):
        if flags:
            raise InvalidArgumentError("psdb.flags: a desc has flags of its own; give flags only beside a session")
        desc = session
    else:
        desc = ShaderCacheSessionSubobjectDesc(session, flags)
    check_psdb(desc)
    return desc


def check_psdb(desc: ShaderCacheSessionSubobjectDesc, where: str = "psdb") -> None:
    """Raises InvalidArgumentError for unknown flags, and for flags without a session (EP-12)."""
    flags = int(desc.flags)
    if flags & ~int(ShaderCacheSessionSubobjectFlags.CREATE_ONLY):
        raise InvalidArgumentError(f"{where}.flags: {flags:#x} is no D3D12_SHADER_CACHE_SESSION_SUBOBJECT_FLAGS")
    if desc.session is None and flags:
        raise InvalidArgumentError(f"{where}.session: none is named, so flags must be NONE and not {flags:#x}")
