//! The page that a browser is shown at `/`: what serves, its models and their state, and where to go on.
//!
//! For others, `curl` and probes, the path does not exist, as in Triton; where the server runs as KServe's runtimes do,
//! they learn there that it is alive. All that comes from models, from repositories and from the client is escaped; the
//! page has no script, and its policy allows none.

use std::fmt::Write;
use std::sync::Arc;

use alipes_net::restricted::Group;
use alipes_protocol::InferError;
use alipes_protocol::limits::{PAGE_MAX_ROWS, PAGE_REASON_BYTES};
use alipes_service::offload::offload;
use alipes_service::{IndexEntry, Service, VERSION};
use bytes::Bytes;
use hyper::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderValue, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Response, StatusCode};

use super::response::{self, ResponseBody};

/// What the page shows are the server's metadata and its index: it needs the headers of both groups.
pub const GROUPS: [Group; 2] = [Group::Metadata, Group::ModelRepository];

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

const STYLE: &str = include_str!("page.css");

/// Nothing is loaded or run, and only this style applies; a test compares its hash with the style.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'sha256-6R6baUxA7vxGfO7P0ofcbjGp2Fuue+By7gsch6PliBw='; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// Where the documentation is published; empty while it is nowhere.
const DOCUMENTATION: &str = env!("CARGO_PKG_HOMEPAGE");

/// Whether a client asks for HTML by name, as browsers do. `*/*` asks for anything, which probes do.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/html")) && !parts.any(is_zero)
    })
}

/// Whether a parameter says that a media type is not acceptable.
fn is_zero(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    weight.is_some_and(|weight| weight.parse().is_ok_and(|weight: f32| weight == 0.0))
}

