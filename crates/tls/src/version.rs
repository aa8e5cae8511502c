//! Versions of certificates.

use rustls::CertificateError;

/// What the library says of a certificate of version 1 or 2, which it has no error of its own for.
const OTHER_VERSION: &str = "UnsupportedCertVersion";

/// What is said of such a certificate, behind whose it is.
pub const IS_OTHER_THAN_VERSION_3: &str =
    "is not of X.509 version 3, as `openssl x509 -req` issues it without extensions";

/// Whether a certificate is refused since it is not of X.509 version 3: older ones have no extensions, and so do not
/// say what they may be used for.
pub fn is_other_than_version_3(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(why) if why.to_string() == OTHER_VERSION)
}
