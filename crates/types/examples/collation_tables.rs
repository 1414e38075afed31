//! Writes the tables of `src/collation/uca` from what a MariaDB server answers to `WEIGHT_STRING`, for people
//! who add a collation. The forms are described in `src/collation/uca/read.rs`.
//!
//! `cargo run --release -p latchwork-types --example collation_tables -- SOCKET FOLDER ALLKEYS-9 ALLKEYS...`
//!
//! The server is MariaDB 10.11, and has a database `colls`. ALLKEYS-9 is Unicode's `allkeys.txt` of version
//! 9.0.0, from which MySQL 8 took the weights of its collations `_0900_`; further ones name sequences that
//! may be contractions. Prints a checksum for each table, which `src/collation/uca/tests.rs` holds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::io::Write;
use std::process::{Command, Stdio};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What a character or a sequence of characters weighs, level by level.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
struct Weights([Vec<u32>; 3]);

type Table = BTreeMap<Vec<u32>, Weights>;

/// The languages that MariaDB has collations for. Each stands in the table of one version.
const LANGUAGES: &[&str] = &[
    "icelandic",
    "latvian",
    "romanian",
    "slovenian",
    "polish",
    "estonian",
    "spanish",
    "swedish",
    "turkish",
    "czech",
    "danish",
    "lithuanian",
    "slovak",
    "spanish2",
    "roman",
    "persian",
    "esperanto",
    "hungarian",
    "sinhala",
    "german2",
    "croatian_mysql561",
    "croatian",
    "vietnamese",
    "myanmar",
    "thai_520_w2",
];

/// Letters that languages may sort as one, in pairs or, with a small letter in the middle, in threes.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZåäöøæéžŽšŠčČćĆđĐñÑ";

