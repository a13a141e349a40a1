"""What ``Direct3D12Device.check_feature_support`` answers (EP-06, EP-08)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from shaderkiln.sessions.descs import SESSION_SUPPORT, ShaderCacheSupportFlags


class Feature(IntEnum):
    """D3D12_FEATURE: the features of this package.

    EXPLICIT_PSDBS has no published number yet; the one here is provisional.
    """

    SHADER_CACHE = 19
    SHADER_CACHE_ABI_SUPPORT = 61
    EXPLICIT_PSDBS = 66


@dataclass(frozen=True, slots=True)
class FeatureDataExplicitPsdbs:
    """D3D12_FEATURE_DATA_EXPLICIT_PSDBS."""

    explicit_psdbs_supported: bool
    """Whether the adapter can create pipelines from stored object code."""


@dataclass(frozen=True, slots=True)
class FeatureDataShaderCache:
    """D3D12_FEATURE_DATA_SHADER_CACHE."""

    support_flags: ShaderCacheSupportFlags


@dataclass(frozen=True, slots=True)
class FeatureDataShaderCacheAbiSupport:
    """D3D12_FEATURE_DATA_SHADER_CACHE_ABI_SUPPORT: which PSDBs the driver takes. Versions are of four 16-bit parts."""

    adapter_family: str
    minimum_abi_support_version: int
    maximum_abi_support_version: int
    compiler_version: str
    application_profile_version: int


FeatureData = FeatureDataExplicitPsdbs | FeatureDataShaderCache | FeatureDataShaderCacheAbiSupport

DEVICE_SUPPORT = SESSION_SUPPORT | ShaderCacheSupportFlags.LIBRARY | ShaderCacheSupportFlags.DRIVER_MANAGED_CACHE
"""What a device can do whose driver takes stored object code."""
