//! Columns of every type, read through five client libraries: byte by byte what MariaDB sends. And the
//! descriptions of expressions: those that MariaDB gives.
//!
//! A relay between the library and the server keeps what the server sends.

use crate::support::{Latchwork, MariaDb, feed, have, mariadb, python, text};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use wire::client::{ConnectOptions, Connection, OwnedColumn};

/// The definition of the column `c`, what may stand behind it, and a value. Each has a table, with a second
/// row of NULL where that is allowed.
#[rustfmt::skip]
const COLUMNS: &[(&str, &str)] = &[
    ("TINYINT", "-5"), ("TINYINT UNSIGNED", "200"), ("TINYINT(1)", "1"), ("BOOL", "1"),
    ("SMALLINT", "-300"), ("SMALLINT UNSIGNED ZEROFILL", "7"), ("MEDIUMINT", "-70000"),
    ("MEDIUMINT UNSIGNED", "70000"), ("INT", "-5"), ("INT UNSIGNED", "4000000000"), ("INT(5) ZEROFILL", "5"),
    ("INT(1)", "12"), ("INT(20) UNSIGNED", "5"), ("BIGINT", "-5"), ("BIGINT(5)", "123456"),
    ("BIGINT UNSIGNED", "18446744073709551615"), ("FLOAT", "5.25"), ("FLOAT UNSIGNED", "0.1"),
    ("FLOAT(7,3)", "5.25"), ("FLOAT ZEROFILL", "5.25"), ("FLOAT(8,2) ZEROFILL", "5.25"), ("DOUBLE", "0.1"),
    ("DOUBLE(10,2)", "5.255"), ("DOUBLE ZEROFILL", "5.25"), ("DECIMAL(10,2)", "-5.25"), ("DECIMAL(5)", "5"),
    ("DECIMAL(65,30)", "5.25"), ("DECIMAL(10,2) UNSIGNED", "5.25"), ("DECIMAL(6,2) ZEROFILL", "5.25"),
    ("CHAR(10)", "'abé'"), ("CHAR(1)", "'a'"), ("CHAR(0)", "''"), ("NATIONAL CHAR(3)", "'é'"),
    ("VARCHAR(20)", "'abé'"), ("VARCHAR(300)", "'abé'"), ("BINARY(5)", "'a'"), ("VARBINARY(30)", "0x00FF"),
    ("VARBINARY(0)", "''"), ("TINYTEXT", "'é'"), ("TEXT", "'é'"), ("MEDIUMTEXT", "'é'"), ("LONGTEXT", "'é'"),
    ("LONG VARCHAR", "'é'"), ("TINYBLOB", "'b'"), ("BLOB", "'b'"), ("MEDIUMBLOB", "'b'"), ("LONGBLOB", "'b'"),
    ("JSON", "'{}'"), ("CHAR(10) CHARACTER SET latin1", "'ab'"), ("VARCHAR(10) CHARACTER SET ascii", "'ab'"),
    ("CHAR(5) CHARACTER SET utf8mb3", "'é'"), ("CHAR(4) BINARY", "'é'"),
    ("VARCHAR(10) COLLATE utf8mb4_bin", "'é'"), ("DATE", "'2024-02-29'"), ("TIME", "'-12:34:56'"),
    ("TIME(3)", "'-12:34:56.789'"), ("DATETIME", "'2024-02-29 12:34:56'"),
    ("DATETIME(6)", "'2024-02-29 12:34:56.789012'"), ("TIMESTAMP NULL", "'2024-02-29 12:34:56'"),
    ("TIMESTAMP(2) NULL", "'2024-02-29 12:34:56.78'"), ("TIMESTAMP", "'2024-02-29 12:34:56'"),
    ("TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", "'2024-02-29 12:34:56'"),
    ("TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP", "'2024-02-29 12:34:56'"),
    ("DATETIME DEFAULT CURRENT_TIMESTAMP", "'2024-02-29 12:34:56'"),
    ("DATETIME ON UPDATE CURRENT_TIMESTAMP", "'2024-02-29 12:34:56'"), ("YEAR", "1999"), ("YEAR NOT NULL", "0"),
    ("INT NOT NULL", "5"), ("INT DEFAULT 7", "5"), ("VARCHAR(5) NOT NULL DEFAULT 'x'", "'y'"),
    ("TEXT NOT NULL", "'t'"), ("BLOB NOT NULL", "'b'"), ("DATE NOT NULL", "'0000-00-00'"),
    ("DECIMAL(5,1) NOT NULL DEFAULT 1.5", "2.5"), ("INT PRIMARY KEY AUTO_INCREMENT", "5"),
    ("INT AUTO_INCREMENT, KEY (c)", "5"), ("INT UNIQUE", "5"), ("INT, KEY (c)", "5"), ("TEXT, KEY (c(4))", "'t'"),
    ("INT, d INT, PRIMARY KEY (c, d)", "5, 6"), ("INT, d INT, PRIMARY KEY (d, c)", "5, 6"),
    ("INT, d INT, UNIQUE (c, d)", "5, 6"), ("INT, d INT, KEY (d, c)", "5, 6"),
    ("INT, d INT, UNIQUE (d), KEY (d, c)", "5, 6"),
];

