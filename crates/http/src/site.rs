//! Requests that a browser sends for a page of another site: refused where they change something.
//!
//! A browser sends the POST of a page to any server that its machine reaches, and asks only then whether the page may
//! read the answer. So a page could load a model on the machine of the person who looks at that page. A page cannot set
//! `Origin` or `Sec-Fetch-Site`; other clients send neither, and are not looked at. Source: the Fetch standard, and
//! *Fetch Metadata Request Headers*.
//!
//! A page whose own name leads to this machine by now (DNS rebinding) is of the same origin as the server. Its name is
//! one of the public DNS, which a server of this machine has where a proxy gives it one.

use std::net::{IpAddr, Ipv4Addr};

use alipes_net::restricted::Group;
use alipes_spec::ServerConfig;
use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::{Request, Response, StatusCode};

use super::response::{self, JSON, ResponseBody, error_body};
use super::route::Route;

/// Stands for every origin, and for every host.
const ANY: &str = "*";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Endings of names that the public DNS has not, so that no page from outside can be of them. Sources: RFC 6761,
/// RFC 6762, RFC 8375, and ICANN's reservation of `.internal`.
const PRIVATE: [&str; 5] = [".localhost", ".local", ".internal", ".test", ".home.arpa"];

/// Most characters of a header that a refusal repeats.
const SHOWN_CHARACTERS: usize = 100;

/// Which pages may change something, and under which names the server is reached.
pub struct SitePolicy {
    /// Origins whose pages may send any request; none where every one may.
    origins: Option<Vec<String>>,
    /// Names of the server beside those that nobody else can have; none where it has any.
    hosts: Option<Vec<String>>,
    /// Whether every request must come under one of the names, reads too.
    is_strict: bool,
    /// Whether the listener is one for this machine alone.
    is_on_loopback: bool,
}

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub enum SiteFault {
    /// A page of another site would change something; empty where the browser does not say of which.
    Origin(String),
    /// The host that the request names is none of this server.
    Host(String),
}

impl SitePolicy {
    /// What the configuration says.
    pub fn new(config: &ServerConfig) -> SitePolicy {
        let (origins, hosts) = (&config.http_cors_origins, &config.http_allowed_hosts);
        let address = config.http.address.as_str();
        // The host of an origin that may send anything is no rebound name.
        let of_origins = origins.iter().filter_map(|origin| Some(name_in(origin.split_once("://")?.1)));
        let known = hosts.iter().map(String::as_str).chain([address]).chain(of_origins);
        SitePolicy {
            origins: (!origins.iter().any(|origin| origin == ANY)).then(|| origins.clone()),
            hosts: (!hosts.iter().any(|host| host == ANY)).then(|| known.map(str::to_owned).collect()),
            is_strict: !hosts.is_empty(),
            is_on_loopback: address == "localhost" || address.parse::<IpAddr>().is_ok_and(is_loopback),
        }
    }

    /// What keeps a request from being served; none of nearly all.
    ///
    /// `peer` is the address of the client; none over a Unix socket.
    #[inline]
    pub fn fault<B>(&self, request: &Request<B>, peer: Option<IpAddr>) -> Option<SiteFault> {
        if self.is_strict && !self.has_known_host(request) {
            return Some(SiteFault::Host(host_of(request).to_owned()));
        }
        if request.method().is_safe() {
            return None;
        }
        let headers = request.headers();
        let (origin, site) = (headers.get(ORIGIN), headers.get(SEC_FETCH_SITE));
        if origin.is_none() && site.is_none() && !self.is_on_loopback {
            return None;
        }
        self.fault_of_change(request, origin, site, peer)
    }

    fn fault_of_change<B>(
        &self,
        request: &Request<B>,
        origin: Option<&HeaderValue>,
        site: Option<&HeaderValue>,
        peer: Option<IpAddr>,
    ) -> Option<SiteFault> {
        let host = || SiteFault::Host(host_of(request).to_owned());
        if self.is_on_loopback && !self.has_known_host(request) && is_control(request) {
            return Some(host());
        }
        if self.allows(origin) {
            return None;
        }
        match (site, origin) {
            // Browsers say so of encrypted connections and of this machine's own names alone, which cannot be rebound.
            (Some(site), _) if site == "same-origin" || site == "none" => None,
            (None, None) => None,
            (None, Some(origin)) if is_same(origin, host_of(request)) => {
                (peer.is_some_and(is_loopback) && !self.has_known_host(request)).then(host)
            }
            (_, origin) => {
                let origin = origin.map(HeaderValue::as_bytes).unwrap_or_default();
                Some(SiteFault::Origin(String::from_utf8_lossy(origin).into_owned()))
            }
        }
    }

