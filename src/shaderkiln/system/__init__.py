"""What differs between operating systems, each behind one module; a port to Windows or macOS is a matter of these.

These modules import nothing else of the package, and nobody else calls what only Linux or only Unix has. The one exception stands
in ``drivers/shims.py``: the libraries that stand in for the kernel's part of a driver exist for Linux alone.
"""
