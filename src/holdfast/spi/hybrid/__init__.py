"""What the hybrid engine needs of its two sides: a hot log and hot states, and durable ones."""
