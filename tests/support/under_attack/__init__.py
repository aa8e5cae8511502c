"""Attacks on a server, and what they cost a client that behaves well.

`attacks` names them, `attackers` runs one in a process of its own, `measurement` measures beside it.
`tools/under-attack` writes what comes of it into `docs/explanation/under-attack.md`.
"""
