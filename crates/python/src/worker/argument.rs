//! Arguments of Triton's constructors. Its binding refuses `None` where a default stands, so the two are told apart.

use std::convert::Infallible;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::errors::wrong_arguments;

/// An argument that need not be given. `None` is given like any other.
pub enum Argument<'py> {
    /// It was left out.
    Absent,
    /// It is this object.
    Given(Bound<'py, PyAny>),
}

impl<'py> Argument<'py> {
    /// What was given, or the default.
    ///
    /// # Errors
    ///
    /// `TypeError` with the constructor's arguments where it is something else.
    pub fn or<T: FromPyObjectOwned<'py>>(self, default: T, supported: &str) -> PyResult<T> {
        match self {
            Argument::Absent => Ok(default),
            Argument::Given(object) => object.extract().map_err(|_| wrong_arguments(supported, &object)),
        }
    }

    /// What was given.
    ///
    /// # Errors
    ///
    /// `TypeError` where nothing was.
    pub fn required(self, py: Python<'py>, name: &str, supported: &str) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Argument::Given(object) => Ok(object),
            Argument::Absent => Err(wrong_arguments(supported, &PyString::new(py, &format!("no {name}")))),
        }
    }
}

/// A text: a `str`, or `bytes` of UTF-8, as Triton's binding takes them. `None` where it is something else.
pub fn text<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyString>> {
    if let Ok(text) = object.cast::<PyString>() {
        return Some(text.clone());
    }
    let bytes = object.cast::<PyBytes>().ok()?;
    Some(PyString::new(object.py(), std::str::from_utf8(bytes.as_bytes()).ok()?))
}

/// A text as [`text`] takes it, copied.
pub fn string(object: &Bound<'_, PyAny>) -> Option<String> {
    Some(text(object)?.to_str().ok()?.to_owned())
}

impl<'py> FromPyObject<'_, 'py> for Argument<'py> {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Argument::Given(object.to_owned()))
    }
}
