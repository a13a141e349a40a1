"""What differs between operating systems, each behind one module, which imports nothing else of the package.

A port to Windows or macOS begins here; what it needs beyond is named in docs/architecture.md. The simulated GPUs of
``drivers/targets.py`` are a matter of Linux too: the libraries that stand in for a kernel driver exist there alone.
"""
