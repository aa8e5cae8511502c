//! Doors and books.
