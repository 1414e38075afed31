//! A server from its start to its end.

use crate::accounts::{Accounts, TrustedPeers, first_accounts, has_password};
use crate::connection;
use crate::descriptors;
use crate::init_file::InitFile;
use crate::key_pair::KeyPair;
use crate::listeners::{Address, Event, Listeners};
use crate::log::Log;
use crate::metrics::MetricsServer;
use crate::options::Options;
use crate::pid_file::PidFile;
use crate::registry::Registry;
use crate::shared::{Counters, Shared};
use crate::signals;
use crate::slow_log::SlowLog;
use crate::stream::{Door, Stream};
use crate::tls::Tls;
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Arc, Weak, thread};
use engine::Database;
use sql::Instance;
use sql::accounts::Account;
use sql::host::{Host, Kill};
use sql::variables::{Globals, latch_implementation};
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use vfs::{OsVfs, Vfs};
use wire::{PacketWriter, response};

/// How long the server waits for statements to end when it stops. Then it cuts their connections.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// Virtual memory for the stack of a connection's thread. Pages that are not touched take no memory.
const STACK_BYTES: usize = 8 << 20;

/// Why a server cannot start.
#[derive(Debug)]
pub struct StartError(String);

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// A server that listens. It accepts clients from [`Server::run`] on.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    listeners: Listeners,
    metrics: Option<MetricsServer>,
    pid_file: Option<PidFile>,
    stop: UnixStream,
    wake: UnixStream,
}

/// Stops a server from another thread.
#[derive(Debug)]
pub struct StopHandle(UnixStream);

impl StopHandle {
    pub fn stop(&self) {
        // An error means that the pipe is full or closed: then the server has been told already.
        let _ = (&self.0).write(b"s");
    }
}

impl Server {
    /// Opens the data directory and the sockets.
    ///
    /// # Errors
    /// A folder is missing, an option has a value that cannot be used, the data directory cannot be opened,
    /// an address cannot be listened at, or the file of `--pid-file` cannot be written.
    pub fn start(options: Options, log: Arc<Log>) -> Result<Server, StartError> {
        Server::start_on(Arc::new(OsVfs), options, log)
    }

