"""What runs a server on other machines: images, and what is written for those who start them."""
