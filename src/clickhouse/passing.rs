//! Which failures pass by themselves, and what may be sent again after them.

use crate::clickhouse::code;

/// What may be sent again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Nothing: trying again does not help.
    Nothing,
    /// What only reads, or does the same when it is carried out twice.
    Repeatable,
    /// Every statement: the server has not begun to carry it out.
    Everything,
}

/// What the server's word that it failed leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing: it was not carried out.
    NotCarriedOut,
    /// It may be carried out all the same, or half of it.
    Unknown,
}

/// The server's failures that say "not now". Any other says that the statement cannot be carried out as it is.
const PASSING: [(i32, Again, Outcome); 18] = {
    use Again::{Everything, Repeatable};
    use Outcome::{NotCarriedOut, Unknown};
    [
        // Refused before the statement began.
        (code::TOO_MANY_SIMULTANEOUS_QUERIES, Everything, NotCarriedOut),
        (code::SERVER_OVERLOADED, Everything, NotCarriedOut),
        (code::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING, Everything, NotCarriedOut),
        // The table is locked, or being altered.
        (code::DEADLOCK_AVOIDED, Everything, NotCarriedOut),
        (code::CANNOT_ASSIGN_ALTER, Everything, NotCarriedOut),
        // The replica is out of touch with Keeper or with the others, and refuses before it writes or reads.
        (code::NO_ZOOKEEPER, Everything, NotCarriedOut),
        (code::TABLE_IS_READ_ONLY, Everything, NotCarriedOut),
        (code::TOO_FEW_LIVE_REPLICAS, Everything, NotCarriedOut),
        (code::UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE, Everything, NotCarriedOut),
        (code::REPLICA_IS_NOT_IN_QUORUM, Everything, NotCarriedOut),
        // The server ran out of something while it carried the statement out.
        (code::TOO_MANY_PARTS, Repeatable, NotCarriedOut),
        (code::MEMORY_LIMIT_EXCEEDED, Repeatable, NotCarriedOut),
        (code::CANNOT_SCHEDULE_TASK, Repeatable, NotCarriedOut),
        // It lost touch, or is shutting down, with the statement half-way.
        (code::UNKNOWN_STATUS_OF_INSERT, Repeatable, Unknown),
        (code::KEEPER_EXCEPTION, Repeatable, Unknown),
        (code::ABORTED, Repeatable, Unknown),
        (code::NETWORK_ERROR, Repeatable, Unknown),
        (code::SOCKET_TIMEOUT, Repeatable, Unknown),
    ]
};

/// What a failure that the server reports with this code and message leaves open, and what may be sent again.
pub(super) fn judge(code: i32, message: &str) -> (Again, Outcome) {
    match PASSING.iter().find(|(passing, ..)| *passing == code) {
        // What needs more memory than one query may have will need it the next time too.
        Some((code::MEMORY_LIMIT_EXCEEDED, _, outcome)) if is_of_query(message) => (Again::Nothing, *outcome),
        Some((_, again, outcome)) => (*again, *outcome),
        None => (Again::Nothing, Outcome::NotCarriedOut),
    }
}

/// Whether such a failure passes by itself.
pub(super) fn passes(code: i32, message: &str) -> bool {
    judge(code, message).0 != Again::Nothing
}

/// `Memory limit (for query) exceeded`, from 25.1 on `Query memory limit exceeded`.
fn is_of_query(message: &str) -> bool {
    message.contains("(for query)") || message.contains("Query memory limit")
}
