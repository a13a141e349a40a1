"""Shader cache sessions: memory, disk, file and registered behind one interface; control and debug messages."""

from .control import CacheControlFlags, CacheKindFlags, ShaderCacheControl, process_control
from .debug_layer import DebugLayer, DebugMessage, Severity, process_debug_layer
from .descs import (
    SESSION_SUPPORT,
    CacheFileDesc,
    CacheValueTypeFlags,
    DiskSessionDesc,
    FileSessionDesc,
    MemorySessionDesc,
    RegisteredSessionDesc,
    SessionDesc1,
    SessionFileFlags,
    SessionRegisteredFlags,
    ShaderCacheFlags,
    ShaderCacheMode,
    ShaderCacheSessionDesc,
    ShaderCacheSupportFlags,
)
from .factory import SessionEnvironment, create_shader_cache_session, create_shader_cache_session1
from .interface import Allocate, SessionReference, ShaderCacheSession, StoreFlags, ValueRequest

__all__ = [
    "SESSION_SUPPORT",
    "Allocate",
    "CacheControlFlags",
    "CacheFileDesc",
    "CacheKindFlags",
    "CacheValueTypeFlags",
    "DebugLayer",
    "DebugMessage",
    "DiskSessionDesc",
    "FileSessionDesc",
    "MemorySessionDesc",
    "RegisteredSessionDesc",
    "SessionDesc1",
    "SessionEnvironment",
    "SessionFileFlags",
    "SessionReference",
    "SessionRegisteredFlags",
    "Severity",
    "ShaderCacheControl",
    "ShaderCacheFlags",
    "ShaderCacheMode",
    "ShaderCacheSession",
    "ShaderCacheSessionDesc",
    "ShaderCacheSupportFlags",
    "StoreFlags",
    "ValueRequest",
    "create_shader_cache_session",
    "create_shader_cache_session1",
    "process_control",
    "process_debug_layer",
]
