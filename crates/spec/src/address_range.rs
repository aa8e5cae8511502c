//! A range of network addresses, such as `10.0.0.0/8`.

use std::net::IpAddr;

use serde::Deserialize;

/// A range of addresses that share their first bits; a single address is a range too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AddressRange {
    first: IpAddr,
    prefix_bits: u32,
}

impl AddressRange {
    /// Whether an address lies in the range. An IPv4 address may come as an IPv6 one that stands for it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                same_prefix(first.to_bits().into(), address.to_bits().into(), self.prefix_bits, 32)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                same_prefix(first.to_bits(), address.to_bits(), self.prefix_bits, 128)
            }
            _ => false,
        }
    }
}

/// Whether two addresses of `width` bits agree in the first `prefix` of them.
fn same_prefix(one: u128, other: u128, prefix: u32, width: u32) -> bool {
    (one ^ other).checked_shr(width - prefix).unwrap_or(0) == 0
}

impl TryFrom<String> for AddressRange {
    type Error = String;

    fn try_from(text: String) -> Result<AddressRange, String> {
        let parse = || {
            let (address, bits) =
                text.split_once('/').map_or((text.as_str(), None), |(address, bits)| (address, Some(bits)));
            let first: IpAddr = address.parse().ok()?;
            let width = if first.is_ipv4() { 32 } else { 128 };
            let prefix_bits = bits.map_or(Some(width), |bits| bits.parse().ok()).filter(|&bits| bits <= width)?;
            Some(AddressRange { first, prefix_bits })
        };
        parse().ok_or_else(|| format!("expected an address or a network such as 10.0.0.0/8, got '{text}'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> AddressRange {
        AddressRange::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_range_contains_the_addresses_that_share_its_first_bits() {
        for (text, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.168.1.7", "192.168.1.7", "192.168.1.6"),
            ("192.168.1.0/24", "::ffff:192.168.1.200", "::192.168.1.200"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1", "::1", "127.0.0.1"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            assert!(range(text).contains(inside.parse().unwrap()), "{text} {inside}");
            assert!(!range(text).contains(outside.parse().unwrap()), "{text} {outside}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::1/129", "10.0.0.0/-1", "10.0.0.0/", "proxy.example"] {
            assert!(AddressRange::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
