"""Apps: Python files with decorated functions, served as a repository of models that is made for them.

`target` tells an app from a folder, `description` asks it what it has, `folders` writes its models, `serving` puts the
repository into the options of a server, `reload` follows the source.
"""
