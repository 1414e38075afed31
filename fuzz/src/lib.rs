//! The code of every fuzz target. A target fails by panicking.
//!
//! `cargo fuzz run packets --features libfuzzer` (nightly) searches for inputs; the tests here try
//! seeded inputs and thousands of mutations of them on stable, so that every test run exercises the targets.
//!
//! [`queries`] is apart: it draws statements that make sense, and compares the answers. So is
//! [`conversations`], which plays clients of a running server.

pub mod conversations;
mod packets;
mod pages;
pub mod queries;
mod rows_and_keys;
mod statements;

pub use packets::packets;
pub use pages::pages;
pub use rows_and_keys::rows_and_keys;
pub use statements::statements;

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// One or more small changes: a byte, a bit, a cut, a repeat, a piece of another seed.
    fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let mut bytes = seeds[random.index(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            let at = random.index(bytes.len().max(1));
            match random.below(6) {
                0 if !bytes.is_empty() => bytes[at] = random.next_u64() as u8,
                1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
                2 => bytes.truncate(at),
                3 => bytes.insert(at, [0, 0xff, 0xfb, 0xfe, b'\'', b'(', 0x80][random.index(7)]),
                4 => {
                    let until = at + random.index((bytes.len() - at).max(1));
                    let piece = bytes[at..until].to_vec();
                    bytes.splice(at..at, piece);
                }
                _ => {
                    let other = &seeds[random.index(seeds.len())];
                    let from = random.index(other.len().max(1));
                    let until = from + random.index((other.len() - from).max(1));
                    bytes.splice(at..at, other[from..until].iter().copied());
                }
            }
            bytes.truncate(1 << 16);
        }
        bytes
    }

    /// On a thread with the stack that an unoptimised parser needs for the deepest statement it takes.
    fn try_many(target: fn(&[u8]), seeds: Vec<Vec<u8>>, inputs: usize) {
        let body = move || {
            let mut random = Random::new(0x1a7c, 0);
            seeds.iter().for_each(|seed| target(seed));
            for length in 0..200 {
                let noise: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
                target(&noise);
            }
            for _ in 0..inputs {
                target(&mutate(&seeds, &mut random));
            }
        };
        let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(body).unwrap();
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }

    #[test]
    fn no_bytes_on_the_wire_cause_a_panic() {
        try_many(packets, packets::seeds(), 200_000);
    }

    #[test]
    fn no_statement_text_causes_a_panic() {
        try_many(statements, statements::seeds(), 60_000);
    }

    #[test]
    fn no_row_or_key_causes_a_panic_and_codecs_agree_with_themselves() {
        try_many(rows_and_keys, rows_and_keys::seeds(), 200_000);
    }

    #[test]
    fn no_page_content_causes_a_panic() {
        try_many(pages, pages::seeds(), 20_000);
    }
}
