"""What a run leaves behind: raw data, a table and a picture."""