fn ask(socket: &str, sql: &str) -> Result<String> {
    let mut client = Command::new("mariadb")
        .args(["-S", socket, "-BN", "colls"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = client.stdin.take().ok_or("no pipe")?;
    let sql = sql.to_owned();
    let writer = std::thread::spawn(move || input.write_all(sql.as_bytes()));
    let output = client.wait_with_output()?;
    writer.join().map_err(|_| "the writer failed")??;
    if !output.status.success() {
        return Err("the client failed".into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn words(hex: &str) -> Result<Vec<u32>> {
    (0..hex.len() / 4).map(|at| Ok(u32::from_str_radix(&hex[4 * at..4 * at + 4], 16)?)).collect()
}

/// The names of the collations that show the levels of one table: those that have them more and more.
fn forms(version: &str, language: &str) -> Vec<String> {
    match (version, language) {
        ("400", "") => vec!["utf32_unicode_ci".into()],
        ("520", "") => vec!["utf32_unicode_520_ci".into()],
        ("1400", "") => ["ai_ci", "as_ci", "as_cs"].map(|tail| format!("utf32_uca1400_{tail}")).into(),
        ("1400", _) => {
            ["ai_ci", "as_ci", "as_cs"].map(|tail| format!("utf32_uca1400_{language}_{tail}")).into()
        }
        (_, "thai_520_w2") => vec!["utf32_thai_520_w2".into()],
        _ => vec![format!("utf32_{language}_ci")],
    }
}

/// The weights of all that `source` selects as column `s`.
fn weigh(socket: &str, source: &str, forms: &[String]) -> Result<Table> {
    let columns: String =
        forms.iter().map(|form| format!(", hex(weight_string(s collate {form}))")).collect();
    let mut table = Table::new();
    for line in ask(socket, &format!("{source}; select hex(s){columns} from p"))?.lines() {
        let mut fields = line.split('\t');
        let text = fields.next().unwrap_or_default();
        let sequence: Vec<u32> = (0..text.len() / 8)
            .map(|at| u32::from_str_radix(&text[8 * at..8 * at + 8], 16))
            .collect::<std::result::Result<_, _>>()?;
        // Each form repeats the levels of the form before it.
        let mut levels = Weights::default();
        let mut before = 0;
        for (level, field) in fields.enumerate() {
            levels.0[level] = words(&field[before..])?;
            before = field.len();
        }
        table.insert(sequence, levels);
    }
    Ok(table)
}

fn all_characters(socket: &str, forms: &[String]) -> Result<Table> {
    let source = "create temporary table p engine=aria select char(seq using utf32) s from seq_0_to_1114111 \
                  where not seq between 0xd800 and 0xdfff";
    weigh(socket, source, forms)
}

fn sequences(socket: &str, sequences: &[Vec<u32>], forms: &[String]) -> Result<Table> {
    let mut source = String::from("create temporary table p (s varchar(20) character set utf32) engine=aria");
    for some in sequences.chunks(5000) {
        let rows: Vec<String> = some
            .iter()
            .map(|one| format!("(x'{}')", one.iter().map(|c| format!("{c:08X}")).collect::<String>()))
            .collect();
        source += &format!("; insert into p values {}", rows.join(","));
    }
    weigh(socket, &source, forms)
}

/// The sequences of `candidates` that do not weigh what their characters weigh.
fn contractions(
    socket: &str,
    candidates: &[Vec<u32>],
    forms: &[String],
    singles: &dyn Fn(u32) -> Weights,
) -> Result<Table> {
    let mut table = sequences(socket, candidates, forms)?;
    let found: Vec<Vec<u32>> = table.keys().cloned().collect();
    for sequence in found {
        let mut sum = Weights::default();
        for character in &sequence {
            for (all, own) in sum.0.iter_mut().zip(singles(*character).0) {
                all.extend(own);
            }
        }
        if table[&sequence] == sum {
            table.remove(&sequence);
        }
    }
    // A sequence that only adds a character to a contraction is none of its own.
    let shorter = table.clone();
    table.retain(|sequence, weights| {
        !(1..sequence.len()).any(|at| {
            let weight = |part: &[u32]| match part {
                [one] => singles(*one),
                _ => shorter.get(part).cloned().unwrap_or_default(),
            };
            let (left, right) = (weight(&sequence[..at]), weight(&sequence[at..]));
            (0..3).all(|level| [&*left.0[level], &*right.0[level]].concat() == weights.0[level])
        })
    });
    Ok(table)
}

/// The sequences of more than one character in a file of Unicode.
fn listed_sequences(file: &str) -> Result<Vec<Vec<u32>>> {
    let mut found = Vec::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let Some((sequence, _)) = line.split_once(';') else { continue };
        let parts: Vec<&str> = sequence.split_whitespace().collect();
        if parts.len() > 1 && !line.starts_with(['@', '#']) {
            found.push(
                parts
                    .iter()
                    .map(|part| u32::from_str_radix(part, 16))
                    .collect::<std::result::Result<_, _>>()?,
            );
        }
    }
    Ok(found)
}

/// The table of MySQL's collations `_0900_`: no contractions, at most 8 elements a character.
fn version_900(file: &str) -> Result<Table> {
    let mut table = Table::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let Some((character, elements)) = line.split_once(';') else { continue };
        let Ok(character) = u32::from_str_radix(character.trim(), 16) else { continue };
        let mut weights = Weights::default();
        for element in elements.split('[').skip(1).take(8) {
            let element = element.trim().trim_end_matches(']');
            for (level, weight) in element[1..].split('.').take(3).enumerate() {
                weights.0[level].push(u32::from_str_radix(weight, 16)?);
            }
        }
        table.insert(vec![character], weights);
    }
    for character in (0..0x11_0000).filter(|c| !(0xd800..0xe000).contains(c)) {
        if table.contains_key(&vec![character]) {
            continue;
        }
        let weights = if (0xac00..=0xd7af).contains(&character) {
            hangul(character, &table)
        } else {
            implicit_900(character)
        };
        table.insert(vec![character], weights);
    }
    for weights in table.values_mut() {
        weights.0.iter_mut().for_each(|level| level.retain(|weight| *weight != 0));
    }
    Ok(table)
}

fn hangul(character: u32, table: &Table) -> Weights {
    let index = character - 0xac00;
    let trail = index % 28;
    let mut letters = vec![0x1100 + index / 588, 0x1161 + index % 588 / 28];
    letters.extend((trail > 0).then_some(0x11a7 + trail));
    let mut weights = Weights::default();
    for letter in letters {
        let own = &table[&vec![letter]].0;
        weights.0[0].push(own[0][0]);
        weights.0[1].push(own[1][0]);
        weights.0[2].push(own[2][0] + 1);
    }
    weights
}

fn implicit_900(c: u32) -> Weights {
    let extended = matches!(c, 0x3400..=0x4db5 | 0x2_0000..=0x2_a6d6 | 0x2_a700..=0x2_b734
        | 0x2_b740..=0x2_b81d | 0x2_b820..=0x2_cea1);
    let primaries = match c {
        0x1_7000..=0x1_8aff => vec![0xfb00, (c - 0x1_7000) | 0x8000],
        _ => {
            let base = match c {
                _ if extended => 0xfb80,
                0x4e00..=0x9fd5 | 0xfa0e..=0xfa29 => 0xfb40,
                _ => 0xfbc0,
            };
            vec![base + (c >> 15), (c & 0x7fff) | 0x8000]
        }
    };
    Weights([primaries, vec![0x20], vec![2]])
}

/// Which rule for characters without weights gives these, as `src/collation/uca/read.rs` counts them.
fn rule(character: u32, primaries: &[u32]) -> Option<u32> {
    let of = |base: u32| vec![base + (character >> 15), (character & 0x7fff) | 0x8000];
    let from = |base: u32, first: u32| vec![base, character.wrapping_sub(first) & 0x7fff | 0x8000];
    let rules = [
        of(0xfbc0),
        of(0xfb80),
        of(0xfb40),
        from(0xfb00, 0x1_7000),
        from(0xfb01, 0x1_b170),
        from(0xfb02, 0x1_8b00),
    ];
    rules.iter().position(|rule| rule == primaries).map(|position| position as u32)
}

#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn number(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn weights(&mut self, weights: &[u32]) {
        self.number(weights.len() as u32);
        weights.iter().for_each(|weight| self.number(*weight));
    }

    /// Weights as differences, each from the one before it.
    fn differences(&mut self, weights: &[u32], last: &mut u32) {
        for weight in weights {
            let difference = *weight as i32 - *last as i32;
            self.number(((difference << 1) ^ (difference >> 31)) as u32);
            *last = *weight;
        }
    }
}

/// The levels behind the first, numbered in the order in which they first come.
#[derive(Default)]
struct Classes {
    numbers: HashMap<[Vec<u32>; 2], u32>,
    list: Vec<[Vec<u32>; 2]>,
}

impl Classes {
    fn of(&mut self, weights: &Weights) -> u32 {
        let class = [weights.0[1].clone(), weights.0[2].clone()];
        let next = self.list.len() as u32;
        *self.numbers.entry(class.clone()).or_insert_with(|| {
            self.list.push(class);
            next
        })
    }
}

mod code {
    pub const END: u32 = 0;
    pub const IMPLICIT: u32 = 1;
    pub const STEP: u32 = 2;
    pub const SAME: u32 = 3;
    pub const SINGLE: u32 = 4;
    pub const MANY: u32 = 5;
    pub const IGNORED: u32 = 6;
    pub const HANGUL: u32 = 7;
}

/// A whole table as bytes.
fn pack(table: &Table, decomposes_hangul: bool) -> Vec<u8> {
    let mut classes = Classes::default();
    let mut body = Out::default();
    let characters: Vec<u32> = (0..0x11_0000u32).filter(|c| !(0xd800..0xe000).contains(c)).collect();
    let weights: Vec<&Weights> = characters.iter().map(|c| &table[&vec![*c]]).collect();
    let class: Vec<u32> = weights.iter().map(|weights| classes.of(weights)).collect();
    let mut last = 0u32;
    let mut at = 0;
    while at < characters.len() {
        let run = |holds: &dyn Fn(usize) -> bool| {
            (at..characters.len()).take_while(|next| class[*next] == class[at] && holds(*next)).count()
        };
        let primaries = &weights[at].0[0];
        let head = |body: &mut Out, code: u32, class: u32| {
            body.number(code);
            body.number(class);
        };
        if decomposes_hangul && characters[at] == 0xac00 {
            head(&mut body, code::HANGUL, class[at]);
            body.number(class[at + 1]);
            at += 11_172;
        } else if let Some(of) = rule(characters[at], primaries) {
            let count = run(&|next| rule(characters[next], &weights[next].0[0]) == Some(of));
            head(&mut body, code::IMPLICIT, class[at]);
            body.number(of);
            body.number(count as u32);
            at += count;
        } else if primaries.is_empty() {
            let count = run(&|next| weights[next].0[0].is_empty());
            head(&mut body, code::IGNORED, class[at]);
            body.number(count as u32);
            at += count;
        } else if let [weight] = primaries[..] {
            let step = run(&|next| weights[next].0[0] == [last + 1 + (next - at) as u32]);
            let same = run(&|next| weights[next].0[0] == [last]);
            if step.max(same) > 0 {
                head(&mut body, if step > same { code::STEP } else { code::SAME }, class[at]);
                body.number(step.max(same) as u32);
                last += step as u32;
                at += step.max(same);
            } else {
                head(&mut body, code::SINGLE, class[at]);
                body.differences(&[weight], &mut last);
                at += 1;
            }
        } else {
            head(&mut body, code::MANY, class[at]);
            body.number(primaries.len() as u32);
            body.differences(primaries, &mut last);
            at += 1;
        }
    }
    body.number(code::END);
    let contractions: Vec<_> = table.iter().filter(|(sequence, _)| sequence.len() > 1).collect();
    body.number(contractions.len() as u32);
    for (sequence, weights) in contractions {
        entry(&mut body, sequence, weights, classes.of(weights), &mut last);
    }
    let mut out = Out::default();
    write_classes(&mut out, &classes);
    out.0.extend(body.0);
    out.0
}

fn write_classes(out: &mut Out, classes: &Classes) {
    out.number(classes.list.len() as u32);
    for [second, third] in &classes.list {
        out.weights(second);
        out.weights(third);
    }
}

fn entry(out: &mut Out, sequence: &[u32], weights: &Weights, class: u32, last: &mut u32) {
    out.weights(sequence);
    out.number(class);
    out.number(weights.0[0].len() as u32);
    out.differences(&weights.0[0], last);
}

/// What a language's table has otherwise than the table it is based on, as bytes.
fn pack_differences(table: &Table) -> Vec<u8> {
    let mut classes = Classes::default();
    let mut body = Out::default();
    let mut last = 0;
    body.number(table.len() as u32);
    for (sequence, weights) in table {
        entry(&mut body, sequence, weights, classes.of(weights), &mut last);
    }
    let mut out = Out::default();
    write_classes(&mut out, &classes);
    out.0.extend(body.0);
    out.0
}

/// FNV-1a over all weights: of each character and contraction in order, each level closed by a zero.
fn checksum(table: &Table) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |number: u32| sum = (sum ^ u64::from(number)).wrapping_mul(0x0100_0000_01b3);
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(sequence, _)| (sequence.len() > 1, *sequence));
    for (sequence, weights) in entries {
        sequence.iter().for_each(|character| add(*character));
        for level in &weights.0 {
            level.iter().for_each(|weight| add(*weight));
            add(0);
        }
    }
    sum
}

