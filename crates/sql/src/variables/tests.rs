use super::*;
use crate::warning::Warnings;
use types::Value;

struct Fixture {
    globals: Globals,
    session: SessionVariables,
    warnings: Warnings,
}

impl Fixture {
    fn new() -> Fixture {
        let globals = Globals::new();
        let session = SessionVariables::new(&globals);
        Fixture { globals, session, warnings: Warnings::default() }
    }

    fn set(&mut self, asked: Asked, name: &str, value: Assigned<'_>) -> Result<(), (u16, String)> {
        self.warnings.clear();
        let variable = find(name).ok_or((1193, name.to_owned()))?;
        let result = self
            .session
            .check(&self.globals, asked, variable, name, value, &mut self.warnings)
            .and_then(|setting| self.session.apply(&self.globals, asked, variable, setting));
        result.map_err(|error| (error.code(), error.message))
    }

    fn get(&self, asked: Asked, name: &str) -> String {
        let variable = find(name).expect("a known name");
        let setting = self
            .session
            .read(&self.globals, asked, variable, name, Live::default())
            .expect("a readable variable");
        setting.show(variable.definition()).into_owned()
    }
}

/// Variable, value, what it reads back as, and whether a warning 1292 came with it.
const ROUNDED: &[(&str, Assigned<'static>, &str, bool)] = &[
    ("key_buffer_size", Assigned::Int(65535), "61440", true),
    ("key_buffer_size", Assigned::Int(100000), "98304", true),
    ("key_buffer_size", Assigned::Int(65536), "65536", false),
    ("key_cache_block_size", Assigned::Int(1800), "1536", true),
    ("key_cache_block_size", Assigned::Int(1536), "1536", false),
    ("key_cache_block_size", Assigned::Int(16383), "15872", true),
    ("key_cache_block_size", Assigned::Int(-1), "512", true),
    ("key_cache_block_size", Assigned::Int(16385), "16384", true),
    ("key_cache_block_size", Assigned::Int(1), "512", true),
    ("key_cache_division_limit", Assigned::Int(-1), "1", true),
    ("key_cache_division_limit", Assigned::Int(0), "1", true),
    ("key_cache_division_limit", Assigned::Int(101), "100", true),
    ("key_cache_division_limit", Assigned::Int(200), "100", true),
    ("key_cache_division_limit", Assigned::Int(1), "1", false),
    ("key_cache_age_threshold", Assigned::Int(65535), "65500", true),
    ("key_cache_age_threshold", Assigned::Int(101), "100", true),
    ("key_cache_age_threshold", Assigned::Int(-1), "100", true),
    ("key_cache_age_threshold", Assigned::Int(4294967295), "4294967200", true),
    ("key_cache_segments", Assigned::Int(-1), "0", true),
    ("key_cache_segments", Assigned::Int(65), "64", true),
    ("key_cache_segments", Assigned::UInt(u64::MAX), "64", true),
    ("key_cache_segments", Assigned::Int(64), "64", false),
    ("key_cache_file_hash_size", Assigned::Int(99), "128", true),
    ("key_cache_file_hash_size", Assigned::Int(42949672951), "16384", true),
    ("key_cache_file_hash_size", Assigned::Int(150), "150", false),
    ("max_connections", Assigned::Int(5), "10", true),
];

#[test]
fn numbers_are_limited_and_rounded_down_as_mariadb_does() {
    let mut fixture = Fixture::new();
    for (name, value, expected, warned) in ROUNDED {
        assert_eq!(fixture.set(Asked::Global, name, *value), Ok(()), "{name} = {value:?}");
        assert_eq!(fixture.get(Asked::Global, name), *expected, "{name} = {value:?}");
        let codes: Vec<u16> = fixture.warnings.list().iter().map(|warning| warning.kind.code()).collect();
        assert_eq!(codes, if *warned { vec![1292] } else { vec![] }, "{name} = {value:?}");
    }
    fixture.set(Asked::Global, "key_buffer_size", Assigned::Int(65535)).expect("rounds");
    assert_eq!(fixture.warnings.list()[0].message, "Truncated incorrect key_buffer_size value: '65535'");
}

#[test]
fn the_default_cache_cannot_be_dropped() {
    let mut fixture = Fixture::new();
    for value in [0, -1, 4, 1] {
        assert_eq!(
            fixture.set(Asked::Global, "key_buffer_size", Assigned::Int(value)),
            Err((1438, "Cannot drop default keycache".to_owned()))
        );
        assert_eq!(fixture.get(Asked::Global, "key_buffer_size"), "134217728");
    }
}

#[test]
fn key_cache_variables_take_whole_numbers_only() {
    let mut fixture = Fixture::new();
    let names = [
        "key_buffer_size",
        "key_cache_block_size",
        "key_cache_division_limit",
        "key_cache_age_threshold",
        "key_cache_file_hash_size",
        "key_cache_segments",
    ];
    for name in names {
        for value in [
            Assigned::Real(10000.01),
            Assigned::Real(10.0),
            Assigned::Text("ON"),
            Assigned::Text("test"),
            Assigned::Null,
        ] {
            assert_eq!(
                fixture.set(Asked::Global, name, value),
                Err((1232, format!("Incorrect argument type to variable '{name}'")))
            );
        }
        for asked in [Asked::Unscoped, Asked::Session] {
            assert_eq!(
                fixture.set(asked, name, Assigned::Int(1)),
                Err((
                    1229,
                    format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL")
                ))
            );
        }
        let variable = find(name).expect("a known name");
        let error = fixture
            .session
            .read(&fixture.globals, Asked::Session, variable, name, Live::default())
            .expect_err("a global variable");
        assert_eq!((error.code(), error.message), (1238, format!("Variable '{name}' is a GLOBAL variable")));
    }
}

#[test]
fn default_is_the_compiled_one_for_globals_and_the_global_one_for_sessions() {
    let mut fixture = Fixture::new();
    fixture.globals.set_option("key-buffer-size", Some("1M")).expect("an option");
    assert_eq!(fixture.get(Asked::Global, "key_buffer_size"), "1048576");
    fixture.set(Asked::Global, "key_buffer_size", Assigned::Default).expect("a default");
    assert_eq!(fixture.get(Asked::Global, "key_buffer_size"), "134217728");
    fixture.set(Asked::Global, "sort_buffer_size", Assigned::Int(5000)).expect("a number");
    fixture.set(Asked::Session, "sort_buffer_size", Assigned::Default).expect("a default");
    assert_eq!(fixture.get(Asked::Unscoped, "sort_buffer_size"), "5000");
}

/// Scope, variable, value and the error it gives.
const REFUSED: &[(Asked, &str, Assigned<'static>, u16)] = &[
    (Asked::Global, "max_connections", Assigned::Null, 1232),
    (Asked::Session, "sql_mode", Assigned::Null, 1231),
    (Asked::Session, "sql_mode", Assigned::Text("ansi,foo"), 1231),
    (Asked::Session, "sql_mode", Assigned::Real(1.5), 1232),
    (Asked::Session, "sql_mode", Assigned::Int(99999999999999), 1231),
    (Asked::Unscoped, "autocommit", Assigned::Int(2), 1231),
    (Asked::Unscoped, "autocommit", Assigned::Text("xx"), 1231),
    (Asked::Unscoped, "autocommit", Assigned::Real(1.0), 1232),
    (Asked::Unscoped, "autocommit", Assigned::Null, 1231),
    (Asked::Unscoped, "tx_isolation", Assigned::Int(7), 1231),
    (Asked::Unscoped, "character_set_client", Assigned::Text("xyz"), 1115),
    (Asked::Unscoped, "character_set_client", Assigned::Null, 1231),
    (Asked::Unscoped, "collation_connection", Assigned::Text("foo"), 1273),
    (Asked::Global, "version", Assigned::Int(1), 1238),
    (Asked::Unscoped, "version", Assigned::Int(1), 1238),
    (Asked::Global, "last_insert_id", Assigned::Int(1), 1228),
    (Asked::Unscoped, "last_insert_id", Assigned::Default, 1230),
    (Asked::Unscoped, "long_query_time", Assigned::Text("a"), 1232),
    (Asked::Unscoped, "time_zone", Assigned::Text("foo"), 1298),
    (Asked::Unscoped, "max_user_connections", Assigned::Int(5), 1621),
    (Asked::Session, "max_allowed_packet", Assigned::Int(5), 1621),
    (Asked::Unscoped, "default_storage_engine", Assigned::Text("foo"), 1286),
    (Asked::Unscoped, "default_storage_engine", Assigned::Null, 1231),
    (Asked::Unscoped, "query_cache_type", Assigned::Text("demand"), 1925),
    (Asked::Unscoped, "query_cache_type", Assigned::Int(7), 1231),
    (Asked::Unscoped, "lc_messages", Assigned::Text("xx"), 1649),
    (Asked::Unscoped, "unique_checks", Assigned::Text("yes"), 1231),
    (Asked::Unscoped, "unique_checks", Assigned::Text("true"), 1231),
    (Asked::Global, "key_cache_hit_path", Assigned::Text("fast"), 1231),
];

#[test]
fn wrong_values_are_refused_with_mariadbs_errors() {
    let mut fixture = Fixture::new();
    for (asked, name, value, code) in REFUSED {
        let result = fixture.set(*asked, name, *value);
        assert_eq!(result.map_err(|error| error.0), Err(*code), "{asked:?} {name} = {value:?}");
    }
}

#[test]
fn under_strict_all_tables_a_number_out_of_range_is_an_error() {
    let mut fixture = Fixture::new();
    fixture.set(Asked::Session, "sql_mode", Assigned::Text("strict_all_tables")).expect("a mode");
    assert_eq!(
        fixture.set(Asked::Session, "max_error_count", Assigned::Int(70000)),
        Err((1231, "Variable 'max_error_count' can't be set to the value of '70000'".to_owned()))
    );
}

#[test]
fn combined_sql_modes_stand_for_their_parts() {
    let mut fixture = Fixture::new();
    fixture.set(Asked::Session, "sql_mode", Assigned::Text("traditional")).expect("a mode");
    assert_eq!(
        fixture.get(Asked::Session, "sql_mode"),
        "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
         TRADITIONAL,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION"
    );
}

#[test]
fn the_modes_of_dialects_that_no_lexer_knows_are_refused_by_name_by_number_and_as_an_option() {
    let mut fixture = Fixture::new();
    for name in ["ORACLE", "mssql", "STRICT_ALL_TABLES,ORACLE"] {
        for asked in [Asked::Session, Asked::Global] {
            let (code, message) = fixture.set(asked, "sql_mode", Assigned::Text(name)).unwrap_err();
            assert_eq!(code, 1231, "{name}");
            assert_eq!(message, format!("Variable 'sql_mode' can't be set to the value of '{name}'"));
        }
        assert!(Globals::new().set_option("sql_mode", Some(name)).is_err(), "{name}");
    }
    for bit in [9, 10] {
        assert_eq!(fixture.set(Asked::Session, "sql_mode", Assigned::Int(1 << bit)).unwrap_err().0, 1231);
        assert!(Globals::new().set_option("sql_mode", Some(&(1 << bit).to_string())).is_err());
    }
}

#[test]
fn sql_mode_says_how_statements_are_read() {
    use crate::text::LexicalMode as Mode;
    let ansi = Mode::NONE.with(Mode::ANSI_QUOTES, true).with(Mode::PIPES_AS_CONCAT, true);
    let mut fixture = Fixture::new();
    for (modes, lexical) in [
        ("IGNORE_SPACE,TRADITIONAL", Mode::NONE),
        ("NO_BACKSLASH_ESCAPES", Mode::NO_BACKSLASH_ESCAPES),
        ("ansi_quotes", Mode::ANSI_QUOTES),
        ("PIPES_AS_CONCAT", Mode::PIPES_AS_CONCAT),
        ("HIGH_NOT_PRECEDENCE", Mode::HIGH_NOT_PRECEDENCE),
        ("ansi", ansi),
        ("POSTGRESQL", ansi),
        ("DB2", ansi),
        ("MAXDB", ansi),
        ("MYSQL40", Mode::HIGH_NOT_PRECEDENCE),
        ("", Mode::NONE),
    ] {
        fixture.set(Asked::Session, "sql_mode", Assigned::Text(modes)).expect("modes");
        assert_eq!(fixture.session.common.lexical, lexical, "{modes}");
    }
}

#[test]
fn the_buffer_pool_is_the_key_cache_and_the_last_one_given_wins() {
    let globals = Globals::new();
    globals.set_option("key_buffer_size", Some("64M")).expect("an option");
    globals.set_option("innodb-buffer-pool-size", Some("1G")).expect("an option");
    assert_eq!(globals.values().unsigned("key_buffer_size"), 1 << 30);
    globals.set_option("key_buffer_size", Some("32m")).expect("an option");
    assert_eq!(globals.values().unsigned("innodb_buffer_pool_size"), 32 << 20);
}

#[test]
fn the_options_of_the_published_study_are_taken_as_they_stand() {
    let globals = Globals::new();
    let options = [
        ("key_buffer_size", Some("4000M")),
        ("max_connections", Some("256")),
        ("query_cache_size", Some("0")),
        ("query_cache_type", Some("0")),
        ("skip-grant-tables", None),
        ("socket", Some("mysql.sock")),
        ("table_open_cache", Some("512")),
        ("thread_cache", Some("512")),
        ("thread_cache_size", Some("512")),
        ("key_cache_segments", Some("32")),
        ("tmpdir", Some("/mnt/tmp")),
        ("log-error", None),
    ];
    for (name, value) in options {
        globals.set_option(name, value).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let values = globals.values();
    assert_eq!(values.unsigned("key_buffer_size"), 4000 << 20);
    assert_eq!(values.unsigned("key_cache_segments"), 32);
    assert_eq!(values.unsigned("thread_cache_size"), 512);
    assert!(values.boolean("skip_grant_tables"));
    let remarks = globals.set_option("query_cache_size", Some("0")).expect("an option");
    assert!(remarks[0].contains("no effect"), "{remarks:?}");
}

#[test]
fn wrong_options_are_refused_with_what_was_expected() {
    let globals = Globals::new();
    let refused = |name, value| globals.set_option(name, value).expect_err("a wrong option").to_string();
    assert_eq!(refused("no_such_thing", Some("1")), "unknown variable 'no_such_thing'");
    assert_eq!(refused("key_buffer_size", None), "option '--key_buffer_size' requires an argument");
    assert!(refused("key_buffer_size", Some("12Q")).contains("suffixes"));
    assert!(refused("key_buffer_size", Some("")).contains("whole number"));
    assert!(refused("skip_networking", Some("maybe")).contains("ON or OFF"));
    assert!(refused("key_cache_hit_path", Some("fast")).contains("locked, optimistic"));
    assert!(refused("hot.key_buffer_size", Some("much")).contains("whole number"));
    assert!(refused("hot.key_buffer", Some("1M")).contains("unknown variable 'hot.key_buffer'"));
    assert!(refused("hot.max_connections", Some("1")).contains("unknown variable 'hot.max_connections'"));
    assert!(refused("key_cache", Some("1")).contains("ambiguous"));
    assert!(globals.set_option("loose-no_such_thing", Some("1")).expect("loose")[0].contains("ignored"));
    let remarks = globals.set_option("key_cache_segments", Some("65")).expect("limited");
    assert!(remarks[0].contains("adjusted to 64"));
}

#[test]
fn the_document_lists_what_has_no_effect() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/variables.md");
    let mut list = String::from("| variable | because |\n|---|---|\n");
    for named in all() {
        if let definition::Effect::None(reason) = named.variable.definition().effect {
            list += &format!("| `{}` | {reason} |\n", named.name);
        }
    }
    let text = std::fs::read_to_string(path).expect("the document");
    let (head, listed) = text.split_once("writes it. -->\n").expect("the line above the list");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, format!("{head}writes it. -->\n{list}")).expect("written");
        return;
    }
    assert_eq!(listed, list);
}

