//! What a step calls that is no node: a model of this server, or an address of HTTP.

/// Where a step's request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A model of this server.
    Model(String),
    /// An address, which may be that of a model of this server.
    Url(Url),
}

/// An address of HTTP, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// The address as it was written.
    pub text: String,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// Host name or address, that of IPv6 in brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Path and query, with a slash in front.
    pub path: String,
    /// Host and port as they were written.
    pub authority: String,
}

impl Url {
    /// Takes an address apart.
    ///
    /// # Errors
    ///
    /// It is no address of HTTP, or has a password, which would be in logs.
    pub fn of(text: &str) -> Result<Url, String> {
        let (is_encrypted, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(format!("'{text}' begins neither with http:// nor with https://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(format!("'{text}' names a user: the service must do without"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:[]%".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_name) {
            return Err(format!("'{text}' names no host"));
        }
        let default = if is_encrypted { 443 } else { 80 };
        let port = port.filter(|port| !port.is_empty()).map_or(Ok(default), str::parse);
        let port = port.map_err(|_| format!("'{text}' names no port from 1 to 65535"))?;
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("'{text}' has a path with characters that must be percent-encoded"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (text, host, authority) = (text.to_owned(), host.to_owned(), authority.to_owned());
        Ok(Url { text, is_encrypted, host, port, path, authority })
    }

    /// Whether it may be the address of a model of this server: its path names nothing, or a model of V1 or V2.
    pub fn may_be_local(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        path == "/" || path.starts_with("/v1/models/") || path.starts_with("/v2/models/")
    }

    /// The model that may be meant where this server has one of the name: the first label of the host, without what
    /// KServe appends to the name of an InferenceService.
    pub fn service_name(&self) -> &str {
        let label = self.host.split('.').next().unwrap_or_default();
        label.strip_suffix("-predictor").unwrap_or(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_parts() {
        let url = Url::of("http://iris-predictor.default.svc:8080/v1/models/iris:predict?a=b#c").unwrap();
        assert_eq!((url.host.as_str(), url.port), ("iris-predictor.default.svc", 8080));
        assert_eq!((url.path.as_str(), url.service_name()), ("/v1/models/iris:predict?a=b", "iris"));
        assert_eq!(url.authority, "iris-predictor.default.svc:8080");
        let url = Url::of("https://[::1]").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str(), url.is_encrypted), ("[::1]", 443, "/", true));
        assert_eq!(Url::of("http://a?x").unwrap().path, "/?x");
    }

    #[test]
    fn an_address_with_another_path_is_no_model_of_this_server() {
        for (url, expected) in [
            ("http://iris", true),
            ("http://iris/?a=b", true),
            ("http://iris/v1/models/iris:predict", true),
            ("http://iris/v2/models/iris/infer?a", true),
            ("http://iris/any/path", false),
            ("http://iris/v2/repository/index", false),
        ] {
            assert_eq!(Url::of(url).unwrap().may_be_local(), expected, "{url}");
        }
    }

    #[test]
    fn what_nothing_can_be_sent_to_is_refused() {
        for (text, fault) in [
            ("", "begins neither"),
            ("iris:8080/", "begins neither"),
            ("http://", "names no host"),
            ("http://single-1.default.{$your-domain}/switch", "names no host"),
            ("http://a b/", "names no host"),
            ("http://a:x/", "names no port"),
            ("http://a:70000/", "names no port"),
            ("http://me:secret@a/", "names a user"),
            ("http://a/ü", "percent-encoded"),
            ("http://a/x\r\ny", "percent-encoded"),
        ] {
            assert!(Url::of(text).unwrap_err().contains(fault), "{text}");
        }
    }
}
