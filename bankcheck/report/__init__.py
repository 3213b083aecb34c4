"""Reports: one module per form of output. They print what the analysis returns and compute nothing."""
