//! The part of a login that differs between methods: asks the client for what the account's ways need, one
//! way after the other, until one lets it in.

use super::{Channel, End};
use crate::accounts::{CACHING_SHA2, ED25519, NATIVE, PARSEC, UNIX_SOCKET, is_vouched_for};
use crate::random::random_letters;
use crate::shared::Shared;
use sql::accounts::{Account, Way};
use wire::auth::caching_sha2::{self, SlowHash, Verifier};
use wire::auth::ed25519::{self, PublicKey};
use wire::auth::parsec::{self, SaltedKey};
use wire::auth::{PasswordHash, Scramble};
use wire::constants::auth_plugin;
use wire::handshake::write_auth_switch;

/// The exchange with one client.
pub(super) struct Exchange<'a> {
    pub shared: &'a Shared,
    pub channel: &'a mut Channel,
    pub scramble: &'a Scramble,
    /// The client's answer, and the method by which it was made; empty if it cannot be used.
    pub answer: Vec<u8>,
    pub plugin: Vec<u8>,
    /// An empty answer may be none: see [`super::authenticate::Claim`].
    pub wants_to_be_asked: bool,
}

/// Whether a way lets the client in.
pub(super) enum Entry {
    Closed,
    /// With what the server keeps of the password that the client knows. It is empty if there is none.
    Open(Vec<u8>),
}

impl Entry {
    fn open_if(open: bool, secret: &[u8]) -> Entry {
        if open { Entry::Open(secret.to_vec()) } else { Entry::Closed }
    }
}

