//! Plans, and what each fault does.
