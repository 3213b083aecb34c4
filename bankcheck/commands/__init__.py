"""The commands: each module reads options, calls the function of the same name, and prints its result."""
