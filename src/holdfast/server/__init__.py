"""The service: A2A over HTTP and gRPC, on the task ledger."""
