//! ClickHouse's numbers for failures, those that this backend acts on.
//!
//! Source: `src/Common/ErrorCodes.cpp` of ClickHouse.

#![allow(missing_docs, reason = "the names are ClickHouse's own")]

pub const NO_SUCH_COLUMN_IN_TABLE: i32 = 16;
pub const UNKNOWN_FUNCTION: i32 = 46;
pub const UNKNOWN_IDENTIFIER: i32 = 47;
pub const NOT_IMPLEMENTED: i32 = 48;
pub const UNKNOWN_TYPE: i32 = 50;
pub const TYPE_MISMATCH: i32 = 53;
pub const UNKNOWN_TABLE: i32 = 60;
pub const SYNTAX_ERROR: i32 = 62;
pub const UNKNOWN_DATABASE: i32 = 81;
pub const UNKNOWN_SETTING: i32 = 115;
pub const TIMEOUT_EXCEEDED: i32 = 159;
pub const READONLY: i32 = 164;
pub const ILLEGAL_FINAL: i32 = 181;
pub const UNKNOWN_USER: i32 = 192;
pub const WRONG_PASSWORD: i32 = 193;
pub const REQUIRED_PASSWORD: i32 = 194;
pub const IP_ADDRESS_NOT_ALLOWED: i32 = 195;
pub const QUOTA_EXCEEDED: i32 = 201;
pub const TOO_MANY_SIMULTANEOUS_QUERIES: i32 = 202;
pub const SOCKET_TIMEOUT: i32 = 209;
pub const NETWORK_ERROR: i32 = 210;
pub const QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING: i32 = 216;
pub const NO_ZOOKEEPER: i32 = 225;
pub const ABORTED: i32 = 236;
pub const MEMORY_LIMIT_EXCEEDED: i32 = 241;
pub const TABLE_IS_READ_ONLY: i32 = 242;
pub const TOO_MANY_PARTS: i32 = 252;
pub const TOO_FEW_LIVE_REPLICAS: i32 = 285;
pub const UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE: i32 = 286;
pub const REPLICA_IS_NOT_IN_QUORUM: i32 = 289;
pub const UNKNOWN_STATUS_OF_INSERT: i32 = 319;
pub const SUPPORT_IS_DISABLED: i32 = 344;
pub const QUERY_IS_PROHIBITED: i32 = 392;
pub const CANNOT_SCHEDULE_TASK: i32 = 439;
pub const SETTING_CONSTRAINT_VIOLATION: i32 = 452;
pub const DEADLOCK_AVOIDED: i32 = 473;
pub const ACCESS_DENIED: i32 = 497;
pub const AUTHENTICATION_FAILED: i32 = 516;
pub const CANNOT_ASSIGN_ALTER: i32 = 517;
pub const QUERY_CACHE_USED_WITH_NONDETERMINISTIC_FUNCTIONS: i32 = 704;
pub const QUERY_CACHE_USED_WITH_SYSTEM_TABLE: i32 = 719;
pub const SERVER_OVERLOADED: i32 = 745;
pub const KEEPER_EXCEPTION: i32 = 999;
