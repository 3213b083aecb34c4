"""`python -m bankcheck`."""

from bankcheck.cli import main

main()
