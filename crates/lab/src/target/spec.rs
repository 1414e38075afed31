//! Names of targets as a user writes them.

use super::Preset;
use crate::driver::socket::Address;
use std::path::PathBuf;
use wire::client::Encryption;

/// An engine of the distribution's MariaDB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    MyIsam,
    Aria,
    InnoDb,
    RocksDb,
}

impl Engine {
    pub(crate) const ALL: [Engine; 4] = [Engine::MyIsam, Engine::Aria, Engine::InnoDb, Engine::RocksDb];

    /// As in `ENGINE=`, in lower case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::MyIsam => "myisam",
            Engine::Aria => "aria",
            Engine::InnoDb => "innodb",
            Engine::RocksDb => "rocksdb",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TargetSpec {
    /// The engine in this process.
    Embedded(Option<Preset>),
    /// A Latchwork server that the lab starts.
    Latchwork(Option<Preset>),
    /// A MariaDB server that the lab starts.
    MariaDb(Engine),
    /// A server that answers with constant rows: the ceiling.
    Null,
    /// A server that runs already.
    Remote { address: Address, user: String, password: String, database: String },
}

impl TargetSpec {
    /// The targets without a preset.
    pub(crate) const EMBEDDED: TargetSpec = TargetSpec::Embedded(None);
    pub(crate) const LATCHWORK: TargetSpec = TargetSpec::Latchwork(None);

    pub(crate) const SYNTAX: &str = "embedded[:PRESET], latchwork[:PRESET], null, mariadb:myisam|aria|innodb|rocksdb, mysql://user[:password]@host[:port]/db[?ssl-mode=REQUIRED&ssl-ca=FILE], or a socket's path";

    pub(crate) fn parse(text: &str) -> Result<TargetSpec, String> {
        match text {
            "embedded" => return Ok(TargetSpec::EMBEDDED),
            "latchwork" => return Ok(TargetSpec::LATCHWORK),
            "null" => return Ok(TargetSpec::Null),
            "mariadb" => return Ok(TargetSpec::MariaDb(Engine::MyIsam)),
            _ => {}
        }
        if let Some(name) = text.strip_prefix("mariadb:") {
            let known = Engine::ALL.into_iter().find(|engine| engine.name().eq_ignore_ascii_case(name));
            return known.map(TargetSpec::MariaDb).ok_or_else(|| {
                let names = Engine::ALL.map(Engine::name).join(", ");
                format!("target `{text}`: the engines of MariaDB are {names}")
            });
        }
        if let Some(name) = text.strip_prefix("latchwork:") {
            return preset(text, name).map(|preset| TargetSpec::Latchwork(Some(preset)));
        }
        if let Some(name) = text.strip_prefix("embedded:") {
            return preset(text, name).map(|preset| TargetSpec::Embedded(Some(preset)));
        }
        if let Some(rest) = text.strip_prefix("mysql://") {
            return parse_url(text, rest);
        }
        if text.contains('/') {
            return Ok(TargetSpec::Remote {
                address: Address::Unix(PathBuf::from(text)),
                user: "root".to_string(),
                password: String::new(),
                database: "sbtest".to_string(),
            });
        }
        Err(format!("target `{text}` is not known; targets are {}", Self::SYNTAX))
    }

    /// The name of the target, without a password.
    pub(crate) fn name(&self) -> String {
        match self {
            TargetSpec::Embedded(preset) => with_preset("embedded", *preset),
            TargetSpec::Latchwork(preset) => with_preset("latchwork", *preset),
            TargetSpec::Null => "null".to_string(),
            TargetSpec::MariaDb(engine) => format!("mariadb:{}", engine.name()),
            TargetSpec::Remote { address: Address::Unix(path), .. } => path.display().to_string(),
            TargetSpec::Remote { address, user, database, .. } => {
                let options = match address {
                    Address::Tcp { encryption, .. } => encryption.options(),
                    Address::Unix(_) => String::new(),
                };
                format!("mysql://{user}@{address}/{database}{options}")
            }
        }
    }

    pub(crate) fn is_latchwork(&self) -> bool {
        matches!(self, TargetSpec::Latchwork(_))
    }

    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self, TargetSpec::Embedded(_))
    }
}

fn preset(target: &str, name: &str) -> Result<Preset, String> {
    Preset::named(&name.to_ascii_lowercase()).ok_or_else(|| {
        let names = Preset::ALL.map(Preset::name).join(", ");
        format!("target `{target}`: the presets are {names}")
    })
}

fn with_preset(target: &str, preset: Option<Preset>) -> String {
    preset.map_or(target.to_string(), |preset| format!("{target}:{}", preset.name()))
}

