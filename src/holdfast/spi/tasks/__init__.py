"""What an engine implements for tasks, one Protocol per subject."""