    /// The same on other files than those of the operating system: in tests, on files that fail on demand.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_on(vfs: Arc<dyn Vfs>, options: Options, log: Arc<Log>) -> Result<Server, StartError> {
        let values = options.globals.values();
        // This must come before any latch is made that is used often.
        latch_implementation(&values).choose();
        if values.boolean("latch_statistics") {
            base::sync::set_metering(true);
        }
        if values.boolean("query_phases") {
            base::phases::set_on(true);
        }
        let datadir = options.datadir();
        let skip_grant_tables = options.skip_grant_tables();
        let checks_passwords = options.checks_passwords;
        let own_uid = rustix::process::geteuid().as_raw();
        let trusted_peers = TrustedPeers::named(&values.text("trusted_peers"), own_uid);
        check_folders(&options)?;
        warn_of_open_folder(&datadir, &log);
        for remark in &options.remarks {
            log.note(remark);
        }
        let socket = options.socket();
        let pid_path = options.pid_file();
        let init_file = options.init_file().map(InitFile::read).transpose().map_err(StartError)?;
        let metrics = options.metrics_address();
        let metrics = metrics.as_deref().map(MetricsServer::listen).transpose().map_err(StartError)?;
        // The data directory is opened before the sockets, because two servers on one folder would be the
        // worst mistake.
        let open_files = claim_descriptors(&options.globals, &log);
        let database = open_database(vfs, &datadir, &options, open_files)?;
        let opened = listen(&options, &socket).and_then(|listeners| {
            let accounts = first_accounts(&datadir).map_err(|error| StartError(error.to_string()))?;
            let tls = Tls::open(&values, &datadir, &log).map_err(|error| StartError(error.to_string()))?;
            let pid_file = pid_path.as_deref().map(write_pid_file).transpose()?;
            Ok((listeners, accounts, tls, pid_file))
        });
        let (listeners, accounts, tls, pid_file) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // The database was not used, so closing it leaves it as it was found.
                let _ = database.close();
                return Err(error);
            }
        };
        if skip_grant_tables {
            log.warning(
                "--skip-grant-tables: everyone who reaches the unix socket may do everything, and there is no TCP",
            );
        }
        tell_of_recovery(&database, &log);
        let globals = options.globals.with_latch_as_chosen();
        describe_flush_method(&globals, &database, &log);
        let port = listeners.port().unwrap_or(0);
        globals.describe("datadir", &format!("{}/", datadir.display()));
        describe_names(&globals, &socket, port, pid_path.as_deref());
        describe_tls(&globals, tls.as_ref());
        let shared = Arc::new(Shared {
            instance: Instance::with_globals(database, globals),
            registry: Registry::default(),
            log,
            accounts: Accounts::default(),
            trusted_peers,
            key_pair: KeyPair::at(
                &datadir,
                &values.text("caching_sha2_password_private_key_path"),
                &values.text("caching_sha2_password_public_key_path"),
            ),
            tls,
            started: Instant::now(),
            counters: Counters::default(),
            buffers: base::CoreLocal::new(),
            stopping: AtomicBool::new(false),
            slow_log: SlowLog::new(port, &socket),
        });
        let host: Arc<dyn Host> = shared.clone();
        let host: Weak<dyn Host> = Arc::downgrade(&host);
        shared.instance.attach(host);
        if !skip_grant_tables {
            open_accounts(&shared, &accounts)?;
        }
        if checks_passwords {
            shared.instance.accounts().set_checks_passwords(true);
        }
        if let Err(error) = shared.instance.start_audit() {
            let _ = shared.instance.engine().close();
            return Err(StartError(format!("--server-audit-logging: {}", error.message)));
        }
        if let Some(init_file) = init_file {
            init_file.run(&shared.instance, &shared.log);
        }
        let start = |listeners| MetricsServer::start(listeners, shared.clone());
        let metrics = metrics.map(start).transpose().map_err(|error| StartError(error.to_string()))?;
        if let Some(metrics) = &metrics {
            shared.log.note(&format!("metrics: http://{}/metrics", metrics.address()));
        }
        let (stop, wake) = UnixStream::pair().map_err(|error| StartError(error.to_string()))?;
        Ok(Server { shared, listeners, metrics, pid_file, stop, wake })
    }

    pub fn addresses(&self) -> Vec<Address> {
        self.listeners.addresses()
    }

    /// The address of the metrics, if `--metrics-address` was given.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(MetricsServer::address)
    }

    pub fn instance(&self) -> &Arc<Instance> {
        &self.shared.instance
    }

    /// Stops the server at SIGTERM and SIGINT.
    pub fn stop_on_signals(&self) -> io::Result<()> {
        signals::stop_on_signals(&self.wake)
    }

    pub fn stop_handle(&self) -> io::Result<StopHandle> {
        Ok(StopHandle(self.wake.try_clone()?))
    }

    /// Serves until it is told to stop, then ends the connections and closes the database.
    ///
    /// # Errors
    /// What went wrong while the database was closed.
    pub fn run(self) -> Result<(), engine::Error> {
        loop {
            match self.listeners.wait(&self.stop) {
                Event::Connection(stream, host, door) => self.connect(stream, host, door),
                Event::Stop => break,
                Event::Failed(error) => {
                    self.shared.log.error(&format!("cannot accept a connection: {error}"));
                    // Most likely there are no file descriptors left: wait until some are closed.
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
        self.stop()
    }

    fn connect(&self, stream: Stream, host: String, door: Door) {
        let entry = match self.shared.registry.add(stream, host, door) {
            Ok(entry) => entry,
            Err(stream) => {
                refuse(&stream, 1053, "Server shutdown in progress");
                return;
            }
        };
        let shared = self.shared.clone();
        let spawned =
            thread::Builder::new().name(format!("connection-{}", entry.id)).stack_size(STACK_BYTES).spawn({
                let entry = entry.clone();
                move || connection::run(&shared, entry)
            });
        if let Err(error) = spawned {
            self.shared.log.error(&format!("cannot start a thread for connection {}: {error}", entry.id));
            refuse(&entry.stream, 1135, &format!("Can't create a new thread ({error})"));
            entry.stream.close();
            self.shared.registry.remove(entry.id);
        }
    }

    fn stop(self) -> Result<(), engine::Error> {
        let Server { shared, listeners, metrics, pid_file, .. } = self;
        shared.log.note("stopping");
        drop(listeners);
        drop(metrics);
        // ORDER: see `Shared::is_stopping`.
        shared.stopping.store(true, Ordering::Relaxed);
        shared.registry.close();
        for entry in shared.registry.all() {
            entry.kill(Kill::Connection);
        }
        if !shared.registry.wait_until_empty(STOP_WAIT) {
            // The clients of these connections do not read their results.
            for entry in shared.registry.all() {
                shared.log.warning(&format!("connection {} is cut off", entry.id));
                entry.stream.close();
            }
            shared.registry.wait_until_empty(STOP_WAIT);
        }
        let closed = shared.instance.engine().close();
        // Only now: a program that waits for the file to go may start the next server on the same folder.
        drop(pid_file);
        match &closed {
            Ok(()) => shared.log.note("stopped"),
            Err(error) => shared.log.error(&format!("the database was not closed cleanly: {error}")),
        }
        closed
    }
}

/// Reads the accounts. `first` are those of a data directory that has none in its tables.
fn open_accounts(shared: &Shared, first: &[Account]) -> Result<(), StartError> {
    if let Err(error) = sql::open_accounts(&shared.instance, first) {
        let _ = shared.instance.engine().close();
        return Err(StartError(format!("cannot read the accounts: {}", error.message)));
    }
    if !shared
        .instance
        .accounts()
        .find("root", &["127.0.0.1", "localhost"])
        .is_some_and(|root| has_password(&root))
    {
        shared.log.note(
            "root has no password: TCP refuses it. Connect through the unix socket as the user who runs the server and \
             run SET PASSWORD = PASSWORD('...')",
        );
    }
    Ok(())
}

/// Sends an error instead of a greeting. It has no SQLSTATE, because the client has not said yet which
/// protocol it speaks.
fn refuse(stream: &Stream, code: u16, message: &str) {
    let mut writer = PacketWriter::new();
    response::error(&mut writer, code, None, message);
    // If the error cannot be sent, nothing is lost but the reason of the refusal.
    let _ = stream.set_write_timeout(Duration::from_millis(100));
    let _ = stream.write_all(writer.bytes());
}

/// Asks the system for descriptors, and says in the log and in SHOW VARIABLES how many there are. Gives how
/// many of them files of tables may have.
fn claim_descriptors(globals: &Globals, log: &Log) -> u64 {
    let values = globals.values();
    let limit = descriptors::raise(values.unsigned("open_files_limit"), log);
    globals.describe_number("open_files_limit", limit.min(u32::MAX.into()));
    let for_tables = descriptors::for_tables(limit, values.unsigned("max_connections"));
    log.note(&format!("descriptors: {limit} at most, {for_tables} of them for files of tables"));
    for_tables
}

/// Checks that the folders exist which options name.
fn check_folders(options: &Options) -> Result<(), StartError> {
    if let Some(tmpdir) = options.tmpdir()
        && !tmpdir.is_dir()
    {
        return Err(StartError(format!("--tmpdir: there is no folder {}", tmpdir.display())));
    }
    Ok(())
}

/// A folder that was made by hand, or by an older version, may let other users of the machine read all
/// tables. The server does not change the permissions of what it did not make.
fn warn_of_open_folder(datadir: &Path, log: &Log) {
    let Ok(about) = std::fs::metadata(datadir) else { return };
    let own_uid = rustix::process::geteuid().as_raw();
    if about.mode() & 0o077 != 0 {
        log.warning(&format!(
            "the data directory {} is open to other users of this machine (mode {:04o}): chmod -R go= {0}",
            datadir.display(),
            about.mode() & 0o777
        ));
    }
    if about.uid() != own_uid {
        log.warning(&format!("the data directory {} belongs to uid {}", datadir.display(), about.uid()));
    }
}

fn write_pid_file(path: &Path) -> Result<PidFile, StartError> {
    PidFile::write(path)
        .map_err(|error| StartError(format!("--pid-file: cannot write {}: {error}", path.display())))
}

/// Gives SHOW VARIABLES the addresses and files that the server has in fact.
fn describe_names(globals: &Globals, socket: &Path, port: u16, pid_path: Option<&Path>) {
    globals.describe("socket", &socket.display().to_string());
    globals.describe_number("port", port.into());
    if let Some(path) = pid_path {
        globals.describe("pid_file", &path.display().to_string());
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if globals.values().text("log_slow_query_file").is_empty() {
        globals.describe("log_slow_query_file", &format!("{host}-slow.log"));
    }
    globals.describe("hostname", &host);
}

/// Gives SHOW VARIABLES the certificate and the key that the server has in fact.
fn describe_tls(globals: &Globals, tls: Option<&Tls>) {
    let Some(tls) = tls else { return };
    let settings = tls.settings();
    globals.describe("have_ssl", "YES");
    globals.describe("ssl_cert", &settings.certificate_path().display().to_string());
    globals.describe("ssl_key", &settings.key_path().display().to_string());
}

fn tell_of_recovery(database: &Database, log: &Log) {
    let recovery = database.recovery();
    if recovery.records > 0 {
        log.note(&format!(
            "the data directory was not shut down cleanly: replayed {} log record(s), repaired {} torn page(s), rolled \
             back {} transaction(s) with {} change(s)",
            recovery.records, recovery.repaired_pages, recovery.rolled_back, recovery.changes_taken_back
        ));
    }
    for table in database.damaged_tables() {
        log.warning(&format!(
            "table `{}`.`{}` is damaged and stays closed: {}",
            table.database, table.name, table.why
        ));
    }
}

/// Opens the sockets. Clients that connect before [`Server::run`] wait.
fn listen(options: &Options, socket: &Path) -> Result<Listeners, StartError> {
    let mut listeners = Listeners::default();
    let access = options.socket_access().map_err(|problem| StartError(problem.to_string()))?;
    let error = |error: crate::listeners::ListenError| StartError(error.to_string());
    if let Some((bind, port)) = options.tcp() {
        listeners.listen_tcp(&bind, port, Door::Main).map_err(error)?;
    }
    if let Some((bind, port)) = options.extra_tcp() {
        listeners.listen_tcp(&bind, port, Door::Extra).map_err(error)?;
    }
    listeners.listen_unix(socket, access).map_err(error)?;
    Ok(listeners)
}

/// The settings of the log. Its files together may take `innodb_log_file_size`.
fn log_options(values: &sql::variables::Values) -> engine::LogOptions {
    let capacity = values.unsigned("innodb_log_file_size");
    let file_size = (capacity / 4).min(engine::LogOptions::default().file_size) & !4095;
    let buffer = values.unsigned("innodb_log_buffer_size").min(capacity / 4);
    let buffer = usize::try_from(buffer).unwrap_or(usize::MAX);
    engine::LogOptions {
        flush: sql::variables::flush_log(values.unsigned("innodb_flush_log_at_trx_commit")),
        file_size,
        // The largest power of two that is not above the requested number.
        buffer_size: 1 << buffer.ilog2(),
        capacity,
    }
}

/// Reports in the log and in SHOW VARIABLES which flush method is used.
fn describe_flush_method(globals: &Globals, database: &Database, log: &Log) {
    let asked = globals.values().text("innodb_flush_method");
    let wanted = sql::variables::flush_method(&asked);
    let method = database.flush_method();
    let name = sql::variables::flush_method_name(method);
    if method != wanted {
        log.warning(&format!(
            "--flush_method={asked}: the file system of {} does not take O_DIRECT; going on with {name}",
            database.dir().display()
        ));
    } else if asked != name {
        log.note(&format!("--flush_method={asked} is taken for {name}"));
    }
    if method == engine::FlushMethod::NoSync {
        log.warning(
            "--flush_method=nosync: nothing is made durable. If this machine stops, the whole data directory may be lost",
        );
    }
    globals.describe("innodb_flush_method", name);
}

fn open_database(
    vfs: Arc<dyn Vfs>,
    datadir: &Path,
    options: &Options,
    open_files: u64,
) -> Result<Arc<Database>, StartError> {
    let error =
        |why: String| StartError(format!("cannot open the data directory {}: {why}", datadir.display()));
    let parent = datadir.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent
        && !parent.is_dir()
    {
        return Err(error(format!("there is no folder {}", parent.display())));
    }
    let values = options.globals.values();
    let page_size = values.unsigned("innodb_page_size");
    if !page_size.is_power_of_two() {
        let text = format!("--innodb_page_size={page_size}: expected 1K, 2K, 4K, 8K, 16K, 32K or 64K");
        return Err(StartError(text));
    }
    let engine_options = engine::Options {
        cache: engine::CacheOptions {
            size_bytes: usize::try_from(values.unsigned("key_buffer_size")).unwrap_or(usize::MAX),
            segments: values.unsigned("key_cache_segments") as u32,
            hit_path: match values.text("key_cache_hit_path").as_str() {
                "locked" => engine::HitPath::Locked,
                _ => engine::HitPath::Optimistic,
            },
            division_limit: values.unsigned("key_cache_division_limit") as u32,
            age_threshold: values.unsigned("key_cache_age_threshold") as u32,
            ..engine::CacheOptions::default()
        },
        log: log_options(&values),
        io: sql::variables::io_options(&values),
        row_tier_bytes: sql::variables::row_tier_bytes(&values),
        flush_method: sql::variables::flush_method(&values.text("innodb_flush_method")),
        thread_concurrency: values.unsigned("thread_concurrency") as u32,
        open_files: Some(usize::try_from(open_files).unwrap_or(usize::MAX)),
        // If the directory is new, its catalogue gets this page size too.
        page_size: page_size as usize,
        create: true,
        vfs,
        ..engine::Options::default()
    };
    let database = Database::open(datadir, engine_options).map_err(|problem| error(problem.to_string()))?;
    database.set_concurrency_tickets(values.unsigned("concurrency_tickets") as u32);
    database.set_lock_limit(values.unsigned("latchwork_lock_limit"));
    database.set_version_file_limit(values.unsigned("latchwork_version_file_limit"));
    database.set_version_limit(sql::variables::version_bytes(&values));
    options.globals.make_caches(&database).map_err(|problem| StartError(problem.message))?;
    Ok(database)
}
