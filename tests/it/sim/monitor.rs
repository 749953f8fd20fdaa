//! What must never happen, watched from outside.

use super::state::Version;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Two of ours hold the lock.
    Overlap,
    /// One of ours and a peer hold it.
    MixedOverlap,
    /// Two peers hold it.
    PeerOverlap,
    /// A write became visible after another had taken the lock.
    LateWrite,
    /// A newer version lacks an update that an older one has, or that was reported as done.
    LostUpdate,
    /// A row is left though its owner has ended in order.
    LeftBehind,
    /// Nobody took the lock although somebody tried for long enough.
    NoProgress,
}

/// The first violation.
#[derive(Clone, Debug)]
pub(super) struct Violation {
    pub(super) kind: Kind,
    pub(super) text: String,
}

/// One that believes it holds the lock, from the moment it was decided until it begins to give it up.
#[derive(Clone, Copy, Debug)]
struct Holder {
    actor: usize,
    peer: bool,
    /// By the server's clock. From then on the holder has stood still for too long and has no claim any more. What it
    /// knows counts: a renewal does when it was answered.
    fresh_until: i64,
}

/// Watches one run.
pub(super) struct Monitor {
    claims: &'static [Kind],
    holders: Vec<Holder>,
    /// The locks in the order in which they were taken.
    pub(super) taken: Vec<u128>,
    /// The updates that were reported as done.
    done: u64,
    /// The locks whose rows may stay until they are stale: their owner died, or could not remove them, or a statement
    /// that inserts them was still being carried out when its client had given it up.
    excused: Vec<u128>,
    pub(super) violation: Option<Violation>,
}

impl Monitor {
    pub(super) fn new(claims: &'static [Kind]) -> Self {
        Self { claims, holders: Vec::new(), taken: Vec::new(), done: 0, excused: Vec::new(), violation: None }
    }

    fn report(&mut self, kind: Kind, text: impl FnOnce() -> String) {
        if self.violation.is_none() && self.claims.contains(&kind) {
            self.violation = Some(Violation { kind, text: text() });
        }
    }

    /// The lock is taken. `latest` is the latest time that the server's clock has ever shown: what was stale once stays
    /// so, even if the clock steps back.
    pub(super) fn acquired(&mut self, actor: usize, peer: bool, lock_id: u128, fresh_until: i64, latest: i64) {
        // Whoever stood still until its row was stale takes nothing from those who came since.
        if fresh_until > latest {
            self.counts(lock_id);
        }
        self.holders.push(Holder { actor, peer, fresh_until });
        self.check_overlap(actor, latest);
    }

    /// A lock is the one that counts: it was taken, or a write under it was found to be in order before its owner knew.
    pub(super) fn counts(&mut self, lock_id: u128) {
        if !self.taken.contains(&lock_id) {
            self.taken.push(lock_id);
        }
    }

    pub(super) fn renewed(&mut self, actor: usize, fresh_until: i64, latest: i64) {
        if let Some(holder) = self.holders.iter_mut().find(|holder| holder.actor == actor) {
            holder.fresh_until = fresh_until;
        }
        self.check_overlap(actor, latest);
    }

    fn check_overlap(&mut self, actor: usize, latest: i64) {
        let fresh: Vec<Holder> = self.holders.iter().filter(|holder| holder.fresh_until > latest).copied().collect();
        let Some(one) = fresh.iter().find(|holder| holder.actor == actor) else { return };
        for other in fresh.iter().filter(|holder| holder.actor != actor) {
            let kind = match (one.peer, other.peer) {
                (false, false) => Kind::Overlap,
                (true, true) => Kind::PeerOverlap,
                _ => Kind::MixedOverlap,
            };
            self.report(kind, || format!("{actor} holds the lock, and so does {}", other.actor));
        }
    }

    /// It gives the lock up, learns that it is lost, or dies.
    pub(super) fn ended(&mut self, actor: usize) {
        self.holders.retain(|holder| holder.actor != actor);
    }

    /// A write under a lock became visible.
    pub(super) fn landed(&mut self, actor: usize, lock_id: u128, before: Version, after: Version) {
        let place = self.taken.iter().position(|taken| *taken == lock_id);
        if place.is_none_or(|place| place + 1 < self.taken.len()) {
            self.report(Kind::LateWrite, || format!("{actor} wrote after another had taken the lock"));
        }
        let lost = (before.tokens | self.done) & !after.tokens;
        if lost != 0 {
            self.report(Kind::LostUpdate, || format!("{actor} overwrote the updates {lost:b}"));
        }
    }

    /// An update was reported as done.
    pub(super) fn done(&mut self, actor: usize, token: u64, newest: Version) {
        self.done |= token;
        if newest.tokens & token == 0 {
            self.report(Kind::LostUpdate, || format!("{actor} was told that {token:b} is stored, and it is not"));
        }
    }

    pub(super) fn excuse(&mut self, lock_id: u128) {
        self.excused.push(lock_id);
    }

    /// All have ended.
    pub(super) fn left(&mut self, rows: impl Iterator<Item = u128>) {
        for lock_id in rows {
            if !self.excused.contains(&lock_id) {
                self.report(Kind::LeftBehind, || format!("the row of {lock_id:032x} is left"));
            }
        }
    }

    pub(super) fn no_progress(&mut self, text: &str) {
        self.report(Kind::NoProgress, || text.to_owned());
    }
}
