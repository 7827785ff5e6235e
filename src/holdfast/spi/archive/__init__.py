"""The records of an archive, which an engine dumps and loads; they are the same for all engines."""
