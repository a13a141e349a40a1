"""What ``Direct3D12Device.check_feature_support`` answers (EP-06, EP-08)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from shaderkiln.errors import InvalidArgumentError, ShaderkilnError
from shaderkiln.sessions.descs import SESSION_SUPPORT, ShaderCacheSupportFlags
from shaderkiln.sessions.factory import SessionEnvironment

from .components import properties


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


def feature_data(feature: Feature, environment: SessionEnvironment) -> FeatureData:
    """What a device with that environment can do. Raises as ``Direct3D12Device.check_feature_support``."""
    if feature == Feature.EXPLICIT_PSDBS:
        return FeatureDataExplicitPsdbs(environment.explicit_psdbs)
    if feature == Feature.SHADER_CACHE:
        return FeatureDataShaderCache(environment.support)
    if feature != Feature.SHADER_CACHE_ABI_SUPPORT:
        raise InvalidArgumentError(f"feature: {feature!r} is none that this device knows")
    if environment.compiler is None or not environment.explicit_psdbs:
        raise ShaderkilnError("the driver takes no stored object code, so it has no ABI versions")
    driver = properties(environment.compiler)
    return FeatureDataShaderCacheAbiSupport(
        driver.adapter_family,
        driver.minimum_abi_version,
        driver.maximum_abi_version,
        driver.compiler_version,
        driver.application_profile_version,
    )
