//! The lock protocols under simulated time: many clients, one modelled server, and everything that may go wrong between
//! them, drawn from a seed.
//!
//! Ours drive the real state machine and behave as its driver does; peers follow the published add-on to the letter. The
//! server carries statements out as ClickHouse does: it judges a condition on a snapshot and makes the result visible
//! later. Requests are late, lost, or carried out without an answer; processes stop for longer than any limit, or die;
//! merges come at any moment; clocks are wrong.
//!
//! Assumed is: a process's monotonic clock runs on while the process is stopped (the settle protocol measures its insert
//! with it); the server ends a fenced statement at its time limit; and of the server's clock what
//! [`scenario::Clock::Steps`] says. Assumptions, too, have a test in [`must_catch`] that breaks them.
//!
//! A failing run prints its seed and what happened. `SIM_SEED=n cargo test … sim::protocols::ticket -- --nocapture` runs
//! that one schedule again, of whichever tests are named, and prints it in any case.
//!
//! - [`rng`]: what is drawn from the seed. [`times`]: the limits of the protocol, and delays that lie about them.
//! - [`table`]: the lock table. [`state`]: the state row. [`statement`]: what each statement does to them, in steps.
//! - [`kernel`]: time and the queue. [`server`]: the way of a statement. [`request`]: how a client sends and repeats. [`client`] and [`holding`]: ours.
//!   [`peer`]: the add-on.
//! - [`monitor`]: what must never happen. [`scenario`]: who takes part and which rules are in force. [`world`]: one run.
//! - [`explore`]: many runs. [`protocols`]: what holds. [`must_catch`]: what has to be noticed when a rule is missing.

mod client;
mod explore;
mod holding;
mod kernel;
mod monitor;
mod must_catch;
mod peer;
mod protocols;
mod request;
mod scenario;
mod server;
mod state;
mod statement;
mod table;
mod times;
mod world;
