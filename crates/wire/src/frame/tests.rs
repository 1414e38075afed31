use super::*;
use proptest::prelude::*;

fn read_all(reader: &mut PacketReader) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        payloads.push(reader.payload(&packet).to_vec());
    }
    payloads
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * 31) >> 3) as u8).collect()
}

#[test]
fn a_packet_of_exactly_the_part_size_is_followed_by_an_empty_part() {
    let payload = pattern(PART_BYTES_MAX);
    let mut writer = PacketWriter::new();
    writer.packet(&payload);
    assert_eq!(writer.bytes().len(), PART_BYTES_MAX + 2 * HEADER_BYTES);
    assert_eq!(&writer.bytes()[PART_BYTES_MAX + HEADER_BYTES..], &[0, 0, 0, 1]);
    assert_eq!(writer.sequence(), 2);
    let mut reader = PacketReader::new(usize::MAX);
    reader.feed(writer.bytes());
    assert!(read_all(&mut reader) == vec![payload]);
}

#[test]
fn packets_over_16_mb_are_split_and_joined_between_small_ones() {
    for length in [PART_BYTES_MAX - 1, PART_BYTES_MAX + 1, 2 * PART_BYTES_MAX, 40_000_000] {
        let payload = pattern(length);
        let mut writer = PacketWriter::new();
        writer.packet(b"before");
        writer.packet(&payload);
        writer.packet(b"after");
        let mut reader = PacketReader::new(usize::MAX);
        let mut payloads = Vec::new();
        for chunk in writer.bytes().chunks(1_234_567) {
            reader.feed(chunk);
            payloads.append(&mut read_all(&mut reader));
        }
        assert!(payloads == vec![b"before".to_vec(), payload, b"after".to_vec()], "{length}");
        assert!(!reader.has_partial());
    }
}

#[test]
fn a_packet_over_the_limit_is_skipped_and_the_next_one_is_read() {
    for length in [1001, PART_BYTES_MAX, 2 * PART_BYTES_MAX + 7] {
        let mut writer = PacketWriter::new();
        writer.packet(&pattern(length));
        writer.packet(b"after");
        let mut reader = PacketReader::new(1000);
        let mut refused = 0;
        let mut payloads = Vec::new();
        for chunk in writer.bytes().chunks(70_001) {
            reader.feed(chunk);
            loop {
                match reader.next_packet() {
                    Ok(Some(packet)) => payloads.push(reader.payload(&packet).to_vec()),
                    Ok(None) => break,
                    Err(error) => {
                        assert_eq!(error, FrameError::TooLarge);
                        refused += 1;
                    }
                }
            }
        }
        assert_eq!((refused, payloads), (1, vec![b"after".to_vec()]));
        assert!(reader.capacity() < 1 << 20, "a refused packet is not kept: {}", reader.capacity());
    }
}

#[test]
fn a_limit_between_two_parts_refuses_the_whole_packet() {
    let mut writer = PacketWriter::new();
    writer.packet(&pattern(PART_BYTES_MAX + 5000));
    writer.packet(b"after");
    let mut reader = PacketReader::new(PART_BYTES_MAX + 1);
    reader.feed(writer.bytes());
    assert_eq!(reader.next_packet(), Err(FrameError::TooLarge));
    assert_eq!(read_all(&mut reader), vec![b"after".to_vec()]);
}

#[test]
fn a_wrong_sequence_number_is_refused() {
    let mut reader = PacketReader::new(1000);
    reader.feed(&[1, 0, 0, 3, b'x']);
    assert_eq!(reader.next_packet(), Err(FrameError::OutOfOrder { expected: 0, got: 3 }));
}

#[test]
fn a_header_alone_takes_no_memory() {
    let mut reader = PacketReader::new(usize::MAX);
    reader.feed(&[0xff, 0xff, 0xff, 0]);
    assert_eq!(reader.next_packet(), Ok(None));
    assert!(reader.space().len() <= 8192);
}

#[test]
fn an_idle_reader_gives_its_memory_back() {
    let mut writer = PacketWriter::new();
    writer.packet(&pattern(1_000_000));
    let mut reader = PacketReader::new(usize::MAX);
    reader.feed(writer.bytes());
    assert_eq!(read_all(&mut reader).len(), 1);
    reader.set_sequence(0);
    reader.shrink(16_384);
    assert!(reader.capacity() <= 16_384);
    reader.feed(&[1, 0, 0, 0, b'x']);
    assert_eq!(read_all(&mut reader), vec![b"x".to_vec()]);
}

#[test]
fn a_rewound_writer_forgets_the_packets_since() {
    let mut writer = PacketWriter::new();
    writer.packet(b"kept");
    let (length, sequence) = (writer.len(), writer.sequence());
    writer.packet(b"dropped");
    writer.begin().extend_from_slice(b"never finished");
    writer.rewind(length, sequence);
    writer.packet(b"error");
    let mut reader = PacketReader::new(100);
    reader.feed(writer.bytes());
    assert_eq!(read_all(&mut reader), vec![b"kept".to_vec(), b"error".to_vec()]);
}

proptest! {
    #[test]
    fn packets_survive_any_cutting_of_the_stream(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..20),
        cuts in prop::collection::vec(1usize..5000, 1..40),
    ) {
        let mut writer = PacketWriter::new();
        for payload in &payloads {
            writer.packet(payload);
        }
        let mut reader = PacketReader::new(usize::MAX);
        let mut got = Vec::new();
        let mut left = writer.bytes();
        let mut cuts = cuts.iter().cycle();
        while !left.is_empty() {
            let (chunk, rest) = left.split_at(left.len().min(*cuts.next().unwrap()));
            reader.feed(chunk);
            got.append(&mut read_all(&mut reader));
            left = rest;
        }
        prop_assert_eq!(got, payloads);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), limit in 0usize..300) {
        let mut reader = PacketReader::new(limit);
        for chunk in bytes.chunks(7) {
            reader.feed(chunk);
            for _ in 0..5 {
                match reader.next_packet() {
                    Ok(Some(packet)) => prop_assert!(reader.payload(&packet).len() <= limit),
                    Ok(None) => break,
                    Err(FrameError::TooLarge) => {}
                    Err(FrameError::OutOfOrder { got, .. }) => reader.set_sequence(got),
                }
            }
        }
    }
}