#[test]
fn the_command_line_makes_caches_and_the_last_value_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = engine::Options { create: true, ..engine::Options::default() };
    let database = engine::Database::open(&folder.path().join("data"), options).expect("a database");
    let globals = Globals::new();
    for (name, value) in [
        ("Hot.key_buffer_size", "64K"),
        ("small.key_cache_division_limit", "40"),
        ("Hot.key-buffer-size", "256K"),
        ("default.key_cache_block_size", "2048"),
        ("small.key_buffer_size", "0"),
    ] {
        globals.set_option(name, Some(value)).expect(name);
    }
    assert_eq!(database.caches().list().len(), 1);
    globals.make_caches(&database).expect("caches");
    let read = |cache: &str, name: &str| {
        structured::value(&globals, &database, Asked::Unscoped, cache, name).expect("a component")
    };
    for (cache, name, value) in [
        ("Hot", "key_buffer_size", 256 << 10),
        ("Hot", "key_cache_block_size", 2048),
        ("Hot", "key_cache_file_hash_size", 512),
        ("small", "key_buffer_size", 0),
        ("small", "key_cache_division_limit", 40),
        ("default", "key_cache_block_size", 2048),
        ("hot", "key_buffer_size", 0),
    ] {
        assert_eq!(read(cache, name), Value::UInt(value), "{cache}.{name}");
    }
    let names: Vec<String> = database.caches().list().iter().map(|cache| cache.name().to_owned()).collect();
    assert_eq!(names, ["default", "Hot", "small"]);
    database.close().expect("an end");
}

