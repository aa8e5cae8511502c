//! An HTTP client for one purpose: it posts spans to a collector.

use alipes_protocol::limits::{COLLECTOR_MAX_ANSWER_BYTES, COLLECTOR_TIME};
use alipes_tls::{CertificateWords, refusal};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::{Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::connector::connector;

/// What is said of a collector's certificate.
const COLLECTORS: CertificateWords = CertificateWords {
    whose: "the collector's certificate",
    judge: "this server",
    trust: "name the authority's with --trace-config=opentelemetry,certificate=FILE",
    authority: "name this very certificate with --trace-config=opentelemetry,certificate=FILE",
    name: "name the collector as its certificate does",
    usage: "serverAuth",
};

/// A collector's address.
pub struct Target {
    /// Host and port.
    authority: String,
    host: HeaderValue,
    path: String,
    tls: Option<Tls>,
}

/// Encryption of the connection, and the server name that the certificate must have.
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// Why a post failed.
#[derive(Debug)]
pub struct Failure {
    /// The message.
    pub text: String,
    /// Whether another attempt may succeed.
    pub passes: bool,
}

impl Target {
    /// The target of a URL. For https, the collector's certificate must lead to one of the roots in a file, or to one
    /// that the system trusts.
    ///
    /// # Errors
    ///
    /// The URL is malformed or not one of HTTP, or the roots cannot be read.
    pub fn of(url: &str, roots: Option<&str>) -> Result<Target, String> {
        let uri: Uri = url.parse().map_err(|error| format!("'{url}' is no URL: {error}"))?;
        let encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(format!("'{url}' begins neither with http:// nor with https://")),
        };
        let host = uri.host().ok_or_else(|| format!("'{url}' names no host"))?;
        let tls = if encrypted { Some(Tls::new(host, roots)?) } else { None };
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 }));
        let value = HeaderValue::from_str(&authority).map_err(|error| format!("'{url}': {error}"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Target { authority, host: value, path, tls })
    }

    /// Posts a message and waits for the status.
    ///
    /// # Errors
    ///
    /// The collector is unreachable, slow, or answers with an error.
    pub async fn post(&self, body: Vec<u8>) -> Result<(), Failure> {
        let failure = |text: String| Failure { text, passes: true };
        match timeout(COLLECTOR_TIME, self.exchange(body)).await {
            Err(_) => Err(failure(format!("no answer within {} s", COLLECTOR_TIME.as_secs()))),
            Ok(Err(text)) => Err(failure(text)),
            Ok(Ok(200..=299)) => Ok(()),
            // Source: OTLP, which names the statuses after which a client is to try again.
            Ok(Ok(status)) => {
                Err(Failure { text: format!("status {status}"), passes: matches!(status, 429 | 502 | 503 | 504) })
            }
        }
    }

    async fn exchange(&self, body: Vec<u8>) -> Result<u16, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let stream = TcpStream::connect(&self.authority).await.map_err(|error| text(&error))?;
        match &self.tls {
            None => self.ask(stream, body).await,
            Some(tls) => {
                let encrypted = tls.connector.connect(tls.name.clone(), stream).await;
                self.ask(encrypted.map_err(|error| refusal(&error, &COLLECTORS))?, body).await
            }
        }
    }

    async fn ask(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        body: Vec<u8>,
    ) -> Result<u16, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
        let connection = tokio::spawn(connection);
        let request = Request::post(&self.path)
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| text(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| text(&error))?;
        let status = answer.status().as_u16();
        let read = Limited::new(answer.into_body(), COLLECTOR_MAX_ANSWER_BYTES).collect().await;
        connection.abort();
        read.map(|_| status).map_err(|error| text(&error))
    }
}

impl Tls {
    fn new(host: &str, roots: Option<&str>) -> Result<Tls, String> {
        // An address of IPv6 stands in brackets in a URL.
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|error| format!("'{host}' is no name of a server: {error}"))?;
        Ok(Tls { connector: connector(roots)?, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_yields_its_target() {
        let target = Target::of("http://collector/v1/traces?x=1", None).unwrap();
        assert_eq!((target.authority.as_str(), target.path.as_str()), ("collector:80", "/v1/traces?x=1"));
        assert_eq!(Target::of("http://[::1]:4318", None).unwrap().authority, "[::1]:4318");
        for url in ["", "collector:4318", "ftp://collector/"] {
            assert!(Target::of(url, None).is_err(), "{url}");
        }
    }

    #[test]
    fn missing_roots_are_an_error() {
        let error = Target::of("https://collector/", Some("/nowhere/roots.pem")).err().unwrap();
        assert_eq!(error, "cannot use '/nowhere/roots.pem' for encrypted connections: there is no such file");
    }
}
