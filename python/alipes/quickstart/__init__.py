"""The first five minutes: a server, a real model and real scans, shown in a terminal."""
