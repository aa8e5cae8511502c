"""What watches a fleet: a dashboard for Grafana, and rules for Prometheus."""
