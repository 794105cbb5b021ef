//! Which engine runs this attempt, who it says we are, and how it will stop us.
