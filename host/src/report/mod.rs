//! What people and log collectors see: log lines, progress, the opening block.
