"""`bankcheck verify`: a GPU confirms that the lanes get the data and that a request takes the wavefronts predicted."""
