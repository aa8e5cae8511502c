//! The files behind encrypted connections.

#![allow(clippy::disallowed_methods, reason = "certificates are read at start and by the reload task")]

use std::fmt;
use std::fs;
use std::io::{self, Cursor};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{Error, InconsistentKeys, RootCertStore};

use crate::version::{IS_OTHER_THAN_VERSION_3, is_other_than_version_3};

/// Largest file that is read, in bytes: every root that browsers trust is a quarter of a megabyte.
const MAX_BYTES: u64 = 8 << 20;

/// Why a file cannot be used.
#[derive(Debug)]
pub struct FileError {
    path: String,
    cause: String,
}

impl FileError {
    /// An error about a file.
    pub fn new(path: &str, cause: &dyn fmt::Display) -> FileError {
        FileError { path: path.to_owned(), cause: cause.to_string() }
    }

    /// An error about a file's certificate, of which the library says what it does not like.
    pub fn of_certificate(path: &str, cause: &Error) -> FileError {
        match cause {
            Error::InvalidCertificate(why) if is_other_than_version_3(why) => {
                FileError::new(path, &format_args!("it {IS_OTHER_THAN_VERSION_3}: issue it again with some"))
            }
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => FileError::new(
                path,
                &"the key that goes with it is another certificate's: name the one it was issued for",
            ),
            cause => FileError::new(path, cause),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use '{}' for encrypted connections: {}", self.path, self.cause)
    }
}

impl std::error::Error for FileError {}

/// The roots in a file.
///
/// # Errors
///
/// It is absent, or does not hold what it should.
pub fn roots(path: &str) -> Result<RootCertStore, FileError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| FileError::new(path, &error))?;
    }
    Ok(roots)
}

/// The certificates in a file, in their order.
///
/// # Errors
///
/// It is absent, or does not hold what it should.
pub fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let pem = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(Cursor::new(pem)).collect();
    let found = found.map_err(|error| FileError::new(path, &error))?;
    if found.is_empty() {
        return Err(FileError::new(path, &"expected a certificate as PEM, found none"));
    }
    Ok(found)
}

/// The key in a file.
///
/// # Errors
///
/// It is absent, or does not hold what it should.
pub fn key(path: &str) -> Result<PrivateKeyDer<'static>, FileError> {
    let pem = read(path)?;
    if pem.windows(9).any(|part| part == b"ENCRYPTED") {
        return Err(FileError::new(path, &"the key is encrypted, expected one without a password"));
    }
    PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|error| FileError::new(path, &format_args!("expected a key as PEM: {error}")))
}

fn read(path: &str) -> Result<Vec<u8>, FileError> {
    let length = fs::metadata(path).map_err(|error| FileError::new(path, &reason(&error)))?.len();
    if length > MAX_BYTES {
        return Err(FileError::new(path, &format_args!("{length} bytes, expected at most {MAX_BYTES}")));
    }
    fs::read(path).map_err(|error| FileError::new(path, &reason(&error)))
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    }
}
