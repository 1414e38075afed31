//! How a client shows that it knows its password, by the method that the server asks for.

use super::connection::{ClientError, ConnectOptions, Connection};
use crate::auth::{self, caching_sha2, parsec};
use crate::command::com;
use crate::constants::{auth_plugin, charset};
use crate::handshake::{Greeting, HandshakeResponse, parse_auth_switch};
use crate::response::{OkFields, ServerError};
use rustix::rand::{GetRandomFlags, getrandom};
use std::io::{self, Read, Write};

/// The method of the greeting, if it is one whose answer may come with the login.
pub(super) fn plugin_of(greeting: &Greeting) -> &'static str {
    match greeting.auth_plugin.as_str() {
        auth_plugin::CACHING_SHA2 => auth_plugin::CACHING_SHA2,
        _ => auth_plugin::NATIVE_PASSWORD,
    }
}

impl<S: Read + Write> Connection<S> {
    pub(super) fn response<'a>(
        &self,
        options: &'a ConnectOptions,
        plugin: &'a str,
        answer: &'a [u8],
    ) -> HandshakeResponse<'a> {
        HandshakeResponse {
            capabilities: self.capabilities,
            packet_bytes_max: 1 << 30,
            charset: charset::UTF8MB4_GENERAL_CI as u8,
            user: options.user.as_bytes(),
            auth_answer: answer,
            database: options.database.as_deref().map(str::as_bytes),
            auth_plugin: plugin.as_bytes(),
            attributes: b"",
            zstd_level: 3,
        }
    }

    pub(super) fn log_in(&mut self, options: &ConnectOptions, is_secure: bool) -> Result<(), ClientError> {
        let password = options.password.as_bytes();
        let plugin = plugin_of(&self.greeting);
        let scramble = self.greeting.scramble.to_vec();
        let answer = auth::answer_by(plugin.as_bytes(), password, &scramble);
        self.writer.set_sequence(self.reader.sequence());
        self.response(options, plugin, &answer).write(self.writer.begin());
        self.writer.finish();
        self.send()?;
        self.finish_login(password, scramble, is_secure)
    }

    /// COM_CHANGE_USER: logs in as somebody else. The capabilities stay as they are.
    ///
    /// # Errors
    /// As [`Connection::connect`]. After an error of the server the connection is of no use.
    pub fn change_user(&mut self, options: &ConnectOptions, is_secure: bool) -> Result<(), ClientError> {
        let database = options.database.as_deref().unwrap_or_default();
        let password = options.password.as_bytes();
        let scramble = self.greeting.scramble.to_vec();
        // The server asks again, with random bytes of its own. An empty answer would mean: no password.
        let answer = auth::answer(password, &scramble);
        self.writer.set_sequence(0);
        let out = self.writer.begin();
        out.push(com::CHANGE_USER);
        out.extend_from_slice(options.user.as_bytes());
        out.extend_from_slice(&[0, answer.len() as u8]);
        out.extend_from_slice(&answer);
        out.extend_from_slice(database.as_bytes());
        out.push(0);
        out.extend_from_slice(&charset::UTF8MB4_GENERAL_CI.to_le_bytes());
        out.extend_from_slice(auth_plugin::NATIVE_PASSWORD.as_bytes());
        out.push(0);
        self.writer.finish();
        self.send()?;
        self.finish_login(password, scramble, is_secure)
    }

    /// Answers what the server asks until it lets the client in.
    fn finish_login(
        &mut self,
        password: &[u8],
        mut scramble: Vec<u8>,
        is_secure: bool,
    ) -> Result<(), ClientError> {
        loop {
            let asked = self.asked()?;
            match asked.first() {
                Some(0) => {
                    self.login_info = OkFields::parse(&asked)?.info.to_vec();
                    return Ok(());
                }
                Some(0xff) => return Err(ClientError::Server(ServerError::parse(&asked)?)),
                Some(&caching_sha2::MORE_DATA) => match asked[1..] {
                    [caching_sha2::FAST_CHECK_WENT_WELL] => {}
                    [caching_sha2::NEEDS_PASSWORD] => self.tell_password(password, &scramble, is_secure)?,
                    _ => return Err(unexpected()),
                },
                _ => {
                    let (plugin, data) = parse_auth_switch(&asked)?;
                    if plugin == auth_plugin::PARSEC.as_bytes() {
                        self.answer_parsec(password, data)?;
                    } else {
                        scramble = data.to_vec();
                        self.answer(&auth::answer_by(plugin, password, &scramble))?;
                    }
                }
            }
        }
    }

    /// The server's next packet.
    fn asked(&mut self) -> Result<Vec<u8>, ClientError> {
        self.reader.set_sequence(self.writer.sequence());
        let packet = self.read_packet()?;
        let payload = self.reader.payload(&packet).to_vec();
        self.writer.set_sequence(self.reader.sequence());
        Ok(payload)
    }

    fn answer(&mut self, answer: &[u8]) -> Result<(), ClientError> {
        self.writer.packet(answer);
        self.send()
    }

    /// Sends the password itself. Where others can listen it is encrypted, with the server's key.
    fn tell_password(
        &mut self,
        password: &[u8],
        scramble: &[u8],
        is_secure: bool,
    ) -> Result<(), ClientError> {
        if is_secure {
            return self.answer(&[password, &[0]].concat());
        }
        self.answer(&[caching_sha2::WANTS_PUBLIC_KEY])?;
        let asked = self.asked()?;
        let key = match asked.split_first() {
            Some((&caching_sha2::MORE_DATA, key)) => key,
            Some((0xff, _)) => return Err(ClientError::Server(ServerError::parse(&asked)?)),
            _ => return Err(unexpected()),
        };
        match caching_sha2::encrypted(password, scramble, key) {
            Some(encrypted) => self.answer(&encrypted),
            None => Err(unexpected()),
        }
    }

    /// Asks for the salt and signs with the key that is made of it and the password.
    fn answer_parsec(&mut self, password: &[u8], nonce: &[u8]) -> Result<(), ClientError> {
        self.answer(b"")?;
        let salt = self.asked()?;
        let mut own_nonce = [0; parsec::NONCE_BYTES];
        getrandom(&mut own_nonce, GetRandomFlags::empty()).map_err(io::Error::from)?;
        match parsec::answer(password, nonce, &salt, &own_nonce) {
            Some(answer) => self.answer(&answer),
            None => Err(unexpected()),
        }
    }
}

fn unexpected() -> ClientError {
    io::Error::new(io::ErrorKind::InvalidData, "the server asks for the password in an unknown way").into()
}
