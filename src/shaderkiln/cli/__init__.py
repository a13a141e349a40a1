"""The command ``kiln``: thin, it parses, calls the library and shows what came of it."""
