//! An account or a role, and the text that `mysql.global_priv` keeps of it.

use super::rights::Rights;
use serde_json::{Map, Value, json};

/// The name of an account, or of a role, whose host is empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Grantee {
    pub user: String,
    /// A pattern: see [`super::pattern`].
    pub host: String,
}

impl Grantee {
    pub fn new(user: &str, host: &str) -> Grantee {
        Grantee { user: user.to_owned(), host: host.to_owned() }
    }
}

/// One way to log in: MySQL's name of the method, and what it needs to know.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// `mysql_native_password`, `unix_socket` and so on; in lower case.
    pub plugin: String,
    /// `authentication_string`: the hash of a password, in the method's own form.
    pub text: String,
}

/// What a connection must be like: REQUIRE.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum TlsNeed {
    #[default]
    None,
    /// Encrypted.
    Any,
    /// The client has shown a certificate.
    X509,
    /// The certificate, or the cipher, is this one. Empty texts stand for any.
    Specified { issuer: String, subject: String, cipher: String },
}

/// WITH: how much an account may do. 0 is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    pub queries_per_hour: u64,
    pub updates_per_hour: u64,
    pub connections_per_hour: u64,
    /// At a time. Below 0, the account may not connect.
    pub user_connections: i64,
    /// MAX_STATEMENT_TIME, in microseconds.
    pub statement_micros: u64,
}

/// PASSWORD EXPIRE, for passwords that grow old.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lifetime {
    /// As `default_password_lifetime` says.
    #[default]
    Default,
    Never,
    Days(u32),
}

/// An account or a role.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Account {
    pub name: Grantee,
    /// The global rights.
    pub rights: Rights,
    pub is_role: bool,
    /// Any of them lets the client in. Empty for a role.
    pub ways: Vec<Way>,
    pub tls: TlsNeed,
    pub limits: Limits,
    pub locked: bool,
    /// Seconds since 1970; 0 if the password has expired by PASSWORD EXPIRE.
    pub password_changed: Option<u64>,
    pub lifetime: Lifetime,
    /// The role that a new session has; empty for none.
    pub default_role: String,
}

impl Account {
    /// True if the password must be changed before anything else. `days_default` is
    /// `default_password_lifetime`; `now` are seconds since 1970.
    pub fn is_expired(&self, days_default: u64, now: u64) -> bool {
        const DAY: u64 = 24 * 60 * 60;
        let Some(changed) = self.password_changed else { return false };
        let days = match self.lifetime {
            Lifetime::Default => days_default,
            Lifetime::Never => 0,
            Lifetime::Days(days) => u64::from(days),
        };
        changed == 0 || days > 0 && now > changed + days * DAY
    }

    /// The account that a row of `mysql.global_priv` describes. What is not understood is left out.
    pub(crate) fn parse(user: &str, host: &str, text: &str) -> Account {
        let parsed: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        let number = |name: &str| parsed[name].as_u64().unwrap_or(0);
        let text = |name: &str| parsed[name].as_str().unwrap_or("").to_owned();
        let flag = |name: &str| parsed[name].as_bool().unwrap_or(false);
        let tls = match number("ssl_type") {
            0 => TlsNeed::None,
            1 => TlsNeed::Any,
            2 => TlsNeed::X509,
            _ => TlsNeed::Specified {
                issuer: text("x509_issuer"),
                subject: text("x509_subject"),
                cipher: text("ssl_cipher"),
            },
        };
        let lifetime = match parsed["password_lifetime"].as_i64() {
            None | Some(..0) => Lifetime::Default,
            Some(0) => Lifetime::Never,
            Some(days) => Lifetime::Days(days.min(i64::from(u16::MAX)) as u32),
        };
        let is_role = flag("is_role");
        Account {
            name: Grantee::new(user, host),
            rights: Rights::from_bits(number("access")),
            is_role,
            ways: if is_role { vec![] } else { ways(&parsed) },
            tls,
            limits: Limits {
                queries_per_hour: number("max_questions"),
                updates_per_hour: number("max_updates"),
                connections_per_hour: number("max_connections"),
                user_connections: parsed["max_user_connections"].as_i64().unwrap_or(0),
                statement_micros: (parsed["max_statement_time"].as_f64().unwrap_or(0.0) * 1e6) as u64,
            },
            locked: flag("account_locked"),
            password_changed: parsed["password_last_changed"].as_u64(),
            lifetime,
            default_role: text("default_role"),
        }
    }

