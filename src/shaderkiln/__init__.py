"""Shaderkiln: shaders compiled before people play."""

__version__ = "0.1.0"
