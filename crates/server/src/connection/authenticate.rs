//! From the greeting to a session.

use super::compressions::Compressions;
use super::ways::{Entry, Exchange};
use super::{Channel, End, Output, proxied};
use crate::accounts::{self, Trust};
use crate::random::random_letters;
use crate::shared::Shared;
use crate::stream::Door;
use crate::tls::cipher_name;
use rustls::ProtocolVersion;
use sql::accounts::{Account, TlsNeed};
use sql::audit::ConnectionEvent;
use sql::host::ConnectionCount;
use sql::{Compression, ErrorKind, Session, SqlError};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::auth::{SCRAMBLE_BYTES, Scramble};
use wire::compression::Method;
use wire::constants::{auth_plugin, capability, charset, status};
use wire::handshake::{ChangeUser, Greeting, HandshakeResponse, is_tls_request};
use wire::response::{self, OkFields, OkHeader};

/// The longest names have 64 characters in databases and 128 in accounts.
const NAME_CHARS_MAX: usize = 256;
/// How long a stranger waits for the answer that its password is wrong.
const WRONG_PASSWORD_DELAY: Duration = Duration::from_millis(200);

/// What a client says about itself when it connects or changes the user.
pub(super) struct Claim {
    user: String,
    answer: Vec<u8>,
    /// The method by which the answer was made. Empty if the answer cannot be used.
    plugin: Vec<u8>,
    /// The client names a method that the server has not begun with. MySQL's library then answers nothing,
    /// and waits to be asked.
    wants_to_be_asked: bool,
    database: Option<String>,
    /// The number of the collation that it speaks in; 0 = it does not say.
    charset: u16,
}

/// Sends the greeting, checks the client's response and answers it. The session is in the database that the
/// client asked for.
pub(super) fn handshake(shared: &Shared, channel: &mut Channel) -> Result<Session, End> {
    let values = shared.instance.globals().values();
    channel.idle_timeout = Duration::from_secs(values.unsigned("connect_timeout"));
    channel.deadline = Some(Instant::now() + channel.idle_timeout);
    channel
        .output
        .entry
        .stream
        .set_write_timeout(Duration::from_secs(values.unsigned("net_write_timeout")))?;
    let scramble = new_scramble()?;
    channel.scramble = scramble;
    let tls = if shared.tls.is_some() { capability::SSL } else { 0 };
    let compressions = Compressions::of(&values.text("protocol_compression_algorithms"));
    let capabilities = (capability::SERVER | tls) & !compressions.forbidden();
    let greeting = Greeting {
        server_version: values.text("version"),
        connection_id: channel.output.entry.id as u32,
        scramble,
        capabilities,
        charset: charset::UTF8MB4_GENERAL_CI as u8,
        status: status::AUTOCOMMIT,
        auth_plugin: values.text("default_authentication_plugin"),
    };
    greeting.write(channel.output.writer.begin());
    channel.output.writer.finish();
    channel.flush()?;
    channel.reader.set_sequence(1);
    proxied::read_header(&values.text("proxy_protocol_networks"), channel)?;

    let mut packet = channel.packet()?;
    if is_tls_request(channel.reader.payload(&packet)) {
        upgrade(shared, channel)?;
        packet = channel.packet()?;
    }
    let response = HandshakeResponse::parse(channel.reader.payload(&packet))
        .map_err(|_| End::Refused(SqlError::new(ErrorKind::BadHandshake, "Bad handshake")))?;
    channel.output.capabilities = response.capabilities & capabilities;
    channel.compression = compressions.method(&response, channel.output.capabilities)?;
    let response_is_of_mariadb = response.capabilities & capability::LONG_PASSWORD == 0;
    channel.interactive = response.capabilities & capability::INTERACTIVE != 0;
    let claim = Claim {
        user: text(response.user),
        answer: response.auth_answer.to_vec(),
        plugin: method_of(response.auth_plugin),
        wants_to_be_asked: !response.auth_plugin.is_empty()
            && response.auth_plugin != greeting.auth_plugin.as_bytes(),
        database: response.database.map(text),
        charset: response.charset.into(),
    };
    channel.answer();
    let result = authenticate(shared, channel, &scramble, &claim).and_then(|mut admitted| {
        // MySQL's clients set this flag, and do not know of proofs.
        if response_is_of_mariadb {
            admitted.proof = prove(shared, channel, &admitted, &scramble);
        }
        channel.deadline = None;
        channel.reader.set_payload_bytes_max(admitted.session.variables().common.max_allowed_packet as usize);
        enter_database(channel, admitted, &claim)
    });
    note_login(shared, channel, &claim, &result, |error| match error {
        None => ConnectionEvent::Connect,
        Some(code) => ConnectionEvent::FailedConnect(code),
    });
    if result.is_err() {
        channel.output.entry.note_leave_of_stranger(shared.instance.audit(), &claim.user);
    }
    result.and_then(|session| send_welcome(channel, session))
}

