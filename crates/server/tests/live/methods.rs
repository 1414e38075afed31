//! Logins of our own client, by each method and over each kind of connection.

use crate::support::Live;
use crate::tls::encrypted_as_any;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use wire::auth::caching_sha2;
use wire::client::{ClientError, ConnectOptions};
use wire::constants::capability;
use wire::handshake::{Greeting, HandshakeResponse, parse_auth_switch};
use wire::{PacketReader, PacketWriter};

const METHODS: [&str; 4] = ["mysql_native_password", "caching_sha2_password", "ed25519", "parsec"];

/// A server with an account for each method, named by it, whose password is `secret`.
fn with_accounts(options: &[&str]) -> Live {
    let live = Live::start(options);
    let mut root = live.connect();
    for method in METHODS {
        let sql = format!("CREATE USER {method} IDENTIFIED VIA {method} USING PASSWORD('secret')");
        root.query(&sql).unwrap();
    }
    live
}

fn options(user: &str, password: &str, is_secure: bool) -> ConnectOptions {
    ConnectOptions {
        user: user.to_owned(),
        password: password.to_owned(),
        is_secure,
        ..ConnectOptions::default()
    }
}

/// Logs in over TCP, TLS and the unix socket, in an order that begins anywhere.
fn log_in(live: &Live, way: usize, user: &str, password: &str) -> Result<String, ClientError> {
    let sql = "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)";
    let result = match way % 3 {
        0 => live.connect_tcp(&options(user, password, false))?.query(sql),
        1 => encrypted_as_any(live, &options(user, password, false))?.query(sql),
        _ => live.connect_with(&options(user, password, true))?.query(sql),
    };
    Ok(result?.to_text().remove(0).remove(0))
}

#[test]
fn each_method_lets_in_whoever_knows_the_password_over_each_kind_of_connection() {
    let live = with_accounts(&[]);
    for method in METHODS {
        for first in 0..3 {
            // What the server has learned of the passwords is forgotten.
            live.connect().query("FLUSH PRIVILEGES").unwrap();
            for way in [first, first + 1, first + 2, first] {
                assert_eq!(log_in(&live, way, method, "secret").unwrap(), method, "{method} {way}");
            }
            // The answer to a wrong password takes its time.
            for wrong in ["Secret", ""] {
                let error = log_in(&live, first, method, wrong).unwrap_err();
                assert_eq!(error.code(), Some(1045), "{method} {first} {wrong:?}: {error}");
            }
        }
    }
}

#[test]
fn the_greeting_may_begin_with_another_method() {
    let live = with_accounts(&["--default_authentication_plugin=caching_sha2_password"]);
    for method in METHODS {
        for way in [0, 1, 2, 0] {
            assert_eq!(log_in(&live, way, method, "secret").unwrap(), method, "{method} {way}");
        }
        assert_eq!(log_in(&live, 0, method, "Secret").unwrap_err().code(), Some(1045));
    }
}

#[test]
fn a_connection_changes_to_users_of_each_method() {
    let live = with_accounts(&[]);
    let who = "SELECT CONCAT(SUBSTRING_INDEX(CURRENT_USER(), '@', 1), ' ', @a IS NULL)";
    for is_tcp in [true, false] {
        live.connect().query("FLUSH PRIVILEGES").unwrap();
        for method in METHODS {
            let (right, wrong) = (options(method, "secret", !is_tcp), options(method, "wrong", !is_tcp));
            // Twice, since the server knows the password by then.
            let changed = |client: &mut dyn FnMut(&ConnectOptions) -> Result<String, ClientError>| {
                assert_eq!(client(&right).unwrap(), format!("{method} 1"));
                assert_eq!(client(&right).unwrap(), format!("{method} 1"));
                assert_eq!(client(&wrong).unwrap_err().code(), Some(1045), "{method}");
            };
            if is_tcp {
                let mut client = live.connect_tcp(&options(METHODS[0], "secret", false)).unwrap();
                changed(&mut |options| {
                    client.query("SET @a = 1")?;
                    client.change_user(options, false)?;
                    Ok(client.query(who)?.to_text().concat().concat())
                });
            } else {
                let mut client = live.connect();
                changed(&mut |options| {
                    client.query("SET @a = 1")?;
                    client.change_user(options, true)?;
                    Ok(client.query(who)?.to_text().concat().concat())
                });
            }
        }
    }
}

/// A client's side of a login, packet by packet.
struct Login {
    stream: UnixStream,
    reader: PacketReader,
}

impl Login {
    fn next(&mut self) -> Vec<u8> {
        loop {
            if let Some(packet) = self.reader.next_packet().unwrap() {
                return self.reader.payload(&packet).to_vec();
            }
            let count = self.stream.read(self.reader.space()).unwrap();
            assert!(count > 0, "the server left");
            self.reader.received(count);
        }
    }

    fn send(&mut self, payload: &[u8]) {
        let mut writer = PacketWriter::new();
        writer.set_sequence(self.reader.sequence());
        writer.packet(payload);
        self.stream.write_all(writer.bytes()).unwrap();
        self.reader.set_sequence(writer.sequence());
    }
}

/// As MySQL's library does that lacks the method of the greeting.
#[test]
fn a_client_that_answers_nothing_and_names_a_method_is_asked_by_it() {
    let live = with_accounts(&[]);
    let by = |method: &str| format!("{method} USING PASSWORD('secret')");
    let both = format!("CREATE USER both IDENTIFIED VIA {} OR {}", by(METHODS[0]), by(METHODS[1]));
    live.connect().query(&both).unwrap();
    let method = METHODS[1];
    for user in [method, "both"] {
        for password in ["secret", "wrong"] {
            let mut login = Login { stream: live.raw(), reader: PacketReader::new(1 << 20) };
            Greeting::parse(&login.next()).unwrap();
            let mut payload = Vec::new();
            HandshakeResponse {
                capabilities: capability::CLIENT,
                packet_bytes_max: 1 << 24,
                charset: 45,
                user: user.as_bytes(),
                auth_answer: b"",
                database: None,
                auth_plugin: method.as_bytes(),
                attributes: b"",
                zstd_level: 0,
            }
            .write(&mut payload);
            login.send(&payload);
            let asked = login.next();
            let (plugin, scramble) = parse_auth_switch(&asked).unwrap();
            assert_eq!(plugin, method.as_bytes());
            login.send(&caching_sha2::answer(password.as_bytes(), scramble));
            let mut said = login.next();
            if said == [caching_sha2::MORE_DATA, caching_sha2::NEEDS_PASSWORD] {
                login.send(&[password.as_bytes(), &[0]].concat());
                said = login.next();
            }
            let expected = match (password, user) {
                ("secret", _) => 0,
                // The other method is next.
                (_, "both") => 0xfe,
                _ => 0xff,
            };
            assert_eq!(said[0], expected, "{user} {password}: {said:?}");
        }
    }
}
