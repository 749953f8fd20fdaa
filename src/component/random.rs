//! Randomness, from `wasi:random`.

use wasi::random::random::get_random_bytes;

use crate::ports::Random;

/// The host's cryptographic generator.
pub(super) struct WasiRandom;

impl Random for WasiRandom {
    fn random(&self) -> u128 {
        get_random_bytes(16).iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
    }
}
