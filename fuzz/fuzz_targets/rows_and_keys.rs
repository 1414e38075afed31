#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| latchwork_fuzz::rows_and_keys(bytes));
