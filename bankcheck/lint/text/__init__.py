"""A file as text: preprocessed, parsed, with the headers it includes; what it defines."""
