//! Whole conversations with a server: a login by any method, perhaps behind a proxy, over TLS or compressed,
//! then commands of every kind. In most of them bytes are changed on their way to the server.
//!
//! What must hold: the server lives, no thread of it panics, each conversation ends, an honest client is
//! served right after it, and nothing of a connection is left behind. In a conversation whose bytes arrive as
//! they were sent, each answer follows the protocol.

mod commands;
mod line;
mod login;

use base::random::Random;
use line::{Line, Mutator};
use login::Plan;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wire::client::{ClientError, ConnectOptions, Connection};

/// A server that says nothing for so long is considered hung.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a client waits that has sent changed bytes: the server may be waiting for the rest of a packet.
const SHORT: Duration = Duration::from_millis(15);

/// Options of the server that the conversations are with. Logins that stand still are ended soon.
pub const OPTIONS: [&str; 4] =
    ["--connect_timeout=5", "--proxy_protocol_networks=*", "--max_connections=300", "--local_infile=ON"];

/// Where the server is.
#[derive(Clone, Debug)]
pub struct Place {
    pub socket: PathBuf,
    pub tcp: SocketAddr,
}

impl Place {
    /// Makes the accounts and the table that conversations use.
    ///
    /// # Errors
    /// What the server says.
    pub fn prepare(&self) -> Result<(), String> {
        let mut root = self.honest()?;
        for method in login::METHODS {
            let sql = format!("CREATE USER {method} IDENTIFIED VIA {method} USING PASSWORD('secret')");
            root.query(&sql).map_err(|error| error.to_string())?;
            root.query(&format!("GRANT ALL ON *.* TO {method}")).map_err(|error| error.to_string())?;
        }
        for sql in [
            "CREATE DATABASE talk",
            "CREATE TABLE talk.t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(100), b TEXT, c DATETIME)",
            "INSERT INTO talk.t (a, b) VALUES ('one', 'text'), ('two', NULL), (NULL, REPEAT('x', 5000))",
        ] {
            root.query(sql).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn honest(&self) -> Result<Connection<Line>, String> {
        let line = Line::unix(self, PATIENCE).map_err(|error| error.to_string())?;
        let options = ConnectOptions { is_secure: true, ..ConnectOptions::default() };
        Connection::connect(line, &options).map_err(|error| format!("an honest login: {error}"))
    }

    /// An honest client's work.
    ///
    /// # Errors
    /// If it gets no answer, or a wrong one.
    pub fn serves(&self) -> Result<(), String> {
        let mut client = self.honest()?;
        let rows =
            client.query("SELECT COUNT(*) >= 0, 6 * 7 FROM talk.t").map_err(|error| error.to_string())?;
        match rows.to_text() {
            rows if rows == [["1", "42"]] => Ok(()),
            rows => Err(format!("an honest client got {rows:?}")),
        }
    }

    /// Waits until only the asker is connected.
    ///
    /// # Errors
    /// If other connections stay.
    pub fn is_alone(&self) -> Result<(), String> {
        let mut client = self.honest()?;
        let end = Instant::now() + PATIENCE;
        loop {
            let rows =
                client.query("SHOW STATUS LIKE 'Threads_connected'").map_err(|error| error.to_string())?;
            let connected = rows.to_text().concat().pop().unwrap_or_default();
            if connected == "1" {
                return Ok(());
            }
            if Instant::now() > end {
                let list = client.query("SHOW FULL PROCESSLIST").map_err(|error| error.to_string())?;
                return Err(format!("{connected} connections are left: {:?}", list.to_text()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Plays a conversation.
///
/// # Errors
/// If its bytes were not changed, and an answer does not follow the protocol.
pub fn play(place: &Place, seed: u64, case: u64) -> Result<(), String> {
    let mut random = Random::new(seed, case);
    let is_honest = random.below(4) == 0;
    let mut mutator = || match is_honest {
        true => None,
        false => Some(Mutator::new(Random::new(random.next_u64(), 0))),
    };
    let (plain, encrypted) = (mutator(), mutator());
    let plan = Plan::draw(&mut random);
    match converse(place, &plan, (plain, encrypted), &mut random) {
        // What the server refuses is refused by the protocol. Others stop listening when they are told to.
        Ok(()) | Err(ClientError::Server(_)) => Ok(()),
        Err(_) if !is_honest => Ok(()),
        Err(error) => Err(format!("{plan:?}: {error}")),
    }
}

fn converse(
    place: &Place,
    plan: &Plan,
    mutators: (Option<Mutator>, Option<Mutator>),
    random: &mut Random,
) -> Result<(), ClientError> {
    let patience = if mutators.0.is_some() { SHORT } else { PATIENCE };
    let connection = plan.log_in(place, patience, mutators)?;
    commands::run(connection, random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use server::{Address, Log, Options, Server};

    #[test]
    fn conversations_leave_a_server_that_serves() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, log) = (folder.path().join("socket"), folder.path().join("log"));
        let mut arguments = OPTIONS.map(str::to_owned).to_vec();
        arguments.push(format!("--datadir={}", folder.path().join("data").display()));
        arguments.push(format!("--socket={}", socket.display()));
        arguments.push("--port=0".to_owned());
        let options = Options::parse(&arguments).unwrap();
        let server = Server::start(options, std::sync::Arc::new(Log::to_file(&log).unwrap())).unwrap();
        let tcp = server.addresses().iter().find_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) | Address::ExtraTcp(_) => None,
        });
        let place = Place { socket, tcp: tcp.unwrap() };
        let stop = server.stop_handle().unwrap();
        let thread = std::thread::spawn(move || server.run().is_ok());
        place.prepare().unwrap();
        for case in 0..150 {
            play(&place, 1, case).unwrap();
            place.serves().unwrap();
        }
        place.is_alone().unwrap();
        stop.stop();
        assert!(thread.join().unwrap());
        let log = std::fs::read_to_string(log).unwrap();
        assert!(!log.contains("panicked"), "{log}");
    }
}