/// `user[:password]@host[:port]/database[?ssl-mode=MODE&ssl-ca=FILE]`; the password may hold anything but is
/// split at the last `@`.
fn parse_url(whole: &str, rest: &str) -> Result<TargetSpec, String> {
    let wrong = |why: &str| {
        let form = "mysql://user[:password]@host[:port]/db[?ssl-mode=REQUIRED&ssl-ca=FILE]";
        format!("target `{}`: {why}; write {form}", hidden(whole))
    };
    let (login, place) = rest.rsplit_once('@').ok_or_else(|| wrong("no user"))?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (host, database) = place.split_once('/').ok_or_else(|| wrong("no database"))?;
    let (database, options) = database.split_once('?').unwrap_or((database, ""));
    let (mut mode, mut ca) = (None, None);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("ssl-mode", value)) => mode = Some(value),
            Some(("ssl-ca", value)) => ca = Some(value),
            _ => return Err(wrong("its options are ssl-mode and ssl-ca")),
        }
    }
    let encryption = Encryption::of_options(mode, ca).map_err(|why| wrong(&why))?;
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| wrong("the port is not a number"))?),
        None => (host, 3306),
    };
    if user.is_empty() || host.is_empty() || database.is_empty() {
        return Err(wrong("something is empty"));
    }
    Ok(TargetSpec::Remote {
        address: Address::Tcp { host: host.to_string(), port, encryption },
        user: user.to_string(),
        password: password.to_string(),
        database: database.to_string(),
    })
}

/// A URL without its password, for messages and results.
pub(crate) fn hidden(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_string();
    };
    match rest.rsplit_once('@').and_then(|(login, place)| Some((login.split_once(':')?.0, place))) {
        Some((user, place)) => format!("{scheme}://{user}:***@{place}"),
        None => url.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_target_is_understood() {
        assert_eq!(TargetSpec::parse("embedded"), Ok(TargetSpec::EMBEDDED));
        let base = TargetSpec::parse("latchwork:Base").unwrap();
        assert_eq!(
            (&base, base.name().as_str()),
            (&TargetSpec::Latchwork(Some(Preset::Base)), "latchwork:base")
        );
        assert_eq!(TargetSpec::parse("embedded:tc4").unwrap().name(), "embedded:tc4");
        assert_eq!(TargetSpec::parse("mariadb:InnoDB"), Ok(TargetSpec::MariaDb(Engine::InnoDb)));
        assert_eq!(TargetSpec::parse("/run/x.sock").unwrap().name(), "/run/x.sock");
        let remote = TargetSpec::parse("mysql://me:p@ss:w@10.0.0.1:3307/bench").unwrap();
        assert_eq!(remote.name(), "mysql://me@10.0.0.1:3307/bench");
        let TargetSpec::Remote { password, .. } = remote else { panic!() };
        assert_eq!(password, "p@ss:w");
        let TargetSpec::Remote { address, .. } = TargetSpec::parse("mysql://me@host/db").unwrap() else {
            panic!()
        };
        assert_eq!(
            address,
            Address::Tcp { host: "host".to_string(), port: 3306, encryption: Encryption::None }
        );
        for encrypted in [
            "mysql://me@host:3306/db?ssl-mode=REQUIRED",
            "mysql://me@host:3306/db?ssl-mode=VERIFY_CA&ssl-ca=/a/ca.pem",
            "mysql://me@host:3306/db?ssl-mode=VERIFY_IDENTITY&ssl-ca=/a/ca.pem",
        ] {
            assert_eq!(TargetSpec::parse(encrypted).unwrap().name(), encrypted);
        }
    }

    #[test]
    fn a_wrong_target_is_told_what_there_is_and_never_shows_its_password() {
        assert!(TargetSpec::parse("mysql").unwrap_err().contains("embedded[:PRESET], latchwork"));
        assert!(
            TargetSpec::parse("latchwork:fast")
                .unwrap_err()
                .contains("base, tc4, smpfix, notcmalloc, onlymalloc")
        );
        assert!(TargetSpec::parse("mariadb:heap").unwrap_err().contains("myisam, aria, innodb, rocksdb"));
        for wrong in [
            "mysql://u:secret@host:port/db",
            "mysql://u:secret@host",
            "mysql://:secret@host/db",
            "mysql://u:secret@host/db?ssl-mode=SURE",
            "mysql://u:secret@host/db?ssl-mode=VERIFY_CA",
            "mysql://u:secret@host/db?tls=on",
        ] {
            let message = TargetSpec::parse(wrong).unwrap_err();
            assert!(!message.contains("secret"), "{message}");
        }
        assert_eq!(hidden("mysql://u:pw@h/d"), "mysql://u:***@h/d");
        assert_eq!(hidden("--rows"), "--rows");
    }
}
