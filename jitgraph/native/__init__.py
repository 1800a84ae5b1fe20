"""Calls without Python: the native dispatcher, its callable type, and the records between them and specialisations."""
