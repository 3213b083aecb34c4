"""The rules: what the facts about a file say about each. `table` tells which function reports which codes."""
