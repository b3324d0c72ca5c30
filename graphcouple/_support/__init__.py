"""Support for every other folder: checks of arguments, registries of names, files, and tables in notebooks."""
