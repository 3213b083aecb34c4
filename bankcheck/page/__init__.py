"""Interactive pages: one self-contained HTML file that shows which lane touches which bank, and who waits for whom."""
