"""What differs between operating systems, each behind one module; a port to Windows or macOS is a matter of these.

These modules import nothing else of the package, and nobody else calls what only Linux or only Unix has. The simulated GPUs of
``drivers/targets.py`` are a matter of Linux too: the libraries that stand in for a kernel driver exist there alone.
"""
