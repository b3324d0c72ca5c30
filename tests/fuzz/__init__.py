"""Fuzzing: many small fits of odd data with odd parameters, each of which must be right, or refused in words."""
