"""A Helm chart whose values are a description. The templates beside this file give what the plain writer gives."""
