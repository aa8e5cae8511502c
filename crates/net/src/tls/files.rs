//! The certificate files of a listener, and the detection of their changes.

#![allow(clippy::disallowed_methods, reason = "certificates are read at start and by the reload task")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use alipes_spec::TlsSpec;
use alipes_tls::FileError;
use alipes_tls::files::{certificates, key, roots};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;

/// Identifies the content of files: device, inode, time of change and size of each.
pub type Stamp = Vec<Option<(u64, u64, i64, i64, u64)>>;

/// The stamp of a listener's files now. Links are followed: mounted secrets change by changing a link.
pub fn stamp(spec: &TlsSpec) -> Stamp {
    let paths = [Some(&spec.certificate), Some(&spec.key), spec.client_roots.as_ref()];
    let of = |path: &String| {
        let file = fs::metadata(path).ok()?;
        Some((file.dev(), file.ino(), file.mtime(), file.mtime_nsec(), file.size()))
    };
    paths.into_iter().flatten().map(of).collect()
}

/// Reads the files.
///
/// # Errors
///
/// One of them is absent, or does not hold what it should.
pub fn load(spec: &TlsSpec, protocols: &[&[u8]]) -> Result<ServerConfig, FileError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| FileError::new(&spec.certificate, &error))?;
    let builder = match &spec.client_roots {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(roots(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            builder.with_client_cert_verifier(verifier.build().map_err(|error| FileError::new(path, &error))?)
        }
    };
    let chain = certificates(&spec.certificate)?;
    let key = key(&spec.key)?;
    let mut config =
        builder.with_single_cert(chain, key).map_err(|error| FileError::of_certificate(&spec.certificate, &error))?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}
