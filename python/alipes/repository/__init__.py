"""Where models live: repositories of model folders, and the versions in them."""
