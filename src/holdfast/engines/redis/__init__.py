"""Redis and Valkey: working memory, transcripts with a time to live, channels."""