fn candidates() -> Vec<Vec<u32>> {
    let letters: Vec<u32> = LETTERS.chars().map(|letter| letter as u32).collect();
    let mut found = Vec::new();
    for first in &letters {
        for second in &letters {
            found.push(vec![*first, *second]);
            found.extend(letters.iter().map(|third| vec![*first, *second, *third]));
        }
    }
    for block in [0x0d80..0x0e00u32, 0x1000..0x1060, 0x0e00..0x0e60, 0x0600..0x06ff] {
        found.extend(block.clone().flat_map(|first| block.clone().map(move |second| vec![first, second])));
    }
    // Accents behind letters.
    found.extend(letters.iter().flat_map(|first| (0x300..0x370u32).map(move |second| vec![*first, second])));
    found
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, folder, allkeys_9, more @ ..] = &arguments[..] else {
        return Err("arguments: SOCKET FOLDER ALLKEYS-9 ALLKEYS...".into());
    };
    let save = |name: &str, bytes: &[u8], table: &Table| -> Result<()> {
        std::fs::write(format!("{folder}/{name}.bin"), bytes)?;
        println!("(\"{name}\", {:#018x}), // {} bytes", checksum(table), bytes.len());
        Ok(())
    };
    let table = version_900(allkeys_9)?;
    save("900", &pack(&table, true), &table)?;
    let mut listed = Vec::new();
    for file in std::iter::once(allkeys_9).chain(more) {
        listed.extend(listed_sequences(file)?);
    }
    let mut roots = Vec::new();
    for version in ["400", "520", "1400"] {
        let forms = forms(version, "");
        let mut table = all_characters(socket, &forms)?;
        let singles = table.clone();
        let single = |character: u32| singles[&vec![character]].clone();
        table.extend(contractions(socket, &listed, &forms, &single)?);
        save(version, &pack(&table, false), &table)?;
        roots.push((version, table));
    }
    let listed: HashSet<Vec<u32>> = candidates().into_iter().chain(listed).collect();
    let listed: Vec<Vec<u32>> = listed.into_iter().collect();
    let mut packed = Vec::new();
    for language in LANGUAGES {
        languages(socket, language, &roots, &listed, &mut packed)?;
    }
    let mut out = Out::default();
    out.number(packed.len() as u32);
    for (name, bytes) in packed {
        out.weights(&name.bytes().map(u32::from).collect::<Vec<_>>());
        out.number(bytes.len() as u32);
        out.0.extend(bytes);
    }
    std::fs::write(format!("{folder}/languages.bin"), out.0)?;
    Ok(())
}

