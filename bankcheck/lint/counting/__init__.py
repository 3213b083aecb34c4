"""From an access with expressions for its address and its lanes to wavefronts, for all values of its symbols."""
