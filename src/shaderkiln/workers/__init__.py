"""Processes that hold a driver or a plugin's compiler: opened with the identity compared, fed, limited and buried here."""