/// Tells the audit log how a login ended.
fn note_login(
    shared: &Shared,
    channel: &Channel,
    claim: &Claim,
    result: &Result<Session, End>,
    event: impl FnOnce(Option<u16>) -> ConnectionEvent,
) {
    let audit = shared.instance.audit();
    let (database, code) = match result {
        Ok(session) => (session.database().map(|name| &**name), None),
        Err(End::Refused(error) | End::Closed(error)) => (None, Some(error.code())),
        // The client went away.
        Err(End::Quit | End::Gone(_) | End::Killed) => (None, Some(ErrorKind::NetworkReadFailed.code())),
    };
    channel.output.entry.note_event(audit, &claim.user, database, event(code));
}

/// Begins TLS, as the client has asked. Its answer to the greeting comes next, encrypted.
fn upgrade(shared: &Shared, channel: &mut Channel) -> Result<(), End> {
    let Some(tls) = &shared.tls else {
        return Err(End::Refused(SqlError::new(ErrorKind::BadHandshake, "Bad handshake")));
    };
    tls.count_begun();
    let connection = tls.settings().connection().map_err(|error| End::Gone(io::Error::other(error)))?;
    let early = channel.reader.take_rest();
    let stream = &channel.output.entry.stream;
    stream.encrypt(connection, &early)?;
    loop {
        let left = channel.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(End::Gone(io::ErrorKind::TimedOut.into()));
        }
        if let Some(left) = left {
            stream.set_read_timeout(left)?;
        }
        if stream.handshake_step()? {
            break;
        }
    }
    tls.count_finished(stream.encrypted().is_some_and(|encrypted| encrypted.resumed));
    Ok(())
}

/// The proof of the server's certificate for a client of MariaDB's kind. Empty without TLS or a password.
fn prove(shared: &Shared, channel: &Channel, admitted: &Admitted, scramble: &Scramble) -> Vec<u8> {
    match &shared.tls {
        Some(tls) if !admitted.secret.is_empty() && channel.output.entry.stream.encrypted().is_some() => {
            tls.settings().proof(&admitted.secret, scramble)
        }
        _ => Vec::new(),
    }
}

impl Claim {
    /// The claim of COM_CHANGE_USER. Its answer is made of the scramble of the greeting.
    pub(super) fn of_change(request: ChangeUser<'_>) -> Claim {
        Claim {
            user: text(request.user),
            answer: request.auth_answer.to_vec(),
            plugin: method_of(request.auth_plugin),
            wants_to_be_asked: !request.auth_plugin.is_empty(),
            database: Some(text(request.database)).filter(|name| !name.is_empty()),
            charset: request.charset.unwrap_or(0),
        }
    }
}

/// The method that a client says it has. Clients that name none have the oldest one.
fn method_of(named: &[u8]) -> Vec<u8> {
    if named.is_empty() { auth_plugin::NATIVE_PASSWORD.as_bytes().to_vec() } else { named.to_vec() }
}