impl Exchange<'_> {
    /// True if the client has shown a password, right or wrong. Some clients end an empty one with a zero.
    pub(super) fn uses_password(&self) -> bool {
        !matches!(self.answer[..], [] | [0])
    }

    /// Tries the ways of an account. What the operating system vouches for comes first: it asks the client
    /// for nothing.
    pub(super) fn try_account(&mut self, account: &Account) -> Result<Entry, End> {
        let peer = self.channel.output.entry.peer_uid();
        let trust = self.shared.trusted_peers.trust(peer);
        if account.ways.iter().any(|way| way.plugin == UNIX_SOCKET)
            && is_vouched_for(account, peer, trust, self.uses_password())
        {
            return Ok(Entry::Open(Vec::new()));
        }
        // The method that the client names is the one that it surely has, and some end the login if they are
        // asked by another one.
        let is_named = |way: &&Way| way.plugin.as_bytes() == self.plugin;
        let (named, others): (Vec<&Way>, Vec<&Way>) = account.ways.iter().partition(is_named);
        for way in named.into_iter().chain(others).filter(|way| way.plugin != UNIX_SOCKET) {
            if let Entry::Open(secret) = self.try_way(way)? {
                return Ok(Entry::Open(secret));
            }
        }
        Ok(Entry::Closed)
    }

    /// Asks a client for a password although its account has none to ask for, so that it cannot tell.
    pub(super) fn try_nothing(&mut self, plugin: &str) -> Result<(), End> {
        // These are hashes in their form, and of no password.
        let text = match plugin {
            CACHING_SHA2 => format!("$A$005${}", ".".repeat(63)),
            _ => format!("*{}", "0".repeat(40)),
        };
        self.try_way(&Way { plugin: plugin.to_owned(), text }).map(|_| ())
    }

    fn try_way(&mut self, way: &Way) -> Result<Entry, End> {
        match way.plugin.as_str() {
            NATIVE => {
                self.switch_to(auth_plugin::NATIVE_PASSWORD, way)?;
                if way.text.is_empty() {
                    return Ok(Entry::open_if(!self.uses_password(), b""));
                }
                let Some(hash) = PasswordHash::from_text(&way.text) else { return Ok(Entry::Closed) };
                Ok(Entry::open_if(hash.accepts(self.scramble, &self.answer), &hash.0))
            }
            ED25519 => self.try_ed25519(way),
            PARSEC => self.try_parsec(way),
            CACHING_SHA2 => {
                self.switch_to(auth_plugin::CACHING_SHA2, way)?;
                match way.text.is_empty() {
                    true => Ok(Entry::open_if(!self.uses_password(), b"")),
                    false => self.try_caching_sha2(way),
                }
            }
            _ => Ok(Entry::Closed),
        }
    }

    /// Has the client answer by this method, unless it has.
    fn switch_to(&mut self, plugin: &str, way: &Way) -> Result<(), End> {
        let may_be_none = self.wants_to_be_asked && !self.uses_password() && !way.text.is_empty();
        if may_be_none || self.plugin != plugin.as_bytes() {
            let data = [&self.scramble[..], &[0]].concat();
            self.answer = self.ask(|packet| write_auth_switch(packet, plugin, &data))?;
            self.wants_to_be_asked = false;
            self.plugin = plugin.as_bytes().to_vec();
        }
        Ok(())
    }

    /// The client signs random bytes of its own: the greeting's are too few.
    fn try_ed25519(&mut self, way: &Way) -> Result<Entry, End> {
        let nonce = random_letters::<{ ed25519::NONCE_BYTES }>()?;
        self.answer = self.ask(|packet| write_auth_switch(packet, auth_plugin::ED25519, &nonce))?;
        self.plugin.clear();
        // A client signs with an empty password too.
        let key = match way.text.is_empty() {
            true => Some(PublicKey::of(b"")),
            false => PublicKey::from_text(&way.text),
        };
        let Some(key) = key else { return Ok(Entry::Closed) };
        Ok(Entry::open_if(key.accepts(&nonce, &self.answer), &key.0))
    }

    /// The client asks for the salt with an empty packet, then signs random bytes of both sides.
    fn try_parsec(&mut self, way: &Way) -> Result<Entry, End> {
        let Some(kept) = SaltedKey::from_text(&way.text) else { return Ok(Entry::Closed) };
        let nonce = random_letters::<{ parsec::NONCE_BYTES }>()?;
        self.plugin.clear();
        self.answer = self.ask(|packet| write_auth_switch(packet, auth_plugin::PARSEC, &nonce))?;
        if !self.answer.is_empty() {
            return Ok(Entry::Closed);
        }
        self.answer = self.ask(|packet| packet.extend_from_slice(&kept.salt_packet()))?;
        Ok(Entry::open_if(kept.accepts(&nonce, &self.answer), way.text.as_bytes()))
    }

    fn try_caching_sha2(&mut self, way: &Way) -> Result<Entry, End> {
        let Some(hash) = SlowHash::parse(&way.text) else { return Ok(Entry::Closed) };
        if !self.uses_password() {
            return Ok(Entry::Closed);
        }
        // As in MySQL, an answer that is not right is followed by the password itself: old PyMySQL takes the
        // zero behind the scramble for a part of it.
        let known = self.shared.accounts.verifier(&way.text);
        if known.is_some_and(|verifier| verifier.accepts(self.scramble, &self.answer)) {
            let said = [caching_sha2::MORE_DATA, caching_sha2::FAST_CHECK_WENT_WELL];
            self.channel.output.writer.packet(&said);
            return Ok(Entry::Open(way.text.as_bytes().to_vec()));
        }
        let Some(password) = self.password()? else { return Ok(Entry::Closed) };
        let is_right = hash.is_of(&password);
        if is_right {
            self.shared.accounts.remember(&way.text, Verifier::of(&password));
        }
        Ok(Entry::open_if(is_right, way.text.as_bytes()))
    }

    /// Has the client send the password itself. Where others can listen, it must be encrypted with the
    /// server's key. A client that does not have the key asks for it.
    fn password(&mut self) -> Result<Option<Vec<u8>>, End> {
        let wanted = [caching_sha2::MORE_DATA, caching_sha2::NEEDS_PASSWORD];
        let mut sent = self.ask(|packet| packet.extend_from_slice(&wanted))?;
        let asks_for_key = sent == [caching_sha2::WANTS_PUBLIC_KEY];
        let mut password = if asks_for_key || !self.channel.output.entry.is_secure() {
            let Some(keys) = self.shared.key_pair.keys(&self.shared.log) else { return Ok(None) };
            if asks_for_key {
                sent = self.ask(|packet| {
                    packet.push(caching_sha2::MORE_DATA);
                    packet.extend_from_slice(keys.public.as_bytes());
                })?;
            }
            keys.decrypt(&sent, self.scramble)
        } else {
            Some(sent)
        };
        // It ends with a zero, as in C.
        Ok(password.take().and_then(|password| password.strip_suffix(&[0]).map(<[u8]>::to_vec)))
    }

    /// Sends a packet, and gives the client's answer to it.
    fn ask(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, End> {
        let channel = &mut *self.channel;
        write(channel.output.writer.begin());
        channel.output.writer.finish();
        channel.flush()?;
        channel.reader.set_sequence(channel.output.writer.sequence());
        let packet = channel.packet()?;
        let answer = channel.reader.payload(&packet).to_vec();
        channel.answer();
        Ok(answer)
    }
}
