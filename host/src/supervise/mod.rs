//! Running attempts as child processes: rehearsals of preemption.
