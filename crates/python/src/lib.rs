//! The binding: everything Python can see, on one screen.
