//! What the engine's integration tests share.

/// The size of a test's cache in bytes: `wanted`, or with `LATCHWORK_TEST_CACHE=smallest` the smallest that
/// can be configured. The engine's own unit tests read the same variable.
pub fn cache_bytes(wanted: usize) -> usize {
    // A cache is never smaller than the fewest frames that the engine needs, so 1 byte asks for just these.
    if smallest_cache_is_wanted() { 1 } else { wanted }
}

/// Does the environment ask for the smallest cache?
pub fn smallest_cache_is_wanted() -> bool {
    std::env::var("LATCHWORK_TEST_CACHE").is_ok_and(|value| value == "smallest")
}