/// The answer to those who want no HTML, which probes of KServe and of load balancers ask for. Source: KServe.
pub fn alive() -> Response<ResponseBody> {
    let mut response = response::new(StatusCode::OK, response::JSON, Bytes::from_static(br#"{"status":"alive"}"#));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response::signed(response)
}

/// The page: written on this thread, or beside it where there are many models.
pub async fn page(service: &Arc<Service>, head: &Parts) -> Response<ResponseBody> {
    let (is_ready, host) = (service.server_ready().await, host(head));
    let text = if service.has_long_index() {
        let service = Arc::clone(service);
        Box::pin(offload(move || text(&service, is_ready, host.as_deref()))).await
    } else {
        Some(text(service, is_ready, host.as_deref()))
    };
    let Some(text) = text else {
        return response::error(&InferError::internal("the page could not be written"));
    };
    let mut response = response::new(StatusCode::OK, HTML, Bytes::from(text));
    response.headers_mut().extend([
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (VARY, HeaderValue::from_static("Accept")),
    ]);
    response::signed(response)
}

/// The host that the client knows the server by, without a port.
fn host(head: &Parts) -> Option<String> {
    let named = || host_header(&head.headers);
    head.uri.authority().map(|authority| authority.host().to_owned()).or_else(named)
}

/// The host that the header names, without a port.
pub fn host_header(headers: &HeaderMap) -> Option<String> {
    let authority: Authority = headers.get(HOST)?.to_str().ok()?.parse().ok()?;
    Some(authority.host().to_owned())
}

fn text(service: &Service, is_ready: bool, host: Option<&str>) -> String {
    let links = Links { metrics: metrics_url(service, host), has_docs: service.pages.get("/docs").is_some() };
    written(&service.config.id, is_ready, &service.repository_index(false), &links)
}

/// What the page links to, where the server has it.
#[derive(Default)]
struct Links {
    metrics: Option<String>,
    has_docs: bool,
}

/// Where the metrics are: a URL, or `unix:` and a path; none where the server offers none.
pub fn metrics_url(service: &Service, host: Option<&str>) -> Option<String> {
    let scheme = if service.config.metrics.tls.is_some() { "https" } else { "http" };
    service.metrics_address.get().map(|address| url_of(scheme, address, host))
}

/// The URL of the metrics. A server that listens at every address is reached at the one that the client has used.
fn url_of(scheme: &str, address: &str, host: Option<&str>) -> String {
    if address.starts_with("unix:") {
        return address.to_owned();
    }
    let everywhere = ["0.0.0.0:", "[::]:"].into_iter().find_map(|prefix| address.strip_prefix(prefix));
    match (everywhere, host) {
        (Some(port), Some(host)) => format!("{scheme}://{host}:{port}/metrics"),
        _ => format!("{scheme}://{address}/metrics"),
    }
}

fn metrics_link(url: &str) -> String {
    match url.starts_with("unix:") {
        true => format!("<code>{}</code>", Escaped(url)),
        false => format!("<a href=\"{0}\">{0}</a>", Escaped(url)),
    }
}

fn written(id: &str, is_ready: bool, models: &[IndexEntry], links: &Links) -> String {
    let (class, state) = if is_ready { ("good", "ready") } else { ("wait", "not ready") };
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>alipes {VERSION}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>alipes <small>{VERSION}</small></h1>\n\
         <p class=\"soft\">An inference server, which its clients know as <code>{}</code>. \
         It is <strong class=\"{class}\">{state}</strong>.</p>\n",
        Escaped(id)
    );
    write_models(&mut page, models);
    page += "<h2>Links</h2>\n<ul>\n";
    if links.has_docs {
        page += "<li><a href=\"docs\">/docs</a>: requests to try out</li>\n";
    }
    page += "<li><a href=\"v2\">/v2</a>: name and extensions of the protocol</li>\n\
             <li><a href=\"v2/models/stats\">/v2/models/stats</a>: statistics of the models</li>\n";
    if let Some(metrics) = &links.metrics {
        let _ = writeln!(page, "<li>Metrics: {}</li>", metrics_link(metrics));
    }
    if !DOCUMENTATION.is_empty() {
        let _ = writeln!(page, "<li><a href=\"{0}\">Documentation</a></li>", Escaped(DOCUMENTATION));
    }
    page + "</ul>\n</main>\n</body>\n</html>\n"
}

fn write_models(page: &mut String, models: &[IndexEntry]) {
    *page += "<h2>Models</h2>\n";
    if models.is_empty() {
        *page += "<p>There are none in the repository.</p>\n";
        return;
    }
    *page += "<table>\n<thead><tr><th>Name</th><th class=\"version\">Version</th><th class=\"state\">State</th></tr>\
              </thead>\n";
    models.iter().take(PAGE_MAX_ROWS).for_each(|model| write_model(page, model));
    *page += "</table>\n";
    if let more @ 1.. = models.len().saturating_sub(PAGE_MAX_ROWS) {
        let _ = writeln!(page, "<p>{more} more: <code>POST /v2/repository/index</code> names all of them.</p>");
    }
}

fn write_model(page: &mut String, model: &IndexEntry) {
    let IndexEntry { name, version, state, reason } = model;
    let class = match &state[..] {
        "READY" => "good",
        "UNAVAILABLE" => "bad",
        _ => "wait",
    };
    let version = if version.is_empty() { "-" } else { version };
    let state = if state.is_empty() { "not loaded" } else { state };
    *page += "<tbody>\n<tr><td>";
    // Other names would not survive a browser's spelling of a path.
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let _ = match is_plain && class == "good" {
        true => write!(page, "<a href=\"v2/models/{name}\">{name}</a>"),
        false => write!(page, "{}", Escaped(name)),
    };
    let _ = writeln!(page, "</td><td>{}</td><td class=\"{class}\">{}</td></tr>", Escaped(version), Escaped(state));
    if !reason.is_empty() {
        let _ = writeln!(page, "<tr class=\"why\"><td colspan=\"3\">{}</td></tr>", Escaped(start_of(reason)));
    }
    *page += "</tbody>\n";
}

/// The beginning of a reason, as far as the page shows it.
fn start_of(reason: &str) -> &str {
    let end = reason.char_indices().map(|(at, _)| at).find(|at| *at > PAGE_REASON_BYTES);
    &reason[..end.unwrap_or(reason.len())]
}

/// A text that HTML shows as it is, between tags and in quotes.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => formatter.write_str("&amp;"),
            '<' => formatter.write_str("&lt;"),
            '>' => formatter.write_str("&gt;"),
            '"' => formatter.write_str("&quot;"),
            '\'' => formatter.write_str("&#39;"),
            character => formatter.write_char(character),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, version: &str, state: &str, reason: &str) -> IndexEntry {
        let [name, version, state, reason] = [name, version, state, reason].map(str::to_owned);
        IndexEntry { name, version, state, reason }
    }

    fn accepts(value: &'static str) -> bool {
        is_wanted(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))]))
    }

    #[test]
    fn those_who_name_html_get_the_page() {
        for browser in [
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json, Text/HTML;q=0.1",
            "text/html; charset=utf-8",
        ] {
            assert!(accepts(browser), "{browser}");
        }
        for other in ["*/*", "text/*", "application/json", "", "text/html;q=0", "text/html ; q=0.0", "text/htmlx"] {
            assert!(!accepts(other), "{other}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }

    #[test]
    fn what_models_say_is_text() {
        let text = "<script>alert(\"1\")</script>'&";
        let models = [entry(text, text, text, text)];
        let metrics = Some(url_of("http", "0.0.0.0:8002", Some("\"><script>")));
        let page = written(text, true, &models, &Links { metrics, has_docs: true });
        assert!(!page.contains("<script") && !page.contains("\"><s"), "{page}");
        let shown = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;";
        assert_eq!(page.matches(shown).count(), 5, "{page}");
    }

    #[test]
    fn models_stand_with_state_and_reason() {
        let models = [
            entry("digits", "1", "READY", ""),
            entry("odd name", "2", "READY", ""),
            entry("broken", "1", "UNAVAILABLE", "no such\nfile"),
            entry("idle", "", "", ""),
        ];
        let page = written("triton", false, &models, &Links::default());
        for part in [
            "<td><a href=\"v2/models/digits\">digits</a></td><td>1</td><td class=\"good\">READY</td>",
            "<td>odd name</td><td>2</td>",
            "<td>broken</td><td>1</td><td class=\"bad\">UNAVAILABLE</td>",
            "<td colspan=\"3\">no such\nfile</td>",
            "<td>idle</td><td>-</td><td class=\"wait\">not loaded</td>",
            "<strong class=\"wait\">not ready</strong>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("Metrics") && !page.contains("/docs"));
        assert!(!written("triton", true, &[], &Links::default()).contains("<table"));
    }

    #[test]
    fn a_long_repository_is_cut() {
        let models: Vec<IndexEntry> = (0..PAGE_MAX_ROWS + 2).map(|_| entry("m", "1", "READY", "")).collect();
        let page = written("triton", true, &models, &Links::default());
        assert!(page.contains("<p>2 more: ") && page.matches("<tbody>").count() == PAGE_MAX_ROWS);
        let long = "ž".repeat(PAGE_REASON_BYTES);
        assert!(start_of(&long).len() <= PAGE_REASON_BYTES + 2 && long.starts_with(start_of(&long)));
    }

    #[test]
    fn metrics_are_reached_where_they_listen() {
        let link = |address, host| metrics_link(&url_of("http", address, host));
        let to = |url: &str| format!("<a href=\"{url}\">{url}</a>");
        assert_eq!(link("0.0.0.0:8002", Some("gpu7")), to("http://gpu7:8002/metrics"));
        assert_eq!(link("[::]:8002", Some("[::1]")), to("http://[::1]:8002/metrics"));
        assert_eq!(link("127.0.0.1:8002", Some("gpu7")), to("http://127.0.0.1:8002/metrics"));
        assert_eq!(link("0.0.0.0:8002", None), to("http://0.0.0.0:8002/metrics"));
        assert_eq!(link("unix:/run/<m>", None), "<code>unix:/run/&lt;m&gt;</code>");
    }
}
