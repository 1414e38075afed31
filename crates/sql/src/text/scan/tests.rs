use super::*;
use crate::text::literal::LiteralPosition;

fn scan(text: &str) -> Scan {
    let mut scan = Scan::default();
    assert_eq!(scan.scan(b"", text.as_bytes(), LexicalMode::NONE), ScanEnd::Whole, "{text}");
    scan
}

/// The key with slots written `<i>`, lists `<i*>`.
fn shape(text: &str) -> String {
    let key = scan(text).key;
    let mut out = String::new();
    let mut at = 0;
    while at < key.len() {
        match key[at] {
            SLOT | LIST => {
                let list = if key[at] == LIST { "*" } else { "" };
                out.push_str(&format!("<{}{list}>", key[at + 1] as char));
                at += 2;
            }
            byte => {
                out.push(byte as char);
                at += 1;
            }
        }
    }
    out
}

fn strings(text: &str) -> Vec<String> {
    let scan = scan(text);
    let value = |literal: &Literal| match literal {
        Literal::Text(position) | Literal::Binary(position) => {
            String::from_utf8_lossy(position.bytes(text.as_bytes(), &scan.unescaped)).into_owned()
        }
        other => format!("{other:?}"),
    };
    scan.literals.iter().map(value).collect()
}

#[test]
fn statements_that_differ_in_constants_have_one_shape() {
    assert_eq!(shape("SELECT c FROM t WHERE id=5"), "SELECT c FROM t WHERE id=<i>");
    assert_eq!(shape("SELECT c FROM t WHERE id=-77"), "SELECT c FROM t WHERE id=<i>");
    assert_eq!(shape(" SELECT c FROM t WHERE id = 5 ; "), "SELECT c FROM t WHERE id = <i>");
    assert_eq!(shape("SELECT 'a', 'it''s' FROM t"), shape("SELECT 'x', \"y\\n\" FROM t"));
}

#[test]
fn what_decides_a_type_is_part_of_the_shape() {
    assert_eq!(shape("SELECT CAST(5 AS CHAR(3)), 6"), "SELECT CAST(<i> AS CHAR(3)), <i>");
    assert_eq!(shape("SELECT STR_TO_DATE('1', '%d'), 6"), "SELECT STR_TO_DATE('1', '%d'), <i>");
    assert_eq!(shape("SELECT str_to_date FROM t WHERE a = 1"), "SELECT str_to_date FROM t WHERE a = <i>");
}

#[test]
fn kinds_are_part_of_the_shape() {
    assert_eq!(shape("WHERE a = 1"), "WHERE a = <i>");
    assert_eq!(shape("WHERE a = '1'"), "WHERE a = <t>");
    assert_eq!(shape("WHERE a = 1.0"), "WHERE a = <d>");
    assert_eq!(shape("WHERE a = .5"), "WHERE a = <d>");
    assert_eq!(shape("WHERE a = 1e0"), "WHERE a = <e>");
    assert_eq!(shape("WHERE a = -1.5E-3"), "WHERE a = <e>");
    assert_eq!(shape("WHERE a = 18446744073709551615"), "WHERE a = <u>");
    assert_eq!(shape("WHERE a = 18446744073709551616"), "WHERE a = <d>");
    assert_eq!(shape("WHERE a = _binary'x'"), "WHERE a = <b>");
    assert_eq!(shape("WHERE a = _utf8mb4 'x'"), "WHERE a = <t>");
    assert_eq!(shape("WHERE a = ?"), "WHERE a = <?>");
    assert_eq!(shape("WHERE a = NULL"), "WHERE a = NULL");
}

#[test]
fn a_list_is_one_slot_whatever_its_length() {
    assert_eq!(shape("WHERE k IN (1,2, 3)"), "WHERE k IN (<i*>)");
    assert_eq!(shape("WHERE k IN (-1)"), shape("WHERE k IN ( 1,2 ,3,4)").replace("( ", "("));
    assert_eq!(shape("WHERE k NOT IN ('a','b')"), "WHERE k NOT IN (<t*>)");
    assert_eq!(shape("WHERE k IN (1,'b')"), "WHERE k IN (<x*>)");
    assert_eq!(shape("WHERE k IN (?,?,?)"), "WHERE k IN (<?*>)");
    assert_eq!(shape("WHERE k IN (1,a,2)"), "WHERE k IN (<i>,a,<i>)");
    assert_eq!(shape("WHERE k IN (1,?)"), "WHERE k IN (<i>,<?>)");
    assert_eq!(shape("WHERE k IN (SELECT 1)"), "WHERE k IN (SELECT <i>)");
    assert_eq!(scan("WHERE k IN (1,2) AND a = 7").starts, [0, 2, 3]);
}

