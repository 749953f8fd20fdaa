//! What a caller may ask of a lock beyond what the settings say.

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::seconds::Seconds;
use crate::settings::{LOCK_TABLE_TTL, LockSettings, Settings};

/// How to take a lock; what is none is as the settings say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acquire {
    /// How long to wait while another holds it.
    pub wait_seconds: Option<f64>,
    /// The longest pause between attempts.
    pub retry_seconds: Option<f64>,
    /// The age at which it counts as abandoned.
    pub stale_seconds: Option<f64>,
    /// Who takes it, for those who have to wait.
    pub owner: String,
}

impl Acquire {
    /// The settings with these options over them.
    pub(crate) fn limits(&self, settings: &Settings) -> Result<LockSettings, Error> {
        let limits = settings.lock.clone();
        // A holder's write has to end before anybody may take its lock for abandoned.
        let shortest_stale = settings.shortest_stale() + Duration::from_millis(1);
        Ok(LockSettings {
            wait: option("wait-seconds", self.wait_seconds, limits.wait, Duration::ZERO, Duration::MAX)?,
            retry: option("retry-seconds", self.retry_seconds, limits.retry, Duration::from_millis(10), Duration::MAX)?,
            stale: option("stale-seconds", self.stale_seconds, limits.stale, shortest_stale, LOCK_TABLE_TTL)?,
            ..limits
        })
    }
}

fn option(
    name: &str,
    seconds: Option<f64>,
    default: Duration,
    least: Duration,
    most: Duration,
) -> Result<Duration, Error> {
    let Some(seconds) = seconds else { return Ok(default) };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if (least..=most).contains(&duration) => Ok(duration),
        _ => {
            let most = if most == Duration::MAX { String::new() } else { format!(" and at most {}", Seconds(most)) };
            Err(Error::new(ErrorKind::InvalidArgument, format!("{name} has to be at least {}{most}", Seconds(least)))
                .with_hint("leave the option out to go by the settings"))
        }
    }
}
