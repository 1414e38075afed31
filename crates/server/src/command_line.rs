//! `latchwork serve`.

use crate::{Log, Options, Server};
use base::sync::Arc;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior};
use std::fmt;
use std::io::Write;
use std::process::ExitCode;

/// What `latchwork serve --help` prints.
pub(crate) const SERVE_HELP: &str = "\
latchwork serve: a MySQL-compatible server

  latchwork serve --datadir DIR --socket FILE        then, in another terminal:
  mariadb --socket FILE                              (as the same user; root, no password)

Data and addresses (defaults are in parentheses)
  --datadir DIR               the data directory; it is made if it is missing   (latchwork-data)
  --socket FILE               the unix socket                   (DIR/latchwork.sock)
  --socket_mode MODE          who may connect to the socket, in octal   (0777: every user reaches the login)
  --socket_owner UID:GID      user and group of the socket      (those of the server)
  --port N                    the TCP port; 0 takes a free one  (3306)
  --bind-address ADDRESS      the TCP address; * for all        (127.0.0.1)
  --extra_port N              another TCP port, for extra_max_connections more; 0 for none  (0)
  --skip-networking           no TCP
  --log-error FILE            the file of the log               (standard error)
  --pid-file FILE             a file for the id of the process; it is removed when the server stops

Who may connect
  Without a password, root may connect only through the socket, and only as the user who runs the server.
  To open TCP, connect through the socket and run: SET PASSWORD = PASSWORD('...')
  --skip-grant-tables         everyone may connect, through the socket only: there is no TCP
  --trusted_peers WHO         whom the socket lets in as root without a password: own (the user who runs the
                              server), root (uid 0), own_and_root, none, or auto: own, and uid 0 until root
                              has a password   (auto)
  --max_connections N         more connections are refused with error 1040   (151)
  --open_files_limit N        descriptors to ask the system for; 0 = as many as the hard limit allows   (0)

Encryption (without a certificate the server makes one at the first start)
  --ssl_cert FILE, --ssl_key FILE   the certificate and its key, in PEM form
  --ssl_ca FILE               who vouches for the certificates of clients
  --require_secure_transport  refuse TCP without TLS
  --ssl=OFF                   no TLS

Memory
  --key_buffer_size BYTES     the cache of tables and indexes; K, M, G   (128M)
                              innodb_buffer_pool_size is another name for it
  --key_cache_segments N      0 = one mutex; 1 to 64            (by the number of processors)
  --key_cache_hit_path PATH   optimistic, or locked as in MyISAM
  --NAME.key_buffer_size BYTES   one more key cache, called NAME; the other key_cache_ options in the same way
  --row_cache_size BYTES      the part of the key cache for single rows; 0 = none, -1 = as much as helps   (-1)
  --latchwork_lock_limit BYTES      row locks, before large parts of tables are locked (64M)
  --latchwork_version_limit BYTES   old versions of rows, at most a 16th of memory; what is more goes to files (256M)
  --latchwork_version_file_limit BYTES   those files; beyond that the oldest snapshots are given up (16G)
  --malloc-lib LIBRARY        system, mimalloc, jemalloc, tcmalloc, or a library's path   (system)
  --use-sys-malloc=OFF        take all memory from one heap behind one mutex, as servers did before 2008

Latches
  --latch_implementation KIND direct, or wait_array as in servers before 2008   (direct)
  --latch_statistics          count what happens at latches, for SHOW ENGINE LATCHWORK MUTEX
  --query_phases              count what statements spend their time on, for SHOW STATUS LIKE 'Phase_%'

Comparisons
  --preset NAME               base, tc4, smpfix, notcmalloc or onlymalloc. Sets latch_implementation, use_sys_malloc,
                              malloc_lib and thread_concurrency as in one of the published servers, and
                              key_cache_hit_path=locked. An option that is given by itself wins.
  --thread_concurrency N      at most so many statements at a time; 0 = any number   (0)

Monitoring
  --metrics-address HOST:PORT answer GET /metrics in Prometheus's text format   (off)
  --slow_query_log            write statements that take longer than --long_query_time seconds (default 10)
                              to the file --slow_query_log_file

Files
  --config FILE               read options from a file in MySQL's ini form, from its groups [mysqld], [server],
                              [mariadb] and [latchwork]; without this option no file is read
  --init-file FILE            run these statements before accepting connections: CACHE INDEX, for example

Every system variable is an option: --name=value, with - or _. SHOW VARIABLES lists them.
";

/// Runs `latchwork serve` with the arguments behind that word. Returns when the server has stopped. Only a
/// program's first thread may call it, before it starts another one, because it changes the allocator and the
/// environment.
pub fn serve(arguments: &[String]) -> ExitCode {
    match try_serve(arguments) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("latchwork serve: {why}");
            ExitCode::FAILURE
        }
    }
}

/// No core is written if the process dies: it would have rows and password hashes. The kernel then also keeps
/// other processes of the same user from looking into this one.
fn keep_memory_private(log: &Log) {
    let limit = rustix::process::getrlimit(Resource::Core);
    let none = Rlimit { current: Some(0), maximum: limit.maximum };
    let limited = rustix::process::setrlimit(Resource::Core, none);
    // The limit does not hold where the system hands cores to a program.
    if let Err(error) = limited.and(set_dumpable_behavior(DumpableBehavior::NotDumpable)) {
        log.warning(&format!("core dumps cannot be turned off: {error}"));
    }
}

fn try_serve(arguments: &[String]) -> Result<ExitCode, Box<dyn fmt::Display>> {
    fn boxed(error: impl fmt::Display + 'static) -> Box<dyn fmt::Display> {
        Box::new(error)
    }
    let options = Options::parse(arguments).map_err(boxed)?;
    if options.help {
        print!("{SERVE_HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    let values = options.globals.values();
    let library =
        heap::settle(&values.text("malloc_lib"), values.boolean("use_sys_malloc")).map_err(boxed)?;
    options.globals.describe("version_malloc_library", &library);
    let log = match options.log_error() {
        Some(path) => Log::to_file(&path)
            .map_err(|error| boxed(format!("--log-error: cannot write {}: {error}", path.display())))?,
        None => Log::to_stderr(),
    };
    let log = Arc::new(log);
    if !values.boolean("core_file") {
        keep_memory_private(&log);
    }
    let server = Server::start(options, log.clone()).map_err(boxed)?;
    // Before the ready line, because a program that reads that line may send a signal at once.
    server.stop_on_signals().map_err(|error| boxed(format!("cannot handle signals: {error}")))?;
    let addresses: Vec<String> = server.addresses().iter().map(|address| address.to_string()).collect();
    let ready = format!("latchwork {} is ready: {}", env!("CARGO_PKG_VERSION"), addresses.join(", "));
    // An error here means that nobody reads standard output. That is no reason to stop.
    let _ = writeln!(std::io::stdout(), "{ready}").and_then(|()| std::io::stdout().flush());
    log.note(&ready);
    match server.run() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(boxed(format!("the database was not closed cleanly: {error}"))),
    }
}
