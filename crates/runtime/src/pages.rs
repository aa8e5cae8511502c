//! Pages that the control plane has written, by path: the description of the endpoints, and what shows it.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;

/// The path of the description, and of the page that shows it.
const DESCRIPTION: &str = "/openapi.json";
const DOCS: &str = "/docs";

/// A page as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenPage {
    /// Its content type.
    pub content_type: String,
    /// Its bytes.
    pub body: Bytes,
}

/// The pages of a server; none at first.
#[derive(Default)]
pub struct Pages {
    pages: ArcSwap<HashMap<String, Arc<WrittenPage>>>,
}

impl Pages {
    /// Whether a page may have this path.
    pub fn is_path(path: &str) -> bool {
        path == DESCRIPTION || path == DOCS || path.strip_prefix(DOCS).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Serves a page, in the place of one with the same path.
    pub fn set(&self, path: &str, page: WrittenPage) {
        let page = Arc::new(page);
        self.change(|pages| drop(pages.insert(path.to_owned(), Arc::clone(&page))));
    }

    /// Serves it no longer.
    pub fn remove(&self, path: &str) {
        self.change(|pages| drop(pages.remove(path)));
    }

    /// The page of a path.
    pub fn get(&self, path: &str) -> Option<Arc<WrittenPage>> {
        self.pages.load().get(path).cloned()
    }

    fn change(&self, change: impl Fn(&mut HashMap<String, Arc<WrittenPage>>)) {
        self.pages.rcu(|pages| {
            let mut pages = HashMap::clone(pages);
            change(&mut pages);
            pages
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_served_until_it_is_removed() {
        let page = |text: &'static str| WrittenPage { content_type: "text/plain".to_owned(), body: text.into() };
        let pages = Pages::default();
        assert_eq!(pages.get("/docs"), None);
        pages.set("/docs", page("old"));
        pages.set("/docs", page("new"));
        assert_eq!(pages.get("/docs").as_deref(), Some(&page("new")));
        assert_eq!(pages.get("/docs/"), None);
        pages.remove("/docs");
        pages.remove("/docs");
        assert_eq!(pages.get("/docs"), None);
    }

    #[test]
    fn pages_have_paths_of_their_own() {
        for path in ["/openapi.json", "/docs", "/docs/", "/docs/swagger-ui.css", "/docs/a/b"] {
            assert!(Pages::is_path(path), "{path}");
        }
        for path in ["", "/", "docs", "/docsx", "/openapi.json/", "/openapi", "/v2"] {
            assert!(!Pages::is_path(path), "{path}");
        }
    }
}
