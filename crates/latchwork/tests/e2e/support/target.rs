//! One of two servers: each test of Latchwork must also pass on MariaDB's InnoDB.

use super::{Latchwork, MariaDb, have, mariadb};
use std::path::Path;
use std::time::Duration;
use wire::client::{ClientError, ConnectOptions, Connection};

/// What can be tested of a server from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// The scripts of `tests/isolation`.
    Isolation,
    /// Random histories.
    Histories,
    /// SIGKILL: each statement is kept as a whole or not at all.
    KilledStatements,
    /// SIGKILL: transactions of several statements, and DDL.
    KilledTransactions,
}

/// The tests that run on Latchwork. All run on MariaDB.
const LATCHWORK_PROVES: &[Proof] =
    &[Proof::Isolation, Proof::Histories, Proof::KilledStatements, Proof::KilledTransactions];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    MariaDb,
    Latchwork,
}

/// The targets whose programs are there. `LATCHWORK_TARGET=latchwork` or `=mariadb` picks one.
pub fn targets(proof: Proof) -> Vec<Target> {
    let mut targets = match std::env::var("LATCHWORK_TARGET").as_deref() {
        Ok("mariadb") => vec![Target::MariaDb],
        Ok("latchwork") => vec![Target::Latchwork],
        Ok(other) => panic!("LATCHWORK_TARGET={other}: there are mariadb and latchwork"),
        Err(_) if LATCHWORK_PROVES.contains(&proof) => vec![Target::MariaDb, Target::Latchwork],
        Err(_) => vec![Target::MariaDb],
    };
    targets.retain(|target| *target != Target::MariaDb || have(mariadb::PROGRAMS));
    targets
}

pub type Client = Connection<std::os::unix::net::UnixStream>;

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub enum Server {
    MariaDb(MariaDb),
    Latchwork(Latchwork),
}

impl Target {
    pub fn start(self, folder: &Path) -> Server {
        match self {
            Target::MariaDb => Server::MariaDb(MariaDb::start(folder)),
            Target::Latchwork => Server::Latchwork(Latchwork::start(folder, &[])),
        }
    }

    /// On the data directory that [`Target::start`] made.
    pub fn start_again(self, folder: &Path, options: &[&str]) -> Server {
        match self {
            Target::MariaDb => Server::MariaDb(MariaDb::start_again(folder, options)),
            Target::Latchwork => Server::Latchwork(Latchwork::start(folder, options)),
        }
    }

    /// The same, without waiting until it serves.
    pub fn begin_again(self, folder: &Path, options: &[&str]) -> Server {
        match self {
            Target::MariaDb => Server::MariaDb(MariaDb::begin(folder, options)),
            Target::Latchwork => Server::Latchwork(Latchwork::begin(folder, options)),
        }
    }

    /// An option for a cache that holds a fraction of what the tests write.
    pub fn small_cache(self) -> &'static str {
        match self {
            Target::MariaDb => "--innodb-buffer-pool-size=8M",
            Target::Latchwork => "--key_buffer_size=512K",
        }
    }
}

impl Server {
    pub fn socket(&self) -> &Path {
        match self {
            Server::MariaDb(server) => &server.socket,
            Server::Latchwork(server) => &server.socket,
        }
    }

    pub fn is_running(&mut self) -> bool {
        match self {
            Server::MariaDb(server) => server.is_running(),
            Server::Latchwork(server) => server.is_running(),
        }
    }

    /// SIGKILL: the server cannot write anything more.
    pub fn kill(self) {
        match self {
            Server::MariaDb(server) => server.kill(),
            Server::Latchwork(server) => server.kill(),
        }
    }

    /// SIGTERM, and an end in order.
    pub fn stop(self) {
        match self {
            Server::MariaDb(server) => server.stop(),
            Server::Latchwork(server) => assert!(server.stop().success()),
        }
    }

    /// A connection with autocommit on and no database.
    pub fn connect(&self) -> Client {
        connect(self.socket(), None).unwrap()
    }
}

/// `silence_max` is how long the server may take to answer before that is an error. `None` is without limit.
pub fn connect(socket: &Path, silence_max: Option<Duration>) -> Result<Client, ClientError> {
    let stream = std::os::unix::net::UnixStream::connect(socket)?;
    stream.set_read_timeout(silence_max)?;
    Connection::connect(stream, &ConnectOptions::default())
}