    /// The text of the account in `mysql.global_priv`. Names that this server does not know are kept as they
    /// are in `before`, the text that was there.
    pub(crate) fn to_text(&self, before: &str) -> String {
        let known: Value = serde_json::from_str(before).unwrap_or(Value::Null);
        let mut map = match known {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        map.insert("access".into(), json!(self.rights.bits()));
        if self.is_role {
            map.insert("is_role".into(), json!(true));
            return Value::Object(map).to_string();
        }
        put_ways(&self.ways, &mut map);
        let (kind, issuer, subject, cipher) = match &self.tls {
            TlsNeed::None => (0, "", "", ""),
            TlsNeed::Any => (1, "", "", ""),
            TlsNeed::X509 => (2, "", "", ""),
            TlsNeed::Specified { issuer, subject, cipher } => {
                (3, issuer.as_str(), subject.as_str(), cipher.as_str())
            }
        };
        let seconds = self.limits.statement_micros as f64 / 1e6;
        let (never, days) = (json!(0), |days: u32| json!(days));
        let values = [
            ("ssl_type", Some(json!(kind)).filter(|_| kind != 0)),
            ("ssl_cipher", Some(json!(cipher)).filter(|_| kind != 0)),
            ("x509_issuer", Some(json!(issuer)).filter(|_| kind != 0)),
            ("x509_subject", Some(json!(subject)).filter(|_| kind != 0)),
            ("max_questions", nonzero(self.limits.queries_per_hour)),
            ("max_updates", nonzero(self.limits.updates_per_hour)),
            ("max_connections", nonzero(self.limits.connections_per_hour)),
            (
                "max_user_connections",
                Some(json!(self.limits.user_connections)).filter(|_| self.limits.user_connections != 0),
            ),
            ("max_statement_time", Some(json!(seconds)).filter(|_| seconds > 0.0)),
            ("account_locked", self.locked.then_some(json!(true))),
            ("password_last_changed", self.password_changed.map(|changed| json!(changed))),
            (
                "password_lifetime",
                match self.lifetime {
                    Lifetime::Default => None,
                    Lifetime::Never => Some(never),
                    Lifetime::Days(number) => Some(days(number)),
                },
            ),
            ("default_role", Some(json!(self.default_role)).filter(|_| !self.default_role.is_empty())),
        ];
        for (name, value) in values {
            match value {
                Some(value) => map.insert(name.into(), value),
                None => map.remove(name),
            };
        }
        Value::Object(map).to_string()
    }
}

fn nonzero(number: u64) -> Option<Value> {
    (number != 0).then(|| json!(number))
}

/// The ways of a text: `plugin` and `authentication_string`, or a list of such pairs in `auth_or`, in which
/// the empty pair stands for the first one.
fn ways(parsed: &Value) -> Vec<Way> {
    let way = |value: &Value| Way {
        plugin: value["plugin"].as_str().unwrap_or("mysql_native_password").to_ascii_lowercase(),
        text: value["authentication_string"].as_str().unwrap_or("").to_owned(),
    };
    match parsed["auth_or"].as_array() {
        None => vec![way(parsed)],
        Some(list) => {
            list.iter().map(|one| if one.get("plugin").is_none() { way(parsed) } else { way(one) }).collect()
        }
    }
}

fn put_ways(ways: &[Way], map: &mut Map<String, Value>) {
    let Some(first) = ways.first() else { return };
    map.insert("plugin".into(), json!(first.plugin));
    map.insert("authentication_string".into(), json!(first.text));
    if ways.len() < 2 {
        map.remove("auth_or");
        return;
    }
    let pair = |way: &Way| json!({ "plugin": way.plugin, "authentication_string": way.text });
    let list = std::iter::once(json!({})).chain(ways[1..].iter().map(pair)).collect();
    map.insert("auth_or".into(), Value::Array(list));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mariadb_writes_is_read_and_written_again() {
        let text = r#"{"access":0,"version_id":101119,"plugin":"mysql_native_password","authentication_string":"*B6","ssl_type":1,"ssl_cipher":"","x509_issuer":"","x509_subject":"","max_questions":5,"account_locked":true,"password_last_changed":1795575996,"password_lifetime":3,"default_role":"r"}"#;
        let account = Account::parse("a", "%", text);
        assert_eq!(account.tls, TlsNeed::Any);
        assert_eq!((account.limits.queries_per_hour, account.locked), (5, true));
        assert_eq!(account.lifetime, Lifetime::Days(3));
        assert_eq!(account.default_role, "r");
        let again = Account::parse("a", "%", &account.to_text(text));
        assert_eq!(again, account);
        assert!(account.to_text(text).contains("\"version_id\":101119"), "what is not known stays");
        let root = r#"{"access":18446744073709551615,"plugin":"mysql_native_password","authentication_string":"invalid","auth_or":[{},{"plugin":"unix_socket"}]}"#;
        let root = Account::parse("root", "localhost", root);
        assert_eq!(root.rights, Rights::ALL);
        let plugins: Vec<&str> = root.ways.iter().map(|way| way.plugin.as_str()).collect();
        assert_eq!(plugins, ["mysql_native_password", "unix_socket"]);
        assert_eq!(Account::parse("root", "localhost", &root.to_text("")), root);
        let role = Account::parse("r", "", r#"{"access":3,"is_role":true}"#);
        assert!(role.is_role && role.ways.is_empty() && role.rights.contains(Rights::INSERT));
        assert_eq!(Account::parse("r", "", &role.to_text("{}")), role);
    }

    #[test]
    fn a_password_expires_at_once_or_by_its_age() {
        let day = 86_400;
        let mut account = Account { password_changed: Some(100 * day), ..Account::default() };
        assert!(!account.is_expired(0, 1000 * day));
        assert!(!account.is_expired(10, 110 * day) && account.is_expired(10, 110 * day + 1));
        account.lifetime = Lifetime::Never;
        assert!(!account.is_expired(10, 1000 * day));
        account.lifetime = Lifetime::Days(3);
        assert!(account.is_expired(0, 104 * day));
        account.password_changed = Some(0);
        account.lifetime = Lifetime::Never;
        assert!(account.is_expired(0, 0));
    }
}
