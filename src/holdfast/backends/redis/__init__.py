"""Redis and Valkey: working memory, transcripts with a time to live, the turn log, channels."""
