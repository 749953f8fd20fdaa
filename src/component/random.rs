//! Randomness, from `wasi:random`.

use wasi::random::random::get_random_u64;

use crate::ports::Random;

/// The host's cryptographic generator.
pub(super) struct WasiRandom;

impl Random for WasiRandom {
    fn random(&self) -> u128 {
        u128::from(get_random_u64()) << 64 | u128::from(get_random_u64())
    }
}
