"""What an engine implements: narrow Protocols on records that the contracts have checked."""
