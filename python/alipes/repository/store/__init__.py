"""Where a repository's files lie: a folder, or a bucket."""
