//! The cost of the codecs, in nanoseconds an operation, for people to read.
//! `cargo run --release -p latchwork-types --example codec_speed`

use latchwork_types::collation::definitions;
use latchwork_types::key::encode_text;
use latchwork_types::{Collation, Column, ColumnType, KeyCodec, KeyPart, RowCodec, ValueRef};
use std::hint::black_box;
use std::time::Instant;

fn measure(name: &str, mut operation: impl FnMut()) {
    const ROUNDS: u32 = 2_000_000;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        operation();
    }
    println!("{name:40} {:6.1} ns", start.elapsed().as_nanos() as f64 / ROUNDS as f64);
}

fn main() {
    let collation = Collation::Utf8mb4GeneralCi;
    let column = |name: &str, column_type| Column { name: name.into(), column_type, nullable: false };
    let int = || ColumnType::Int { bytes: 4, unsigned: false };
    let columns = [
        column("id", int()),
        column("k", int()),
        column("c", ColumnType::Char { chars: 120, collation }),
        column("pad", ColumnType::Char { chars: 60, collation }),
    ];
    let codec = RowCodec::new(&columns);
    let (c, pad) = ([b'5'; 119], [b'7'; 59]);
    let row = [ValueRef::Int(1), ValueRef::Int(2), ValueRef::Text(&c), ValueRef::Text(&pad)];
    let mut image = Vec::new();
    measure("encode a sysbench row", || {
        image.clear();
        codec.encode(black_box(&row), &mut image);
    });
    let view = codec.view(&image);
    measure("get an INT", || {
        black_box(black_box(&view).get(1));
    });
    measure("get a CHAR", || {
        black_box(black_box(&view).get(2));
    });
    let mut values = Vec::new();
    measure("read all four columns", || {
        black_box(&view).read_into(&mut values);
        black_box(&values);
    });
    let part = |column| KeyPart { column, prefix_chars: None, descending: false };
    let mut key = Vec::new();
    for (name, parts) in [("key of an INT", vec![part(1)]), ("key of a CHAR(120)", vec![part(2)])] {
        let codec = KeyCodec::new(&columns, &parts);
        measure(name, || {
            key.clear();
            codec.encode_row(black_box(&view), &mut key);
        });
        measure("  its length", || {
            black_box(codec.len_in(black_box(&key)));
        });
    }
    measure("compare two CHAR(120)", || {
        black_box(collation.compare(black_box(&c), black_box(&c)));
    });
    let texts = [
        "The quick brown fox jumps",
        "the QUICK brown fox jumped",
        "Zwölf Boxkämpfer jagen",
        "zwölf BOXKÄMPFER essen",
    ];
    for name in ["utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci", "utf8mb4_uca1400_as_cs"] {
        let found = definitions().iter().find(|one| one.name == name).and_then(|one| one.column());
        let Some(collation) = found else { continue };
        for (what, pair) in [("ASCII", &texts[..2]), ("German", &texts[2..])] {
            measure(&format!("compare, {name}, {what}"), || {
                black_box(collation.compare(black_box(pair[0].as_bytes()), black_box(pair[1].as_bytes())));
            });
            measure(&format!("key, {name}, {what}"), || {
                key.clear();
                encode_text(collation, black_box(pair[0].as_bytes()), &mut key);
            });
        }
    }
}
