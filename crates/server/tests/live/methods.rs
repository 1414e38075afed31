//! Logins of our own client, by each method and over each kind of connection.

use crate::support::Live;
use crate::tls::encrypted_as_any;
use wire::client::{ClientError, ConnectOptions};

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
