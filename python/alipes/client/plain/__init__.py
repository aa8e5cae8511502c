"""The plain clients: one call, one answer, over HTTP or gRPC, waited for or awaited."""
