"""Other toolkits' import names, answered to by alipes where a script asks for it.

Nothing here is imported by the rest of the package, and importing `alipes` alone changes nothing about imports:
`alipes.compat.hermes` says how a script opts in.
"""
