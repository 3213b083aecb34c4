"""What to write instead: layouts that are tried on every access of an array before they are offered."""
