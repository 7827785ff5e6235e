"""What an engine dumps and loads: the records of an archive, the same for every engine."""
