"""Still pictures of conflicts as SVG (and, through `png`, as pixels): one module for each thing that is drawn."""