    /// Whether pages of an origin may send any request.
    fn allows(&self, origin: Option<&HeaderValue>) -> bool {
        match (&self.origins, origin) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(origins), Some(origin)) => origins.iter().any(|known| known.as_bytes() == origin.as_bytes()),
        }
    }

    /// Whether the host of a request is a name of this server, or one that no page from outside can have.
    fn has_known_host<B>(&self, request: &Request<B>) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let name = name_in(host_of(request));
        !name.contains('.')
            || name.parse::<Ipv4Addr>().is_ok()
            || PRIVATE.iter().any(|ending| ends_with(name, ending))
            || hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }
}

impl SiteFault {
    /// The answer: 403, and what would allow the request.
    pub fn response(&self) -> Response<ResponseBody> {
        let text = match self {
            SiteFault::Origin(origin) if origin.is_empty() => {
                "a page of another site may not send this request: --cors-origins names the origins that may".to_owned()
            }
            SiteFault::Origin(origin) => format!(
                "a page of '{}' may not send this request: --cors-origins names the origins that may",
                shown(origin)
            ),
            SiteFault::Host(host) => {
                format!("'{}' is no name of this server: --allowed-hosts names those that it has", shown(host))
            }
        };
        response::new(StatusCode::FORBIDDEN, JSON, error_body(&text))
    }
}

/// Whether an address leads back to the machine, also where IPv6 stands for IPv4.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether a request is about what is served, traced, logged or shared.
#[cold]
fn is_control<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    let group = Route::of(request.method(), path).group(path);
    matches!(
        group,
        Some(Group::ModelRepository | Group::ModelControl | Group::SharedMemory | Group::Trace | Group::Logging)
    )
}

/// The host that a request names, with its port: HTTP/2 has it in the address. Empty where it is no text.
fn host_of<B>(request: &Request<B>) -> &str {
    match request.uri().authority() {
        Some(authority) => authority.as_str(),
        None => request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default(),
    }
}

/// The name in a host, without its port and without the dot of the root. One in brackets, which holds no dot unless it
/// is IPv4's, is an address: it keeps only what stands before its first colon.
fn name_in(host: &str) -> &str {
    let name = host.split_once(':').map_or(host, |(name, _port)| name);
    name.strip_suffix('.').unwrap_or(name)
}

/// Whether an origin is that of a host, over whichever scheme: a proxy may encrypt.
fn is_same(origin: &HeaderValue, host: &str) -> bool {
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    !host.is_empty() && authority.is_some_and(|(_scheme, authority)| authority.eq_ignore_ascii_case(host))
}

