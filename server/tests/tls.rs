//! The service behind TLS, with a certificate made here.

use lisp_server::config::Config;
use lisp_server::http::Server;
use lisp_server::runs::Service;
use lisp_server::store::MemoryStore;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// A key that is not that of the certificate is an error with its place, and no service begins.
#[test]
fn a_key_goes_with_its_certificate() {
    let folder = std::env::temp_dir().join(format!("ptc-tls-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made: Vec<_> = (0..2).map(|_| rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()).collect();
    for (n, made) in made.iter().enumerate() {
        std::fs::write(folder.join(format!("certificate{n}.pem")), made.cert.pem()).unwrap();
        std::fs::write(folder.join(format!("key{n}.pem")), made.signing_key.serialize_pem()).unwrap();
    }
    let file = folder.join("service.toml");
    for (certificate, key, wrong) in [
        ("certificate0", "key0", None),
        ("certificate0", "key1", Some(("tls.key", (3, 7), "does not go with the certificate"))),
        ("certificate0", "certificate0", Some(("tls.key", (3, 7), "no private key"))),
        ("key0", "key0", Some(("tls.certificate", (2, 15), "no certificate"))),
    ] {
        std::fs::write(&file, format!("[tls]\ncertificate = \"{certificate}.pem\"\nkey = \"{key}.pem\"\n")).unwrap();
        let checked = Config::read(&file).unwrap().check_tls();
        let found =
            checked.as_ref().err().map(|error| (error.field.as_str(), error.at.unwrap(), error.message.as_str()));
        match (wrong, found) {
            (None, None) => {}
            (Some((field, at, why)), Some((its, place, message))) => {
                assert!(field == its && at == place && message.contains(why), "{certificate}, {key}: {found:?}");
            }
            _ => panic!("{certificate}, {key}: {found:?}"),
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A service on a port of its own; what it is asked by a client that trusts its certificate.
#[test]
fn it_is_asked_over_tls_and_in_no_other_way() {
    let folder = std::env::temp_dir().join(format!("ptc-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let certificate = made.cert.pem();
    std::fs::write(folder.join("certificate.pem"), &certificate).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let file = folder.join("service.toml");
    let text = "isolation = \"in-process\"\n[tls]\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n[service]\nheader_seconds = 1\n";
    std::fs::write(&file, text).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let config = Config::read(&file).unwrap();
        let service = Service::open(config, Arc::new(MemoryStore::new())).await.unwrap();
        let server = Server::bind(service.clone(), "127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, stop) = (server.address().tcp().unwrap(), server.stop_handle());
        let serving = tokio::spawn(server.serve());
        let trusts = |pem: &[&str]| {
            let roots: Vec<_> = pem.iter().map(|pem| reqwest::Certificate::from_pem(pem.as_bytes()).unwrap()).collect();
            reqwest::Client::builder().tls_certs_only(roots).timeout(Duration::from_secs(10)).build().unwrap()
        };
        let ask = |client: reqwest::Client| {
            let request = client.post(format!("https://{address}/v1/run")).body("{\"program\": \"(+ 1 2)\"}");
            async move { request.send().await }
        };
        let answer = ask(trusts(&[&certificate])).await.unwrap();
        assert_eq!(answer.status(), 200);
        let text = answer.text().await.unwrap();
        assert!(text.contains("\"value\":3"), "{text}");
        let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem();
        assert!(ask(trusts(&[&other])).await.is_err(), "who does not know the certificate does not talk to it");
        // Text, an early version, and silence get no answer, and hold nobody up.
        for bytes in
            [&b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"[..], b"\x16\x03\x00\x00\x05\x01\x00\x00\x01\x03", b""]
        {
            let answer = tokio::task::spawn_blocking(move || {
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
                stream.write_all(bytes).unwrap();
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer);
                answer
            });
            let answer = answer.await.unwrap();
            assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1 200"), "{answer:?}");
        }
        // Connections that are kept and say nothing are closed, before the handshake, in it, and after it.
        let silent = std::net::TcpStream::connect(address).unwrap();
        let mut greets = std::net::TcpStream::connect(address).unwrap();
        greets.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
        let keeps = trusts(&[&certificate]);
        assert_eq!(ask(keeps.clone()).await.unwrap().status(), 200);
        let until = tokio::time::Instant::now() + Duration::from_secs(60);
        while !service.metrics().await.contains("ptc_connections 0\n") {
            assert!(tokio::time::Instant::now() < until, "{}", service.metrics().await);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop((silent, greets));
        assert_eq!(ask(keeps).await.unwrap().status(), 200);
        stop();
        serving.await.unwrap().unwrap();
    });
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Files that are none are told before anybody is served.
#[test]
fn a_key_that_does_not_fit_is_told() {
    let folder = std::env::temp_dir().join(format!("ptc-tls-bad-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let one = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = folder.join("service.toml");
    std::fs::write(&file, "isolation = \"in-process\"\n[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n").unwrap();
    std::fs::write(folder.join("c.pem"), one.cert.pem()).unwrap();
    std::fs::write(folder.join("k.pem"), "no key").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let error = runtime.block_on(async {
        let config = Config::read(&file).map_err(|error| error.to_string())?;
        let opened = Service::open(config, Arc::new(MemoryStore::new())).await;
        opened.map(drop).map_err(|error| error.to_string())
    });
    let error = error.unwrap_err();
    assert!(error.contains("service.toml:4:7: tls.key: it has no private key"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
