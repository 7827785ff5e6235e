"""Where hostile input can enter, for each contract."""
