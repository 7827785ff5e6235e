"""Studio: the state of your agents in a browser. A client of the contracts, on every engine."""