/// Packs the differences of one language, in the old version that it is based on and in 14.0.0.
fn languages(
    socket: &str,
    language: &str,
    roots: &[(&str, Table)],
    listed: &[Vec<u32>],
    packed: &mut Vec<(String, Vec<u8>)>,
) -> Result<()> {
    for versions in [&roots[..2], &roots[2..]] {
        let forms = forms(versions[0].0, language);
        // Some languages are in one of the versions only.
        let Ok(mut table) = all_characters(socket, &forms) else { continue };
        let singles = table.clone();
        let single = |character: u32| singles[&vec![character]].clone();
        table.extend(contractions(socket, listed, &forms, &single)?);
        let differences = |root: &Table| -> Table {
            let mut found = table.clone();
            found.retain(|sequence, weights| root.get(sequence) != Some(weights));
            // A contraction of the root that the language has not gets the sum of its characters.
            for sequence in root.keys().filter(|sequence| !table.contains_key(*sequence)) {
                let mut sum = Weights::default();
                for character in sequence {
                    for (all, own) in sum.0.iter_mut().zip(single(*character).0) {
                        all.extend(own);
                    }
                }
                found.insert(sequence.clone(), sum);
            }
            found
        };
        let nearest = versions.iter().map(|(version, root)| (version, differences(root)));
        if let Some((version, found)) = nearest.min_by_key(|(_, found)| found.len()) {
            eprintln!("{version} {language}: {} differences", found.len());
            let name = format!("{version}+{language}");
            println!("(\"{name}\", {:#018x}),", checksum(&table));
            packed.push((name, pack_differences(&found)));
        }
    }
    Ok(())
}