fn tables() -> String {
    let mut script = String::from(
        "SET sql_mode = '', time_zone = '+00:00';
         CREATE DATABASE types CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE types;\n",
    );
    for (at, (definition, value)) in COLUMNS.iter().enumerate() {
        script
            .push_str(&format!("CREATE TABLE c{at} (c {definition}); INSERT INTO c{at} VALUES ({value});\n"));
        let is_single = !definition.contains("d INT");
        if is_single && !["NOT NULL", "AUTO_INCREMENT", "UNIQUE"].iter().any(|word| definition.contains(word))
        {
            script.push_str(&format!("INSERT INTO c{at} VALUES (NULL);\n"));
        }
    }
    script
}

/// What a server sends while `read` reads all tables through a socket.
fn sent(server: &Path, folder: &Path, read: impl FnOnce(&Path)) -> Vec<Vec<u8>> {
    let path = folder.join("relay");
    let listener = UnixListener::bind(&path).unwrap();
    let mut upstream = UnixStream::connect(server).unwrap();
    let relay = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let (mut from_client, mut to_server) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
        let forth = thread::spawn(move || {
            let _ = std::io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(std::net::Shutdown::Write);
        });
        let (mut sent, mut part) = (Vec::new(), [0; 4096]);
        while let Ok(bytes @ 1..) = upstream.read(&mut part) {
            if sent.is_empty() {
                announce_less(&mut part[..bytes]);
            }
            sent.extend_from_slice(&part[..bytes]);
            // A client that has said farewell does not read on.
            let _ = client.write_all(&part[..bytes]);
        }
        let _ = client.shutdown(std::net::Shutdown::Both);
        forth.join().unwrap();
        sent
    });
    read(&path);
    let sent = relay.join().unwrap();
    std::fs::remove_file(&path).unwrap();
    answers(&sent)
}

/// Takes extended metadata out of a greeting: names of types that this server does not have.
fn announce_less(greeting: &mut [u8]) {
    const EXTENDED_METADATA: u8 = 1 << 3;
    let version_end = 5 + greeting[5..].iter().position(|byte| *byte == 0).unwrap();
    // Behind the number of the connection, half of the scramble, MySQL's capabilities and what is between.
    greeting[version_end + 28] &= !EXTENDED_METADATA;
}

/// The packets behind the OK of the login.
fn answers(mut sent: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let [low, middle, high, _, rest @ ..] = sent {
        let length = usize::from(*low) | usize::from(*middle) << 8 | usize::from(*high) << 16;
        let (packet, next) = rest.split_at(length);
        packets.push(unmarked(packet.to_vec()));
        sent = next;
    }
    let login = packets.iter().skip(1).position(|packet| packet.first() == Some(&0));
    packets.split_off(login.expect("the client got in") + 2)
}

/// Without the mark that a statement used no index, which this server does not set, and without the number of
/// a prepared statement: MariaDB counts all statements.
fn unmarked(mut packet: Vec<u8>) -> Vec<u8> {
    const NO_INDEX_USED: u8 = 32;
    if packet.first() == Some(&0xFE) && (5..9).contains(&packet.len()) {
        packet[3] &= !NO_INDEX_USED;
    }
    // The answer to COM_STMT_PREPARE, with its numbers of columns and parameters.
    if packet.len() == 12 && packet.first() == Some(&0) {
        packet[1..5].fill(0);
    }
    packet
}

fn run(command: &mut Command, socket: &Path) {
    // Debian's own place for node's modules.
    command.env("NODE_PATH", "/usr/share/nodejs").arg(socket).arg(COLUMNS.len().to_string());
    let output = feed(command, "");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// Reads all tables through a socket.
type Reader = dyn Fn(&Path);

/// Through the client of this workspace.
fn read_by_own_client(socket: &Path) {
    let options = ConnectOptions { database: Some("types".to_owned()), ..ConnectOptions::default() };
    let mut client = Connection::connect(UnixStream::connect(socket).unwrap(), &options).unwrap();
    for at in 0..COLUMNS.len() {
        let sql = format!("SELECT * FROM c{at}");
        client.query(&sql).unwrap();
        let prepared = client.prepare(&sql).unwrap();
        client.execute(prepared.id, &[]).unwrap();
        client.close_statement(prepared.id).unwrap();
    }
    client.quit().unwrap();
}

#[test]
fn five_libraries_get_the_bytes_that_mariadb_sends() {
    if !have(mariadb::PROGRAMS) || !have(&["cc", "mariadb_config", "php", "node"]) {
        return;
    }
    let Some(python) = python("pymysql") else { return };
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &["--skip-ssl"]);
    let script = tables();
    crate::support::sql(&judge.socket, &script);
    crate::support::sql(&server.socket, &script);
    let drivers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/drivers");
    let library = crate::prepared_definitions::compiled("columns", scratch.path());
    let program = |program: PathBuf, source: Option<&str>| {
        let file = source.map(|source| drivers.join(source));
        move |socket: &Path| run(Command::new(&program).args(&file), socket)
    };
    let readers: [(&str, Box<Reader>); 5] = [
        ("MariaDB's library", Box::new(program(library, None))),
        ("PyMySQL", Box::new(program(python, Some("columns.py")))),
        ("mysqlnd", Box::new(program("php".into(), Some("columns.php")))),
        ("mysqljs", Box::new(program("node".into(), Some("columns.js")))),
        ("our own", Box::new(read_by_own_client)),
    ];
    for (name, read) in readers {
        let [judged, seen] =
            [&judge.socket, &server.socket].map(|socket| sent(socket, scratch.path(), |relay| read(relay)));
        let first = judged.iter().zip(&seen).position(|(judged, seen)| judged != seen);
        if let Some(at) = first {
            let shown = |packets: &[Vec<u8>]| {
                String::from_utf8_lossy(&packets[at.saturating_sub(4)..=at].concat()).into_owned()
            };
            panic!("{name}, packet {at}\nMariaDB:   {:?}\nLatchwork: {:?}", shown(&judged), shown(&seen));
        }
        assert_eq!(judged.len(), seen.len(), "{name}");
        assert!(seen.len() > 5 * COLUMNS.len(), "{name} has read {} packets", seen.len());
    }
}

