"""What the hybrid asks of its two sides: a hot log and states, and durable ones."""