#[test]
fn syntax_is_not_a_literal() {
    assert_eq!(shape("SELECT a FROM t1 ORDER BY 1, 2 LIMIT 3"), "SELECT a FROM t1 ORDER BY 1, 2 LIMIT <i>");
    assert_eq!(
        shape("SELECT a FROM (SELECT a FROM t GROUP BY 1) t WHERE b=2"),
        "SELECT a FROM (SELECT a FROM t GROUP BY 1) t WHERE b=<i>"
    );
    assert_eq!(shape("SELECT CAST(1 AS DECIMAL(10,2))"), "SELECT CAST(<i> AS DECIMAL(10,2))");
    assert_eq!(shape("SELECT a AS 'x', b 'y', COUNT(*) 'z'"), "SELECT a AS 'x', b 'y', COUNT(*) 'z'");
    assert_eq!(
        shape("SELECT DATE '2020-01-01', X'41', 0x41, b'1'"),
        "SELECT DATE '2020-01-01', X'41', 0x41, b'1'"
    );
    assert_eq!(shape("SELECT a-1, a -1, (a)-1, 2-1"), "SELECT a-<i>, a -<i>, (a)-<i>, <i>-<i>");
    assert_eq!(shape("SELECT -1, - 1, 2 * -3"), "SELECT <i>, - <i>, <i> * <i>");
    assert_eq!(
        shape("SELECT `1`, t.`a'b`, @a1, @@x1, t1.c2 FROM 1st"),
        "SELECT `1`, t.`a'b`, @a1, @@x1, t1.c2 FROM 1st"
    );
    assert_eq!(shape("SELECT t.in, t.date FROM t"), "SELECT t.in, t.date FROM t");
    assert_eq!(shape("WHERE a LIKE 'x%' ESCAPE '!'"), "WHERE a LIKE <t> ESCAPE '!'");
    assert_eq!(shape("SELECT a + INTERVAL 3 DAY"), "SELECT a + INTERVAL <i> DAY");
}

#[test]
fn comments_part_words_and_say_nothing() {
    assert_eq!(shape("SELECT/* 1 '*/a -- 'x\n, b # 2\n"), "SELECT a  \n, b");
    assert_eq!(shape("SELECT 5--1"), "SELECT <i>-<i>");
    let mut scan = Scan::default();
    assert_eq!(scan.scan(b"", b"SELECT /*!40101 1 */", LexicalMode::NONE), ScanEnd::Unscannable);
    assert_eq!(scan.scan(b"", b"SELECT 'open", LexicalMode::NONE), ScanEnd::Unscannable);
    assert_eq!(scan.scan(b"", b"SELECT 1; SELECT 2", LexicalMode::NONE), ScanEnd::Semicolon);
}

#[test]
fn strings_are_unescaped_as_mysql_does() {
    assert_eq!(
        strings(r"SELECT 'a\'b', 'c''d', 'e\\f', 'g\%h', 'i\qj', '\n'"),
        ["a'b", "c'd", r"e\f", r"g\%h", "iqj", "\n"]
    );
    assert_eq!(strings("SELECT 'a' 'b'\n\"c\"\"d\", N'x'"), ["abc\"d", "x"]);
    assert_eq!(strings("SELECT 'plain'"), ["plain"]);
    assert!(matches!(
        scan("SELECT 'plain'").literals[0],
        Literal::Text(LiteralPosition::Text { from: 8, end: 13 })
    ));
}

#[test]
fn numbers_keep_their_value_and_sign() {
    let literals = scan("SELECT -9223372036854775808, 9223372036854775807, 1.50, -2e3").literals;
    assert_eq!(literals[0], Literal::Int(i64::MIN));
    assert_eq!(literals[1], Literal::Int(i64::MAX));
    assert!(matches!(literals[2], Literal::Decimal { negative: false, .. }));
    assert_eq!(literals[3], Literal::Double(-2000.0));
}

#[test]
fn filled_parameters_have_the_key_of_the_same_literals() {
    let mut filled = scan("SELECT c FROM t WHERE id=? AND k IN (?,?) AND d = 'x'");
    filled.fill_kinds(&[SlotKind::Int, SlotKind::Text, SlotKind::Null]);
    assert_eq!(filled.key, scan("SELECT c FROM t WHERE id=1 AND k IN ('a','b','c') AND d = 'y'").key);
    assert_eq!(
        String::from_utf8(filled.parser_text()).unwrap(),
        "SELECT c FROM t WHERE id= ?0  AND k IN ( ?1 ) AND d =  ?2 "
    );
}
