//! Loads against servers that do what a test says.

mod chains;
mod hostile;
mod loops;
mod mixes;
mod streams;
mod support;
mod waves;
