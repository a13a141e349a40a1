"""Its place makes the helper modules of this folder importable in all tests."""
