use super::build::{Surroundings, build};
use crate::definition::metadata::TableMetadata;
use crate::definition::parse::table_body;
use crate::text::parse::Words;
use crate::variables::SqlMode;
use crate::{SqlError, Warnings};
use types::Collation;

fn define(body: &str) -> Result<(engine::TableDef, Warnings), u16> {
    define_in_pages(16 << 10, body).map_err(|error| error.code())
}

/// What CREATE TABLE makes where `innodb_page_size` is `page_size`.
fn define_in_pages(page_size: u32, body: &str) -> Result<(engine::TableDef, Warnings), SqlError> {
    let mut warnings = Warnings::default();
    let around = Surroundings {
        database: "test",
        collation: Collation::Utf8mb4GeneralCi,
        sql_mode: SqlMode(SqlMode::STRICT_TRANS_TABLES.0 | SqlMode::NO_ENGINE_SUBSTITUTION.0),
        zone: crate::variables::time_zones::Zone::UTC,
        explicit_timestamps: true,
        default_engine: "Latchwork".to_owned(),
        strict_options: true,
        page_size,
        altering: None,
        now: 0,
    };
    let mut words = Words::new(body, crate::text::LexicalMode::NONE)?;
    let spec = table_body(&mut words, around.collation)?;
    words.end()?;
    let def = build("t", spec, &around, &mut warnings)?;
    Ok((def, warnings))
}

#[test]
fn definitions_that_mariadb_refuses_are_refused_with_its_numbers() {
    let refused: &[(&str, u16)] = &[
        ("(a INT, A INT)", 1060),
        ("(a INT, KEY k (a), KEY K (a))", 1061),
        ("(a VARCHAR(10) AUTO_INCREMENT PRIMARY KEY)", 1063),
        ("(a INT PRIMARY KEY, b INT PRIMARY KEY)", 1068),
        ("(a INT, KEY (b))", 1072),
        ("(a CHAR(300))", 1074),
        ("(a VARCHAR(20000))", 1074),
        ("(a VARBINARY(70000))", 1074),
        ("(a INT AUTO_INCREMENT)", 1075),
        ("(a INT AUTO_INCREMENT PRIMARY KEY, b INT AUTO_INCREMENT, KEY (b))", 1075),
        ("(a INT NOT NULL DEFAULT NULL)", 1067),
        ("(a INT, KEY k (a(10)))", 1089),
        ("(a VARCHAR(10), KEY k (a(11)))", 1089),
        ("(a TEXT, KEY (a))", 1170),
        ("(a VARCHAR(2000), KEY (a))", 1071),
        ("(a DECIMAL(70, 2))", 1426),
        ("(a DECIMAL(5, 6))", 1427),
        ("(a DATETIME(7))", 1426),
        ("(a INT(300))", 1439),
        ("(`a ` INT)", 1166),
        ("(a INT, KEY `PRIMARY` (a))", 1280),
        ("(a INT) ENGINE=foo", 1286),
        ("(a VARCHAR(10) CHARACTER SET foo)", 1115),
        ("(a VARCHAR(10) COLLATE foo)", 1273),
        ("(a VARCHAR(10) CHARACTER SET latin1 COLLATE utf8mb4_bin)", 1253),
        ("(a VARCHAR(9000), b VARCHAR(9000))", 1118),
        ("(a INT CHECK (b > 5))", 1054),
        ("(a INT, CONSTRAINT c CHECK (a > 5), CONSTRAINT C CHECK (a > 6))", 1826),
        ("(a INT CHECK ())", 1064),
        ("(a INT CHECK (a >))", 1064),
        ("(a POINT)", 1235),
        ("(a ENUM('x', 'X'))", 1291),
        ("(a SET('x,y'))", 1367),
        ("(a NOSUCH)", 4161),
        ("(a INT) PACK_KEYS=2", 1064),
        ("(a INT,)", 1064),
        ("(a)", 1064),
        ("(a INT", 1064),
    ];
    for (body, code) in refused {
        match define(body) {
            Err(found) => assert_eq!(found, *code, "{body}"),
            Ok(_) => panic!("{body} was accepted"),
        }
    }
}