fn ends_with(name: &str, ending: &str) -> bool {
    let start = name.len().checked_sub(ending.len());
    start.and_then(|start| name.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

/// The beginning of a text.
fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN_CHARACTERS).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    const THERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
    const LOAD: &str = "/v2/repository/models/m/load";
    const INFER: &str = "/v2/models/m/infer";

    fn policy(address: &str, origins: &[&str], hosts: &[&str]) -> SitePolicy {
        let config = serde_json::json!({
            "schema": 1, "id": "x", "control_mode": "none", "counter_latencies": true, "cpu_metrics": true,
            "http": {"enabled": true, "address": address, "port": 0},
            "grpc": {"enabled": false, "address": "", "port": 0},
            "metrics": {"enabled": false, "address": "", "port": 0},
            "http_cors_origins": origins, "http_allowed_hosts": hosts,
        });
        SitePolicy::new(&serde_json::from_value(config).unwrap())
    }

    fn request(path: &str, host: &str, headers: &[(&str, &str)]) -> Request<()> {
        let begun = Request::builder().method(Method::POST).uri(path).header(HOST, host);
        headers.iter().fold(begun, |begun, (name, value)| begun.header(*name, *value)).body(()).unwrap()
    }

    fn is_refused(policy: &SitePolicy, request: &Request<()>, peer: Option<IpAddr>) -> bool {
        policy.fault(request, peer).is_some()
    }

    #[test]
    fn a_page_of_another_site_changes_nothing_and_reads_as_ever() {
        let policy = policy("0.0.0.0", &["https://a"], &[]);
        for headers in [
            &[("origin", "http://evil")][..],
            &[("origin", "null")],
            &[("origin", "")],
            &[("sec-fetch-site", "cross-site")],
            &[("origin", "http://b:8000")],
            &[("origin", "https://a.b"), ("sec-fetch-site", "cross-site")],
            &[("origin", "http://s:8000"), ("sec-fetch-site", "same-site")],
        ] {
            let mut sent = request(INFER, "s:8000", headers);
            assert!(is_refused(&policy, &sent, THERE), "{headers:?}");
            *sent.method_mut() = Method::GET;
            assert!(!is_refused(&policy, &sent, THERE), "{headers:?}");
        }
    }

    #[test]
    fn pages_of_the_server_and_of_allowed_origins_and_other_clients_are_served() {
        let policy = policy("0.0.0.0", &["https://a"], &[]);
        for headers in [
            &[][..],
            &[("origin", "https://a"), ("sec-fetch-site", "cross-site")],
            &[("origin", "http://S:8000")],
            &[("origin", "https://public.example"), ("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(!is_refused(&policy, &request(LOAD, "s:8000", headers), HERE), "{headers:?}");
        }
        let any = self::policy("127.0.0.1", &["*"], &[]);
        assert!(!is_refused(&any, &request(INFER, "s", &[("origin", "null"), ("sec-fetch-site", "cross-site")]), HERE));
    }

    #[test]
    fn a_page_of_a_public_name_is_of_another_site_on_this_machine() {
        let policy = policy("0.0.0.0", &["https://app.example"], &[]);
        let of = |host: &str| request(INFER, host, &[("origin", &format!("http://{host}"))]);
        for host in ["rebound.example", "rebound.example:8000", "127.0.0.1.nip.example", "rebound.example."] {
            assert!(is_refused(&policy, &of(host), HERE), "{host}");
            assert!(is_refused(&policy, &of(host), Some("::ffff:127.0.0.1".parse().unwrap())), "{host}");
            assert!(!is_refused(&policy, &of(host), THERE), "{host}");
        }
        for host in
            ["localhost:8000", "LOCALHOST.", "127.0.0.1:8000", "[::1]:8000", "10.1.2.3", "laptop", "laptop.local"]
        {
            assert!(!is_refused(&policy, &of(host), HERE), "{host}");
        }
        assert!(!is_refused(&policy, &request(INFER, "rebound.example", &[]), HERE), "no browser");
        assert!(!is_refused(&policy, &of("app.example"), HERE), "its pages may send anything");
    }

    #[test]
    fn a_listener_of_this_machine_is_controlled_under_its_own_names_alone() {
        for address in ["127.0.0.1", "127.1.2.3", "::1", "localhost"] {
            let policy = policy(address, &[], &[]);
            for (path, host, is_refused) in [
                (LOAD, "rebound.example", true),
                ("/v2/logging", "rebound.example", true),
                (INFER, "rebound.example", false),
                (LOAD, "localhost:8000", false),
                (LOAD, "", false),
            ] {
                assert_eq!(self::is_refused(&policy, &request(path, host, &[]), HERE), is_refused, "{path} {host}");
            }
        }
        let open = policy("0.0.0.0", &[], &[]);
        assert!(!is_refused(&open, &request(LOAD, "models.example", &[]), HERE));
    }

    #[test]
    fn where_hosts_are_named_every_request_has_one_of_them() {
        let policy = policy("0.0.0.0", &[], &["models.example"]);
        for (host, is_refused) in [("models.example", false), ("Models.Example:80", false), ("other.example", true)] {
            let mut sent = request("/v2", host, &[]);
            *sent.method_mut() = Method::GET;
            assert_eq!(self::is_refused(&policy, &sent, THERE), is_refused, "{host}");
        }
        let same = request(LOAD, "models.example", &[("origin", "http://models.example")]);
        assert!(!is_refused(&policy, &same, HERE));
        let over_http2 = Request::post("https://other.example/v2").body(()).unwrap();
        assert!(is_refused(&policy, &over_http2, THERE));
        let any = self::policy("127.0.0.1", &[], &["*"]);
        assert!(!is_refused(&any, &request(LOAD, "rebound.example", &[]), HERE));
    }

    #[test]
    fn a_refusal_repeats_little_of_what_was_sent() {
        let text = "é".repeat(5000);
        assert_eq!(shown(&text).chars().count(), SHOWN_CHARACTERS);
        assert_eq!(shown("short"), "short");
    }
}
