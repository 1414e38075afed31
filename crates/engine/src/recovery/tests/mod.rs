#[cfg(not(feature = "shuttle"))]
mod behind;
#[cfg(not(feature = "shuttle"))]
mod crashes;
#[cfg(not(feature = "shuttle"))]
mod failed_rollback;
#[cfg(not(feature = "shuttle"))]
mod full_disk;
#[cfg(not(feature = "shuttle"))]
mod garbage;
#[cfg(not(feature = "shuttle"))]
mod lost_log;
#[cfg(not(feature = "shuttle"))]
mod numbers;