/// COM_CHANGE_USER: a new session for another account.
pub(super) fn change_user(shared: &Shared, channel: &mut Channel, claim: &Claim) -> Result<Session, End> {
    // MariaDB's client library goes on with the scramble of the greeting, whatever it is sent.
    let scramble = channel.scramble;
    let result = authenticate(shared, channel, &scramble, claim)
        .and_then(|admitted| enter_database(channel, admitted, claim));
    note_login(shared, channel, claim, &result, |error| ConnectionEvent::ChangeUser(error.unwrap_or(0)));
    result.and_then(|session| send_welcome(channel, session))
}

/// A client that may come in.
struct Admitted {
    session: Session,
    /// What the server keeps of the password that the client knows; empty if there is none.
    secret: Vec<u8>,
    /// See [`crate::tls::Settings::proof`].
    proof: Vec<u8>,
}

/// Checks the claim. On success nothing is answered yet.
fn authenticate(
    shared: &Shared,
    channel: &mut Channel,
    scramble: &Scramble,
    claim: &Claim,
) -> Result<Admitted, End> {
    let mut identified = None;
    if shared.instance.accounts().are_on() {
        identified = Some(identify(shared, channel, scramble, claim)?);
    }
    let peer = channel.output.entry.peer_uid();
    let reserve = usize::from(shared.trusted_peers.trust(peer) != Trust::No);
    let values = shared.instance.globals().values();
    let door = channel.output.entry.door;
    let connections_max = values.unsigned(match door {
        Door::Main => "max_connections",
        Door::Extra => "extra_max_connections",
    }) as usize;
    if !shared.registry.admit(channel.output.entry.id, door, connections_max + reserve) {
        shared.counters.add(ConnectionCount::RefusedMaxConnections, 1);
        let error = SqlError::new(ErrorKind::TooManyConnections, "Too many connections");
        return Err(End::Refused(error));
    }
    let mut session = Session::new(
        shared.instance.clone(),
        channel.output.entry.id,
        &claim.user,
        channel.output.entry.host(),
    );
    let mut secret = Vec::new();
    if let Some((account, known)) = identified {
        // The place of another account, before COM_CHANGE_USER, is given back.
        channel.place = None;
        let each_max = values.signed("max_user_connections");
        let place = shared.accounts.take_place(&account, each_max).map_err(End::Refused)?;
        session.log_in(&account, &place.hourly, is_expired(shared, &account));
        channel.place = Some(place);
        secret = known;
    }
    session.be_audited();
    session.set_handshake(claim.charset, channel.interactive);
    session.set_counts_found_rows(channel.output.capabilities & capability::FOUND_ROWS != 0);
    session.set_multi_statements(channel.output.capabilities & capability::MULTI_STATEMENTS != 0);
    if let Some(encrypted) = channel.output.entry.stream.encrypted() {
        let version = match encrypted.version {
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            _ => "TLSv1.3",
        };
        session.set_encryption(version, cipher_name(encrypted.cipher));
    }
    channel.output.entry.authenticated(&claim.user, session.interrupt().clone());
    Ok(Admitted { session, secret, proof: Vec::new() })
}

/// Finds the account that the client means, and has the client prove that it may use it. Gives what the
/// server keeps of the password, too.
fn identify(
    shared: &Shared,
    channel: &mut Channel,
    scramble: &Scramble,
    claim: &Claim,
) -> Result<(Arc<Account>, Vec<u8>), End> {
    let values = shared.instance.globals().values();
    let host = channel.output.entry.host().to_owned();
    let trust = shared.trusted_peers.trust(channel.output.entry.peer_uid());
    let is_secure = channel.output.entry.is_secure();
    let account = accounts::find(shared.instance.accounts(), &claim.user, &host);
    if let Some(account) = &account {
        let errors_max = values.unsigned("max_password_errors");
        shared.accounts.check_block(account, &host, errors_max).map_err(|error| refuse(error, trust))?;
    }
    let mut exchange = Exchange {
        shared,
        channel,
        scramble,
        answer: claim.answer.clone(),
        plugin: claim.plugin.clone(),
        wants_to_be_asked: claim.wants_to_be_asked,
    };
    let may_talk = is_secure || !values.boolean("require_secure_transport");
    let entry = match &account {
        Some(account) if may_talk => exchange.try_account(account)?,
        None if may_talk => {
            exchange.try_nothing(&values.text("default_authentication_plugin"))?;
            Entry::Closed
        }
        _ => Entry::Closed,
    };
    let denied = || refuse(accounts::denied(&claim.user, &host, exchange.uses_password()), trust);
    let Some(account) = account else { return Err(denied()) };
    let Entry::Open(secret) = entry else {
        if may_talk {
            shared.accounts.note(&account, &host, false);
        }
        return Err(denied());
    };
    if account.locked {
        let error = SqlError::new(ErrorKind::AccountLocked, "Access denied, this account is locked");
        return Err(refuse(error, trust));
    }
    if !meets(exchange.channel, &account.tls) {
        return Err(denied());
    }
    shared.accounts.note(&account, &host, true);
    let can_change_it = exchange.channel.output.capabilities & capability::CAN_HANDLE_EXPIRED_PASSWORDS != 0;
    if values.boolean("disconnect_on_expired_password") && !can_change_it && is_expired(shared, &account) {
        let text = "Your password has expired. To log in you must change it using a client that supports \
                    expired passwords";
        return Err(End::Refused(SqlError::new(ErrorKind::PasswordExpired, text)));
    }
    Ok((account, secret))
}