#[test]
fn set_names_sets_three_character_sets_and_one_collation() {
    let mut fixture = Fixture::new();
    fixture.session.set_names(Some("latin1"), None).expect("a character set");
    for name in ["character_set_client", "character_set_connection", "character_set_results"] {
        assert_eq!(fixture.get(Asked::Session, name), "latin1");
    }
    assert_eq!(fixture.get(Asked::Session, "collation_connection"), "latin1_swedish_ci");
    let error = fixture.session.set_names(Some("utf8mb4"), Some("latin1_bin")).expect_err("a mismatch");
    assert_eq!(error.code(), 1253);
    fixture.set(Asked::Session, "collation_connection", Assigned::Text("utf8mb4_bin")).expect("a collation");
    assert_eq!(fixture.get(Asked::Session, "character_set_connection"), "utf8mb4");
}

#[test]
fn every_default_lies_in_its_own_range() {
    for named in all() {
        let definition = named.variable.definition();
        match (definition.kind, definition.default()) {
            (Kind::Unsigned { min, max, .. }, Setting::Unsigned(value)) => {
                assert!((min..=max).contains(&value), "{}", named.name);
            }
            (Kind::Choice { default, names }, Setting::Choice(position)) => {
                assert_eq!(names[usize::from(position)], default, "{}", named.name);
            }
            (Kind::Set { default, .. }, setting) => {
                assert_eq!(setting.text(definition), default, "{}", named.name);
            }
            _ => {}
        }
    }
    assert!(listed().windows(2).all(|pair| pair[0].name < pair[1].name), "sorted, no name twice");
}

#[test]
fn a_cache_is_given_no_more_than_the_machine_has() {
    let most = engine::cache_bytes_max() as u64 / 4096 * 4096;
    let mut fixture = Fixture::new();
    fixture.set(Asked::Global, "key_buffer_size", Assigned::UInt(u64::MAX)).expect("limits");
    assert_eq!(fixture.get(Asked::Global, "key_buffer_size"), most.to_string());
    let warning = &fixture.warnings.list()[0];
    assert_eq!(warning.message, "Truncated incorrect key_buffer_size value: '18446744073709551615'");
    let set =
        super::command_line::parse("hot.key_buffer_size", Some("16E")).expect("an option").expect("known");
    assert_eq!(set.setting, Setting::Unsigned(most));
    assert!(set.remarks[0].contains("adjusted to"), "{:?}", set.remarks);
}
