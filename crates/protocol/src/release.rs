//! Which release of Triton the server answers like, where releases differ.

/// A release of Triton's server, by the version in its metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TritonRelease {
    /// 2.51, of October 2024: the one whose answers were recorded.
    V2_51,
    /// 2.73, of 2026.
    #[default]
    V2_73,
}

impl TritonRelease {
    /// Every release, oldest first.
    pub const ALL: [TritonRelease; 2] = [TritonRelease::V2_51, TritonRelease::V2_73];

    /// The version that the server metadata gives: clients compare it with the release that they were built for.
    pub fn version(self) -> &'static str {
        match self {
            TritonRelease::V2_51 => "2.51.0",
            TritonRelease::V2_73 => "2.73.0",
        }
    }

    /// The release with this name, such as `2.51`.
    pub fn from_name(name: &str) -> Option<TritonRelease> {
        Self::ALL.into_iter().find(|release| release.version().strip_suffix(".0") == Some(name))
    }

    /// Whether this is a release after 2.51.
    pub fn is_later(self) -> bool {
        self > TritonRelease::V2_51
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_known_by_its_name() {
        assert_eq!(TritonRelease::from_name("2.51"), Some(TritonRelease::V2_51));
        assert_eq!(TritonRelease::from_name("2.73"), Some(TritonRelease::default()));
        assert_eq!((TritonRelease::from_name("2.60"), TritonRelease::from_name("2.73.0")), (None, None));
    }

    #[test]
    fn only_the_recorded_release_is_not_later() {
        assert_eq!(TritonRelease::ALL.map(TritonRelease::is_later), [false, true]);
    }
}
