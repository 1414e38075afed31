//! What idle connections cost a server that runs already: its memory, the next login, and the statements of
//! the few that work.
//!
//! ```sh
//! latchwork serve --datadir DIR --socket DIR/socket --port 0 --max_connections=11000 & # or mariadbd
//! cargo run --release -p latchwork-server --example idle_connection_cost -- DIR/socket $! 10000
//! ```
//!
//! The first argument is a socket where `root` needs no password, the second the server's process. The limits
//! of open files of both must allow it (`ulimit -n`).

use std::error::Error;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use wire::client::{ConnectOptions, Connection};

const LOGINS: usize = 200;
const WORKERS: usize = 2;
const WORK: Duration = Duration::from_secs(2);

type Client = Connection<UnixStream>;

fn connect(socket: &str) -> Result<Client, Box<dyn Error>> {
    let options = ConnectOptions { is_secure: true, ..ConnectOptions::default() };
    Ok(Connection::connect(UnixStream::connect(socket)?, &options)?)
}

/// The number behind a name in `/proc/PID/status`.
fn status(process: &str, name: &str) -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse()?)
}

/// The median time of a login, in microseconds.
fn login_micros(socket: &str) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..LOGINS {
        let begin = Instant::now();
        drop(connect(socket)?);
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(times[LOGINS / 2].as_secs_f64() * 1e6)
}

/// Statements a second of a few clients that do nothing else.
fn statements_a_second(socket: &str) -> Result<f64, Box<dyn Error>> {
    let mut clients = (0..WORKERS).map(|_| connect(socket)).collect::<Result<Vec<_>, _>>()?;
    let begin = Instant::now();
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(move || {
                    let mut count = 0;
                    while begin.elapsed() < WORK && client.query("SELECT 1").is_ok() {
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_default()).collect()
    });
    Ok(counts.iter().sum::<u64>() as f64 / begin.elapsed().as_secs_f64())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, process, count] = &arguments[..] else {
        return Err("arguments: a socket, the server's process, how many connections".into());
    };
    let count: usize = count.parse()?;
    let mut idle = Vec::new();
    println!("| idle | resident MiB | page tables MiB | threads | login, us | statements/s |");
    println!("|---|---|---|---|---|---|");
    for wanted in [0, count / 10, count] {
        while idle.len() < wanted {
            let mut client = connect(socket)?;
            // A statement, as a pool's connections have run before they rest.
            client.query("SELECT 1")?;
            idle.push(client);
        }
        std::thread::sleep(Duration::from_secs(2));
        let (resident, tables) = (status(process, "VmRSS")?, status(process, "VmPTE")?);
        println!(
            "| {wanted} | {:.1} | {:.1} | {} | {:.0} | {:.0} |",
            resident as f64 / 1024.0,
            tables as f64 / 1024.0,
            status(process, "Threads")?,
            login_micros(socket)?,
            statements_a_second(socket)?
        );
    }
    Ok(())
}