#[test]
fn keys_without_a_name_are_called_after_their_first_column() {
    let (def, _) = define(
        "(a INT, b INT, PRIMARY KEY (a), UNIQUE (b), UNIQUE (b), KEY (a), KEY (b), KEY b_4 (a, b DESC))",
    )
    .expect("a table");
    let names: Vec<&str> = def.indexes.iter().map(|index| index.name.as_str()).collect();
    assert_eq!(names, ["b", "b_2", "a", "b_3", "b_4"]);
    assert!(!def.columns[0].nullable, "a primary key makes its column NOT NULL");
    assert!(def.indexes[4].parts[1].descending);
}

#[test]
fn a_table_shows_the_engine_that_was_asked_for() {
    for (option, engine) in [("ENGINE=innodb", "InnoDB"), ("ENGINE=MyISAM", "MyISAM"), ("", "Latchwork")] {
        let (def, warnings) = define(&format!("(a INT) {option}")).expect("a table");
        assert_eq!(warnings.count(), 0);
        assert_eq!(TableMetadata::of(&def).map(|metadata| metadata.engine), Ok(engine.to_owned()));
    }
}

#[test]
fn a_foreign_key_makes_an_index_unless_another_key_begins_with_its_columns() {
    let indexes = |body: &str| -> Vec<String> {
        let (def, _) = define(body).expect("a table");
        def.indexes.iter().map(|index| index.name.clone()).collect()
    };
    let reference = "FOREIGN KEY fk (a) REFERENCES o (id) ON DELETE CASCADE";
    assert_eq!(indexes(&format!("(a INT, {reference})")), ["fk"]);
    assert_eq!(indexes(&format!("(a INT, CONSTRAINT c {reference})")), ["c"]);
    assert_eq!(indexes("(a INT REFERENCES o (id))"), ["a"]);
    assert_eq!(indexes(&format!("(a INT, b INT, {reference}, KEY k (a, b))")), ["k"]);
    assert_eq!(indexes(&format!("(a INT, b INT, {reference}, KEY k (b, a))")), ["fk", "k"]);
    assert_eq!(indexes(&format!("(a INT PRIMARY KEY, {reference})")), [""; 0]);
    assert_eq!(indexes(&format!("(a VARCHAR(9), KEY k (a(3)), {reference})")), ["k", "fk"]);
    let twice = "FOREIGN KEY (a) REFERENCES o (id)";
    assert_eq!(indexes(&format!("(a INT, {twice}, {twice})")), ["a"]);
}

#[test]
fn indexes_are_kept_in_the_order_in_which_duplicates_are_looked_for() {
    let (def, _) = define(
        "(a INT, b INT NOT NULL, c VARCHAR(9), d VARCHAR(9) NOT NULL, KEY ka (a), UNIQUE uc (c(2)), UNIQUE ua (a), \
         UNIQUE uab (a, b), KEY kb (b), UNIQUE ud (d(2)), UNIQUE ub (b), PRIMARY KEY (b, a))",
    )
    .expect("a table");
    let names: Vec<&str> = def.indexes.iter().map(|index| index.name.as_str()).collect();
    // The primary key has made `a` NOT NULL.
    assert_eq!(names, ["ua", "uab", "ub", "ud", "uc", "ka", "kb"]);
}

#[test]
fn a_key_is_no_longer_than_a_page_has_room_for() {
    for (page_size, longest) in
        [(1 << 10, 192), (2 << 10, 384), (4 << 10, 768), (8 << 10, 1536), (16 << 10, 3072), (64 << 10, 3072)]
    {
        for key in ["KEY k", "UNIQUE KEY k", "PRIMARY KEY"] {
            let body = |bytes: u32| format!("(a VARBINARY(4000), {key} (a({bytes})))");
            // The page size is either the server's or an option of the table.
            for (of_server, option) in
                [(page_size, String::new()), (16 << 10, format!(" PAGE_SIZE={page_size}"))]
            {
                let made = |bytes| define_in_pages(of_server, &format!("{}{option}", body(bytes)));
                assert_eq!(made(longest).map(|(def, _)| def.page_size), Ok(Some(page_size)));
                let error = made(longest + 1).expect_err("too long");
                let message = format!("Specified key was too long; max key length is {longest} bytes");
                assert_eq!((error.code(), error.message), (1071, message), "{key} in {page_size}");
            }
        }
    }
}
