//! Names and namespaces: which model a request means.

use std::sync::Arc;

use alipes_protocol::Code;
use alipes_runtime::registry::{IndexEntry, Registry};

use crate::common::{Echo, model};

fn refusal(registry: &Registry, name: &str) -> (Code, String) {
    let error = registry.find(name, "").err().expect("it is refused");
    (error.code, error.message)
}

#[test]
fn one_name_in_several_namespaces_is_found_as_long_as_one_of_them_serves() {
    let registry = Registry::default();
    let (one, two) = (model("m", false, Echo), model("m", false, Echo));
    registry.publish("m", "/one", vec![Arc::clone(&one)]);
    assert!(Arc::ptr_eq(&registry.find("m", "").unwrap(), &one));

    registry.publish("m", "/two", vec![Arc::clone(&two)]);
    let text =
        "There are 2 identifiers of model 'm' in global map, model namespace must be provided to resolve ambiguity.";
    assert_eq!(refusal(&registry, "m"), (Code::InvalidArgument, text.to_owned()));
    assert_eq!(registry.models()["m"].versions().count(), 2);

    registry.publish("m", "/one", Vec::new());
    assert!(Arc::ptr_eq(&registry.find("m", "3").unwrap(), &two));

    registry.publish("m", "/two", Vec::new());
    let text = "Request for unknown model: 'm' has no available versions";
    assert_eq!(refusal(&registry, "m"), (Code::NotFound, text.to_owned()));
}

fn version_refusal(registry: &Registry, version: &str) -> (Code, String) {
    let error = registry.find("m", version).err().expect("it is refused");
    (error.code, error.message.strip_prefix("Request for unknown model: ").expect("Triton's words").to_owned())
}

#[test]
fn a_version_that_served_once_is_not_ready() {
    let registry = Registry::default();
    let served = model("m", false, Echo);
    registry.publish("m", "", vec![Arc::clone(&served)]);
    registry.publish("m", "", Vec::new());
    assert_eq!(version_refusal(&registry, "3"), (Code::Unavailable, "'m' version 3 is not at ready state".to_owned()));
    assert_eq!(version_refusal(&registry, "4"), (Code::NotFound, "'m' version 4 is not found".to_owned()));
    assert_eq!(version_refusal(&registry, ""), (Code::NotFound, "'m' has no available versions".to_owned()));
    registry.publish("m", "", vec![Arc::clone(&served)]);
    assert!(Arc::ptr_eq(&registry.find("m", "3").unwrap(), &served));
}

#[test]
fn a_version_that_loads_or_has_failed_is_not_ready() {
    let entry = |version: &str, state: &str| IndexEntry {
        name: "m".to_owned(),
        version: version.to_owned(),
        state: state.to_owned(),
        reason: String::new(),
    };
    let registry = Registry::default();
    registry.conceal();
    registry.set_index(vec![entry("", "UNAVAILABLE")], true);
    assert_eq!(version_refusal(&registry, "1"), (Code::NotFound, "'m' is not found".to_owned()));
    registry.set_index(vec![entry("1", "LOADING"), entry("2", "UNAVAILABLE")], true);
    for version in ["1", "2"] {
        let text = format!("'m' version {version} is not at ready state");
        assert_eq!(version_refusal(&registry, version), (Code::Unavailable, text));
    }
    assert_eq!(version_refusal(&registry, "3"), (Code::NotFound, "'m' version 3 is not found".to_owned()));
    assert_eq!(version_refusal(&registry, ""), (Code::NotFound, "'m' has no available versions".to_owned()));
}

#[test]
fn a_name_that_is_forgotten_was_never_there() {
    let registry = Registry::default();
    registry.publish("m", "", vec![model("m", false, Echo)]);
    registry.publish("m", "/one", Vec::new());
    registry.forget("m", "");
    assert_eq!(refusal(&registry, "m").1, "Request for unknown model: 'm' has no available versions");
    registry.forget("m", "/one");
    assert_eq!(refusal(&registry, "m").1, "Request for unknown model: 'm' is not found");
    registry.forget("never", "");
    assert!(registry.models().is_empty());
}
