//! One contract, `tests/hosts/contract.json`, carried out in every host of the component; and the examples that users
//! copy. `cargo xtask test` installs the other hosts.

mod contract;
mod documented;
mod drivers;
mod examples;
mod ours;
mod programs;
mod wave;
