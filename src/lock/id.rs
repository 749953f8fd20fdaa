//! Lock ids: UUIDs of version 8 that sort by time, and below every random UUID.

use std::time::Duration;

use uuid::Uuid;

/// What the ids of this backend begin with, and others once in four billion times.
pub(super) const OWN_PREFIX: &str = "00000000-";

/// The id of a new lock row: 32 zero bits, the Unix time in milliseconds, and random bits.
///
/// The Python add-on draws random UUIDs and lets the lowest id win. A random UUID begins with 32 zero bits once in four
/// billion times, so where both race, its own rule gives way to ours. Source of the layout: RFC 9562, section 5.8,
/// which leaves all but version and variant to the application.
#[must_use]
pub fn lock_id(unix_time: Duration, random: u128) -> Uuid {
    let millis = unix_time.as_millis() & 0xFFFF_FFFF_FFFF;
    // The time's upper 16 bits, then (after the version) its next 12, then (after the variant) its lower 20.
    let high = millis >> 32;
    let middle = (millis >> 20) & 0xFFF;
    let low = millis & 0xF_FFFF;
    let random = random & ((1 << 42) - 1);
    Uuid::from_u128((high << 80) | (8 << 76) | (middle << 64) | (0b10 << 62) | (low << 42) | random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_below_random_ones() {
        let at = |millis: u64, random: u128| lock_id(Duration::from_millis(millis), random).to_string();
        let times = [0, 1, 0xF_FFFF, 0x10_0000, 1_790_000_000_000, 1_790_000_000_001, 0xFFFF_FFFF_FFFF];
        for pair in times.windows(2) {
            assert!(at(pair[0], u128::MAX) < at(pair[1], 0), "{pair:?}");
        }
        assert!(at(0xFFFF_FFFF_FFFF, u128::MAX).as_str() < "00000001");
    }

    #[test]
    fn ids_are_uuids_of_version_8() {
        let id = lock_id(Duration::from_millis(1_790_000_000_000), u128::MAX);
        assert_eq!(id.get_version_num(), 8);
        assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(id.to_string().split('-').next(), Some("00000000"));
    }
}
