//! From the greeting to a session.

use super::{Channel, End, Output, proxied};
use crate::accounts::{Credentials, Trust};
use crate::shared::Shared;
use crate::tls::cipher_name;
use rustls::ProtocolVersion;
use sql::host::ConnectionCount;
use sql::{ErrorKind, Session, SqlError};
use std::io;
use std::time::{Duration, Instant};
use wire::auth::{PasswordHash, SCRAMBLE_BYTES, Scramble};
use wire::constants::{NATIVE_PASSWORD, capability, charset, status};
use wire::handshake::{ChangeUser, Greeting, HandshakeResponse, is_tls_request, write_auth_switch};
use wire::response::{self, OkFields, OkHeader};

/// The longest names have 64 characters in databases and 128 in accounts.
const NAME_CHARS_MAX: usize = 256;
/// How long a stranger waits for the answer that its password is wrong.
const WRONG_PASSWORD_DELAY: Duration = Duration::from_millis(200);

/// What a client says about itself when it connects or changes the user.
pub(super) struct Claim {
    user: String,
    answer: Vec<u8>,
    plugin: Vec<u8>,
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
    let tls = if shared.tls.is_some() { capability::SSL } else { 0 };
    let capabilities = capability::SERVER | tls;
    let greeting = Greeting {
        server_version: values.text("version"),
        connection_id: channel.output.entry.id as u32,
        scramble,
        capabilities,
        charset: charset::UTF8MB4_GENERAL_CI as u8,
        status: status::AUTOCOMMIT,
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
    let response_is_of_mariadb = response.capabilities & capability::LONG_PASSWORD == 0;
    channel.interactive = response.capabilities & capability::INTERACTIVE != 0;
    let claim = Claim {
        user: text(response.user),
        answer: response.auth_answer.to_vec(),
        plugin: response.auth_plugin.to_vec(),
        database: response.database.map(text),
        charset: response.charset.into(),
    };
    channel.answer();
    let mut admitted = authenticate(shared, channel, &scramble, &claim)?;
    // MySQL's clients set this flag, and do not know of proofs.
    if response_is_of_mariadb {
        admitted.proof = prove(shared, channel, &admitted, &scramble);
    }
    channel.deadline = None;
    channel.reader.set_payload_bytes_max(admitted.session.variables().common.max_allowed_packet as usize);
    enter_database(channel, admitted, &claim)
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
    match (&shared.tls, &admitted.password) {
        (Some(tls), Some(hash)) if channel.output.entry.stream.encrypted().is_some() => {
            tls.settings().proof(hash, scramble)
        }
        _ => Vec::new(),
    }
}

impl Claim {
    /// The claim of COM_CHANGE_USER. The scramble of the greeting is not kept, so the client is asked for a
    /// new answer, unless it has no password to answer with.
    pub(super) fn of_change(request: ChangeUser<'_>) -> Claim {
        let asks_again = !request.auth_answer.is_empty();
        Claim {
            user: text(request.user),
            answer: request.auth_answer.to_vec(),
            plugin: if asks_again { b"again".to_vec() } else { NATIVE_PASSWORD.to_vec() },
            database: Some(text(request.database)).filter(|name| !name.is_empty()),
            charset: request.charset.unwrap_or(0),
        }
    }
}

/// COM_CHANGE_USER: a new session for another account.
pub(super) fn change_user(shared: &Shared, channel: &mut Channel, claim: &Claim) -> Result<Session, End> {
    let scramble = new_scramble()?;
    let admitted = authenticate(shared, channel, &scramble, claim)?;
    enter_database(channel, admitted, claim)
}

/// A client that may come in.
struct Admitted {
    session: Session,
    /// Of the password that the client knows.
    password: Option<PasswordHash>,
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
    let mut answer = claim.answer.clone();
    let mut password = None;
    if let Some(accounts) = &shared.accounts {
        let knows_plugin = claim.plugin.is_empty() || claim.plugin == NATIVE_PASSWORD;
        if !knows_plugin {
            write_auth_switch(channel.output.writer.begin(), scramble);
            channel.output.writer.finish();
            channel.flush()?;
            channel.reader.set_sequence(channel.output.writer.sequence());
            let packet = channel.packet()?;
            answer = channel.reader.payload(&packet).to_vec();
            channel.answer();
        }
        let peer = channel.output.entry.peer_uid();
        let shown = Credentials {
            user: &claim.user,
            host: channel.output.entry.host(),
            scramble,
            answer: &answer,
            trust: shared.trusted_peers.trust(peer),
            errors_max: shared.instance.globals().values().unsigned("max_password_errors"),
        };
        let wants_tls = shared.instance.globals().values().boolean("require_secure_transport");
        let checked = match wants_tls && !channel.output.entry.is_secure() {
            true => Err(shown.denied()),
            false => accounts.check(&shown),
        };
        password = match checked {
            Ok(password) => password,
            Err(error) => {
                if shown.trust == Trust::No {
                    // Guessing is slow on one connection, and there are few connections for strangers.
                    std::thread::sleep(WRONG_PASSWORD_DELAY);
                }
                return Err(End::Refused(error));
            }
        };
    }
    let peer = channel.output.entry.peer_uid();
    let reserve = usize::from(shared.trusted_peers.trust(peer) != Trust::No);
    let connections_max = shared.instance.globals().values().unsigned("max_connections") as usize;
    if !shared.registry.admit(channel.output.entry.id, connections_max + reserve) {
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
    Ok(Admitted { session, password, proof: Vec::new() })
}

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
    channel.flush()?;
    if channel.output.capabilities & capability::COMPRESS != 0 {
        channel.output.entry.stream.compress();
        channel.reader.ignore_sequences();
        session.set_compressed();
    }
    Ok(session)
}

/// A name that a client sends, cut to a length that is beyond every real one.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(NAME_CHARS_MAX).collect()
}

/// Random bytes. None of them is zero or `$`, which another authentication method uses as a separator.
fn new_scramble() -> Result<Scramble, End> {
    let mut scramble = [0; SCRAMBLE_BYTES];
    rustix::rand::getrandom(&mut scramble, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| End::Gone(errno.into()))?;
    for byte in &mut scramble {
        *byte = b'0' + *byte % 64;
    }
    Ok(scramble)
}