/// True if the account may do nothing but change its password.
fn is_expired(shared: &Shared, account: &Account) -> bool {
    let days = shared.instance.globals().values().unsigned("default_password_lifetime");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    account.is_expired(days, now)
}

/// Whether the connection is as the account's REQUIRE wants it.
fn meets(channel: &Channel, need: &TlsNeed) -> bool {
    let stream = &channel.output.entry.stream;
    match need {
        TlsNeed::None => true,
        TlsNeed::Any => stream.encrypted().is_some(),
        TlsNeed::X509 => stream.peer_names().is_some(),
        TlsNeed::Specified { issuer, subject, cipher } => {
            let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
            let Some(encrypted) = stream.encrypted() else { return false };
            let names = match issuer.is_empty() && subject.is_empty() {
                true => Some(Default::default()),
                false => stream.peer_names(),
            };
            names.is_some_and(|names| is(issuer, &names.issuer) && is(subject, &names.subject))
                && is(cipher, cipher_name(encrypted.cipher))
        }
    }
}

/// The end of a login that failed. Guessing is slow on one connection, and there are few connections for
/// strangers.
fn refuse(error: SqlError, trust: Trust) -> End {
    if trust == Trust::No {
        std::thread::sleep(WRONG_PASSWORD_DELAY);
    }
    End::Refused(error)
}

/// The session is in the database that the client asked for, and the OK is in the writer.
fn enter_database(channel: &mut Channel, admitted: Admitted, claim: &Claim) -> Result<Session, End> {
    let Admitted { mut session, proof, .. } = admitted;
    session.set_tracks_changes(channel.output.capabilities & capability::SESSION_TRACK != 0);
    if let Some(database) = &claim.database {
        session.use_database(database).map_err(End::Refused)?;
    }
    let Output { writer, changes, .. } = &mut channel.output;
    changes.clear();
    changes.add(&mut session);
    let fields = OkFields {
        status: session.status_flags(),
        info: &proof,
        changes: changes.encoded(),
        ..OkFields::default()
    };
    response::ok(writer, OkHeader::Statement, &fields);
    changes.clear();
    Ok(session)
}

/// Sends the OK of a login. What follows may be compressed.
fn send_welcome(channel: &mut Channel, mut session: Session) -> Result<Session, End> {
    channel.flush()?;
    if let Some(method) = channel.compression {
        channel.output.entry.stream.compress(method);
        channel.reader.ignore_sequences();
        session.set_compression(match method {
            Method::Zlib => Compression { algorithm: "zlib", level: 6 },
            Method::Zstd { level } => Compression { algorithm: "zstd", level },
        });
    }
    Ok(session)
}

/// A name that a client sends, cut to a length that is beyond every real one.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(NAME_CHARS_MAX).collect()
}

fn new_scramble() -> Result<Scramble, End> {
    Ok(random_letters::<SCRAMBLE_BYTES>()?)
}
