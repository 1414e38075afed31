//! The PROXY protocol: clients behind a load balancer.

use crate::support::Live;
use std::io::{Read, Write};
use std::net::TcpStream;
use wire::client::{ClientError, ConnectOptions, Connection};

/// A client whose connection begins with a header.
fn connect(live: &Live, header: &[u8]) -> Result<Connection<TcpStream>, ClientError> {
    let mut stream = TcpStream::connect(live.tcp.unwrap()).unwrap();
    stream.write_all(header).unwrap();
    let options = ConnectOptions { password: "secret".to_owned(), ..ConnectOptions::default() };
    Connection::connect(stream, &options)
}

fn start(networks: &str) -> Live {
    let live = Live::start(&[&format!("--proxy_protocol_networks={networks}")]);
    let mut root = live.connect();
    root.query("SET PASSWORD = PASSWORD('secret')").unwrap();
    root.query("CREATE USER root IDENTIFIED BY 'secret'").unwrap();
    root.query("GRANT ALL ON *.* TO root").unwrap();
    live
}

fn user(client: Result<Connection<TcpStream>, ClientError>) -> String {
    client.unwrap().query("SELECT USER()").unwrap().to_text().remove(0).remove(0)
}

#[test]
fn a_proxy_of_the_list_tells_where_the_client_is() {
    let live = start("10.0.0.0/8, 127.0.0.1");
    for (header, host) in [
        (&b"PROXY TCP4 192.0.2.7 192.0.2.8 4444 3306\r\n"[..], "192.0.2.7"),
        (b"PROXY TCP6 2001:db8::7 ::1 4444 3306\r\n", "2001:db8::7"),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x09\xc0\0\x02\x08\x01\x01\x02\x02", "192.0.2.9"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
        (b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", "127.0.0.1"),
        // A client that comes without the proxy.
        (b"", "127.0.0.1"),
    ] {
        assert_eq!(user(connect(&live, header)), format!("root@{host}"));
    }
    let mut client = connect(&live, b"PROXY TCP4 192.0.2.7 192.0.2.8 4444 3306\r\n").unwrap();
    let rows = client.query("SELECT HOST FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()");
    assert_eq!(rows.unwrap().to_text(), [["192.0.2.7"]]);
}

#[test]
fn no_other_address_may_speak_for_a_client() {
    let header = b"PROXY TCP4 192.0.2.7 192.0.2.8 4444 3306\r\n";
    for networks in ["", "10.0.0.0/8", "localhost"] {
        let live = start(networks);
        assert!(connect(&live, header).is_err(), "{networks}");
        assert!(connect(&live, b"").is_ok(), "{networks}");
    }
    let live = start("*");
    assert!(connect(&live, b"PROXY TCP4 nonsense 192.0.2.8 4444 3306\r\n").is_err());
    assert!(connect(&live, header).is_ok());
    let mut client = connect(&live, b"").unwrap();
    let error = client.query("SET GLOBAL proxy_protocol_networks = '10.0.0.0/33'").unwrap_err();
    assert_eq!(error.code(), Some(1064));
    client.query("SET GLOBAL proxy_protocol_networks = ''").unwrap();
    assert!(connect(&live, header).is_err());
}

#[test]
fn nobody_is_trusted_who_comes_through_a_proxy_on_the_unix_socket() {
    let live = Live::start(&["--proxy_protocol_networks=localhost"]);
    live.connect().ping().unwrap();
    let mut stream = live.raw();
    stream.write_all(b"PROXY TCP4 192.0.2.7 192.0.2.8 4444 3306\r\n").unwrap();
    let refused = Connection::connect(stream, &ConnectOptions::default());
    assert_eq!(refused.err().and_then(|error| error.code()), Some(1045));
}

#[test]
fn a_header_that_does_not_end_is_waited_for_like_any_login() {
    let live = Live::start(&["--proxy_protocol_networks=*", "--connect_timeout=2"]);
    let mut stream = live.raw();
    stream.write_all(b"PROXY TCP4").unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(live.connect().ping().is_ok());
}
