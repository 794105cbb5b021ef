//! One file a command: arguments to a validated specification.
