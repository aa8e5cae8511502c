//! A hint: what stands behind the text of a refusal for the person who reads it.

use alipes_service::Service;

/// What stands behind Triton's text of a refusal. The recorded release answers without it.
pub struct Hint(Option<String>);

impl Hint {
    /// A hint, which is worked out where the server gives one.
    pub fn new(service: &Service, text: impl FnOnce() -> String) -> Hint {
        Hint(service.config.triton_release.is_later().then(text))
    }

    /// A text with the hint behind it.
    pub fn behind(&self, text: &str) -> String {
        match &self.0 {
            Some(hint) => format!("{text}; {hint}"),
            None => text.to_owned(),
        }
    }
}
