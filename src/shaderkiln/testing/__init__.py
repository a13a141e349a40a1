"""What tests of other implementations can use; needs the extra ``testing``."""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError as error:
    raise ImportError("shaderkiln.testing needs hypothesis: pip install 'shaderkiln[testing]'") from error
