//! Which addresses tools may reach.

use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that tools may reach besides public ones: the table `[network]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    allowed: Vec<Allowed>,
}

/// An entry of `allow_private`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Allowed {
    /// A network, at all ports.
    Network { base: IpAddr, bits: u32 },
    /// An address, at one port.
    Address(IpAddr, u16),
    /// A host name, at one port; applies to all its addresses.
    Name(String, u16),
}

impl Network {
    /// Parses an entry: `127.0.0.1:8080`, `10.0.0.0/8`, `10.1.2.3`, `[::1]:8080`, `localhost:9000`.
    pub(super) fn allow(&mut self, entry: &str) -> Result<(), String> {
        let allowed = parse(entry).ok_or_else(|| format!("{entry:?} is not a network, an address or NAME:PORT"))?;
        self.allowed.push(allowed);
        Ok(())
    }

    /// Returns whether a connection to this address is allowed. `name` is the host as written in the URL.
    pub fn permits(&self, name: &str, port: u16, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address)
            || self.allowed.iter().any(|allowed| match allowed {
                Allowed::Network { base, bits } => is_within(address, *base, *bits),
                Allowed::Address(known, at) => *at == port && *known == address,
                Allowed::Name(known, at) => *at == port && known.eq_ignore_ascii_case(plain(name)),
            })
    }

    /// Returns whether any entry allows this port only.
    pub(crate) fn names_port(&self, port: u16) -> bool {
        self.allowed.iter().any(|allowed| match allowed {
            Allowed::Network { .. } => false,
            Allowed::Address(_, at) | Allowed::Name(_, at) => *at == port,
        })
    }

    /// Checks that tools may use a URL: `http` or `https`, without user and password, and not with an address that may
    /// not be reached. Host names are checked when a connection is made.
    ///
    /// # Errors
    /// What is wrong, and a next step.
    pub(crate) fn check(&self, url: &Url) -> Result<(), (String, String)> {
        let wrong = |message: &str, next: &str| Err((message.to_owned(), next.to_owned()));
        if !matches!(url.scheme(), "http" | "https") {
            return wrong("its scheme is neither http nor https", "write a URL that starts with https:// or http://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("it has a user or a password", "write them in headers, as Authorization = \"Basic ${NAME}\"");
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return wrong("it has no host", "write a URL with a host");
        };
        match literal(host) {
            Some(address) if !self.permits(host, port, address) => Err((
                format!("the address {address} is not public"),
                format!("write \"{host}:{port}\" in allow_private of [network] to let tools reach it"),
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the address if the host of a URL is one. The URL parser has already normalized unusual spellings, such as
/// `0x7f.1` to `127.0.0.1`.
fn literal(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Removes the dot at the end of a name.
fn plain(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn parse(entry: &str) -> Option<Allowed> {
    if let Some((base, bits)) = entry.split_once('/') {
        let (base, bits) = (literal(base)?, bits.parse::<u32>().ok()?);
        let max = if base.is_ipv4() { 32 } else { 128 };
        return (bits <= max && base == base.to_canonical()).then_some(Allowed::Network { base, bits });
    }
    if let Some(address) = literal(entry) {
        let base = address.to_canonical();
        return Some(Allowed::Network { base, bits: if base.is_ipv4() { 32 } else { 128 } });
    }
    let (host, port) = entry.rsplit_once(':')?;
    let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
    if let Some(address) = literal(host) {
        return Some(Allowed::Address(address.to_canonical(), port));
    }
    // A name that the URL parser would read as an address is not a name.
    let url = Url::parse(&format!("http://{host}/")).ok()?;
    let is_name = url.host_str() == Some(&host.to_ascii_lowercase()) && !host.contains('*');
    is_name.then(|| Allowed::Name(plain(host).to_owned(), port))
}

fn is_within(address: IpAddr, base: IpAddr, bits: u32) -> bool {
    match (address, base) {
        (IpAddr::V4(address), IpAddr::V4(base)) => {
            u32::from(address).checked_shr(32 - bits) == u32::from(base).checked_shr(32 - bits)
        }
        (IpAddr::V6(address), IpAddr::V6(base)) => {
            u128::from(address).checked_shr(128 - bits) == u128::from(base).checked_shr(128 - bits)
        }
        _ => false,
    }
}

/// Returns whether an address is on the public Internet, by IANA's registries of special-purpose addresses. Addresses
/// not known to be public are not.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The IPv4 networks that are not public.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    // This network, unspecified
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    // Private
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared, behind carrier-grade NAT
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, with cloud metadata services
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Private
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // IETF protocol assignments
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // 6to4 relays
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Private
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarking
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Documentation
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved, broadcast
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|(base, bits)| is_within(address.into(), (*base).into(), *bits))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        // IPv4-mapped addresses
        [0, 0, 0, 0, 0, 0xffff, high, low] => is_public_v4(embedded(high, low)),
        // NAT64: contains an IPv4 address
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)),
        // 6to4: contains an IPv4 address
        [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),
        // Teredo: contains the IPv4 address of a server, and that of a client with inverted bits
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            is_public_v4(embedded(high, low)) && is_public_v4(embedded(!client_high, !client_low))
        }
        // Other protocols, benchmarking and identifiers
        [0x2001, 1..=0x01ff, ..] => false,
        // Documentation
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // All other public addresses are in 2000::/3; loopback, local, link-local and multicast addresses are not.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for row in
            include_str!("network_rows.txt").lines().filter(|row| !row.trim().is_empty() && !row.starts_with('#'))
        {
            let (address, wanted) = row.split_once(char::is_whitespace).unwrap();
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(is_public(address), wanted.trim() == "public", "{row}");
            assert_eq!(Network::default().permits("example.com", 443, address), wanted.trim() == "public", "{row}");
        }
    }

    #[test]
    fn urls_are_checked_however_their_address_is_spelled() {
        let mut network = Network::default();
        network.allow("10.0.0.0/8").unwrap();
        network.allow("127.0.0.1:8080").unwrap();
        let check = |url: &str| network.check(&Url::parse(url).unwrap()).map_err(|(message, _)| message);
        for url in [
            "https://example.com/a",
            "http://10.1.2.3:99/",
            "http://127.0.0.1:8080",
            "http://127.1:8080/x",
            "http://8.8.8.8",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        for url in [
            "http://127.0.0.1:8081",
            "http://127.1",
            "http://0x7f000001",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.0.0.1./",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::ffff:127.0.0.1]:8081/",
            "http://[fe80::1]/",
            "http://169.254.169.254/latest/meta-data",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://０x7f.1/",
            "http://①②⑦.0.0.1/",
        ] {
            assert!(check(url).unwrap_err().contains("is not public"), "{url}");
        }
        for (url, wanted) in [
            ("ftp://example.com/", "scheme"),
            ("file:///etc/passwd", "scheme"),
            ("gopher://example.com", "scheme"),
            ("https://user@example.com/", "user or a password"),
            ("https://:pw@example.com/", "user or a password"),
        ] {
            assert!(check(url).unwrap_err().contains(wanted), "{url}");
        }
    }

    #[test]
    fn entries_are_networks_addresses_and_names() {
        let mut network = Network::default();
        for entry in [
            "192.168.0.0/16",
            "fd00::/8",
            "10.0.0.7",
            "[::1]:8080",
            "127.0.0.1:80",
            "localhost:9000",
            "db.internal:443",
        ] {
            network.allow(entry).unwrap();
        }
        for (name, port, address, permitted) in [
            ("x", 1, "192.168.7.7", true),
            ("x", 1, "172.16.7.7", false),
            ("x", 1, "fd12::1", true),
            ("x", 1, "fe80::1", false),
            ("x", 1, "10.0.0.7", true),
            ("x", 1, "10.0.0.8", false),
            ("x", 1, "::ffff:10.0.0.7", true),
            ("x", 8080, "::1", true),
            ("x", 8081, "::1", false),
            ("x", 80, "127.0.0.1", true),
            ("LocalHost.", 9000, "127.0.0.1", true),
            ("localhost", 9001, "127.0.0.1", false),
            ("localhost.evil.com", 9000, "127.0.0.1", false),
            ("db.internal", 443, "169.254.169.254", true),
        ] {
            assert_eq!(network.permits(name, port, address.parse().unwrap()), permitted, "{name} {port} {address}");
        }
        for entry in [
            "",
            "localhost",
            "10.0.0.0/33",
            "fd00::/129",
            "a b:80",
            "localhost:0",
            "localhost:x",
            "*:80",
            "127.1:80",
            "http://a:80",
            "::ffff:10.0.0.0/104",
        ] {
            assert!(Network::default().allow(entry).is_err(), "{entry}");
        }
    }
}