/// One expression a line, over the columns of [`DESCRIBED`]. Those behind a `!` are described otherwise than
/// in MariaDB; the line before them says why.
const EXPRESSIONS: &str = include_str!("expressions.txt");

/// A table with a column of each kind, for [`EXPRESSIONS`].
const DESCRIBED: &str = "CREATE TABLE mt (i INT NOT NULL, n INT, b BIGINT UNSIGNED, d DECIMAL(10,3), f FLOAT,
    g DOUBLE, c CHAR(5), v VARCHAR(20) NOT NULL, t TEXT, da DATE, dt DATETIME(3), ti TIME, y YEAR, bl BLOB,
    bi BINARY(4), s SMALLINT, tu TINYINT UNSIGNED, bs BIGINT, i3 INT(3), du DECIMAL(8,2) UNSIGNED,
    d20 DECIMAL(25,3), d65 DECIMAL(65,30), f2 FLOAT(7,2), g3 DOUBLE(10,3),
    vl VARCHAR(10) CHARACTER SET latin1, lt LONGTEXT, mtx MEDIUMTEXT, vb VARBINARY(30), ts TIMESTAMP(2) NULL,
    iu INT UNSIGNED)";

type Own = Connection<UnixStream>;

fn described_table(socket: &Path) -> Own {
    let mut client =
        Connection::connect(UnixStream::connect(socket).unwrap(), &ConnectOptions::default()).unwrap();
    for sql in [
        "CREATE DATABASE described CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "USE described",
        "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
        "SET @i = 5, @d = 1.50, @g = 1e0, @s = 'abc'",
        DESCRIBED,
    ] {
        client.query(sql).unwrap();
    }
    client
}

/// What a server tells of an expression: when it runs as a text, when it is prepared, and when that runs.
fn descriptions(client: &mut Own, expression: &str) -> String {
    let sql = match expression.get(..6) {
        Some("select") => expression.to_owned(),
        _ => format!("SELECT {expression} AS x FROM (SELECT 1) one LEFT JOIN mt ON 1 = 1"),
    };
    let first = |columns: &[OwnedColumn]| {
        columns.first().map(|of| (of.wire_type, of.charset, of.length, of.flags, of.decimals))
    };
    let text = client.query(&sql).map(|result| first(&result.columns));
    let Ok(text) = text else { return format!("{:?}", text.unwrap_err().code()) };
    let prepared = client.prepare(&sql).unwrap();
    let executed = client.execute(prepared.id, &[]).unwrap();
    client.close_statement(prepared.id).unwrap();
    format!("{text:?}, prepared {:?}, executed {:?}", first(&prepared.columns), first(&executed.columns))
}

#[test]
fn expressions_are_described_as_in_mariadb() {
    if !have(mariadb::PROGRAMS) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let judge = MariaDb::start(scratch.path());
    let server = Latchwork::start(scratch.path(), &[]);
    let mut clients = [described_table(&judge.socket), described_table(&server.socket)];
    let lines = EXPRESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let wrong: Vec<String> = lines
        .filter_map(|line| {
            let (expression, may_differ) =
                line.strip_prefix("! ").map_or((line, false), |expression| (expression, true));
            let [judged, seen] = clients.each_mut().map(|client| descriptions(client, expression));
            match (judged == seen, may_differ) {
                (true, true) => Some(format!("{expression} does not differ any more")),
                (false, false) => Some(format!("{expression}\n  MariaDB:   {judged}\n  Latchwork: {seen}")),
                _ => None,
            }
        })
        .collect();
    assert!(wrong.is_empty(), "{} expressions\n{}", wrong.len(), wrong.join("\n"));
}
