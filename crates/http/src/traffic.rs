//! How the requests for a model are divided among its versions, over HTTP.

use std::collections::BTreeMap;

use alipes_net::connection::RequestBody;
use alipes_protocol::InferError;
use alipes_protocol::codec::json::value::Value;
use alipes_service::{Service, ShadowSettings};
use hyper::Response;

use super::control::read_as;
use super::response::{self, ResponseBody};

/// The weights of a model's versions.
pub fn settings(service: &Service, model: &str) -> Response<ResponseBody> {
    response::json_or(service.traffic_of(model))
}

/// Changes the weights and answers them.
pub async fn change(service: &Service, model: &str, body: RequestBody) -> Response<ResponseBody> {
    let outcome = async {
        let (change, _charge) = read_as(service, body, change_of).await?;
        service.divide_traffic(model, change.weights, change.sticky_header, change.shadow)
    };
    response::json_or(outcome.await)
}

/// Share of the requests that a shadow gets where a body says nothing of it, in per cent.
const SHADOW_PERCENT: f64 = 100.0;

/// How far the answers of a shadow may lie apart where a body says nothing of it: batches of other sizes round
/// otherwise.
const SHADOW_TOLERANCE: f64 = 1e-5;

/// What a body asks for.
#[derive(Debug, Default, PartialEq)]
struct TrafficChange {
    weights: BTreeMap<i64, u32>,
    sticky_header: Option<String>,
    shadow: Option<ShadowSettings>,
}

fn change_of(text: &[u8]) -> Result<TrafficChange, InferError> {
    let mut change = TrafficChange::default();
    let mut is_complete = false;
    for (name, value) in Value::parse(text)?.members()? {
        match &*name {
            b"weights" => {
                change.weights = weights_of(value)?;
                is_complete = true;
            }
            b"sticky_header" if value.is_null() => change.sticky_header = None,
            b"sticky_header" => change.sticky_header = Some(value.as_text()?.into_owned()),
            b"shadow" if value.is_null() => change.shadow = None,
            b"shadow" => {
                change.shadow = Some(shadow_of(value)?);
                is_complete = true;
            }
            other => {
                let text = format!(
                    "'{}' is no setting of traffic: there are 'weights', 'sticky_header' and 'shadow'",
                    String::from_utf8_lossy(other)
                );
                return Err(InferError::invalid(text));
            }
        }
    }
    if is_complete {
        Ok(change)
    } else {
        Err(InferError::invalid(r#"send weights, such as {"weights": {"1": 90, "2": 10}}"#))
    }
}

fn shadow_of(value: Value<'_>) -> Result<ShadowSettings, InferError> {
    let mut shadow = ShadowSettings { version: 0, percent: SHADOW_PERCENT, tolerance: SHADOW_TOLERANCE };
    for (name, value) in value.members()? {
        match &*name {
            b"version" => shadow.version = value.as_i64()?,
            b"percent" => shadow.percent = value.as_f64()?,
            b"tolerance" => shadow.tolerance = value.as_f64()?,
            other => {
                let text = format!(
                    "'{}' is no setting of a shadow: there are 'version', 'percent' and 'tolerance'",
                    String::from_utf8_lossy(other)
                );
                return Err(InferError::invalid(text));
            }
        }
    }
    if shadow.version <= 0 {
        return Err(InferError::invalid(r#"name the version of the shadow, such as {"shadow": {"version": 2}}"#));
    }
    Ok(shadow)
}

fn weights_of(value: Value<'_>) -> Result<BTreeMap<i64, u32>, InferError> {
    let mut weights = BTreeMap::new();
    for (name, weight) in value.members()? {
        let version = String::from_utf8_lossy(&name);
        let number: Option<i64> = version.parse().ok().filter(|number| *number > 0);
        let number = number
            .ok_or_else(|| InferError::invalid(format!("'weights' goes by version, and '{version}' is no version")))?;
        let weight = weight.as_u64().ok().and_then(|weight| u32::try_from(weight).ok());
        let weight = weight.ok_or_else(|| {
            InferError::invalid(format!("the weight of version {number} must be a whole number of at least 0"))
        })?;
        if weights.insert(number, weight).is_some() {
            return Err(InferError::invalid(format!("'weights' names version {number} twice")));
        }
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_go_by_version() {
        let change = |text: &str| change_of(text.as_bytes());
        let weights = [(1, 90), (2, 10)].into();
        let expected = TrafficChange { weights, sticky_header: Some("X-User".to_owned()), shadow: None };
        assert_eq!(change(r#"{"weights": {"1": 90, "2": 10}, "sticky_header": "X-User"}"#), Ok(expected));
        assert_eq!(change(r#"{"weights": {}, "sticky_header": null, "shadow": null}"#), Ok(TrafficChange::default()));
    }

    #[test]
    fn a_shadow_gets_all_requests_unless_a_body_says_otherwise() {
        let shadow = |text: &str| change_of(text.as_bytes()).unwrap().shadow.unwrap();
        let all = ShadowSettings { version: 2, percent: 100.0, tolerance: 1e-5 };
        assert_eq!(shadow(r#"{"shadow": {"version": 2}}"#), all);
        let some = ShadowSettings { version: 3, percent: 2.5, tolerance: 0.0 };
        assert_eq!(shadow(r#"{"shadow": {"version": 3, "percent": 2.5, "tolerance": 0}, "weights": {}}"#), some);
    }

    #[test]
    fn what_names_no_weights_is_refused() {
        for (text, message) in [
            ("{}", r#"send weights, such as {"weights": {"1": 90, "2": 10}}"#),
            (r#"{"weights": {"two": 1}}"#, "'weights' goes by version, and 'two' is no version"),
            (r#"{"weights": {"0": 1}}"#, "'weights' goes by version, and '0' is no version"),
            (r#"{"weights": {"1": -1}}"#, "the weight of version 1 must be a whole number of at least 0"),
            (r#"{"weights": {"1": 0.5}}"#, "the weight of version 1 must be a whole number of at least 0"),
            (r#"{"weights": {"1": 4294967296}}"#, "the weight of version 1 must be a whole number of at least 0"),
            (r#"{"weights": {"1": 1, "01": 2}}"#, "'weights' names version 1 twice"),
            (
                r#"{"weight": 1}"#,
                "'weight' is no setting of traffic: there are 'weights', 'sticky_header' and 'shadow'",
            ),
            (r#"{"shadow": {}}"#, r#"name the version of the shadow, such as {"shadow": {"version": 2}}"#),
            (
                r#"{"shadow": {"share": 1}}"#,
                "'share' is no setting of a shadow: there are 'version', 'percent' and 'tolerance'",
            ),
        ] {
            assert_eq!(change_of(text.as_bytes()).unwrap_err().message, message);
        }
        assert!(change_of(b"").is_err() && change_of(b"[]").is_err());
    }
}
