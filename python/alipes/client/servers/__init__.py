"""Several servers behind one client: their addresses, which of them is asked, and which of them is gone."""
