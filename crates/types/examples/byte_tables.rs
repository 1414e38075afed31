//! Writes `src/collation/bytes.bin`, whose form `src/collation/bytes.rs` describes, from what a MariaDB
//! server answers, for people who add a character set.
//!
//! `cargo run -p latchwork-types --example byte_tables -- SOCKET FILE`

use std::error::Error;
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Those whose lower half is ASCII, and in which no two bytes are the same character.
const CHARACTER_SETS: [&str; 20] = [
    "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek", "hebrew",
    "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "macce", "macroman",
];

/// These do not weigh each byte by itself.
const LEFT_OUT: [&str; 3] = ["cp1250_czech_cs", "latin1_german2_ci", "latin2_czech_cs"];

/// The fields of each row.
fn ask(socket: &str, sql: &str) -> Result<Vec<Vec<String>>> {
    let output = Command::new("mariadb").args(["-S", socket, "-BN", "-e", sql, "colls"]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr)?.into());
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, file] = &arguments[..] else { return Err("arguments: SOCKET FILE".into()) };
    let mut out = Vec::new();
    for set in CHARACTER_SETS {
        out.push(set.len() as u8);
        out.extend_from_slice(set.as_bytes());
        let named = ask(
            socket,
            &format!(
                "select id, collation_name, is_default from information_schema.collations \
                 where character_set_name = '{set}' order by id"
            ),
        )?;
        let default = named.iter().find(|row| row[2] == "Yes").ok_or("no default collation")?;
        out.extend_from_slice(&default[0].parse::<u16>()?.to_le_bytes());
        let characters = ask(
            socket,
            &format!(
                "select hex(convert(char(seq using {set}) using utf16)) from seq_128_to_255 order by seq"
            ),
        )?;
        for row in &characters {
            let character = match row[0].as_str() {
                "003F" | "" => 0,
                hex => u16::from_str_radix(hex, 16)?,
            };
            out.extend_from_slice(&character.to_le_bytes());
        }
        let collations: Vec<_> = named.iter().filter(|row| !LEFT_OUT.contains(&row[1].as_str())).collect();
        out.push(collations.len() as u8);
        for row in collations {
            out.extend_from_slice(&row[0].parse::<u16>()?.to_le_bytes());
            let weights = ask(
                socket,
                &format!(
                    "select hex(weight_string(char(seq using {set}) collate {})) \
                     from seq_0_to_255 order by seq",
                    row[1]
                ),
            )?;
            for weight in weights {
                out.push(u8::from_str_radix(&weight[0], 16)?);
            }
        }
    }
    std::fs::write(file, out)?;
    Ok(())
}
