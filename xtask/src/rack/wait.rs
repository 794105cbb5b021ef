//! Waiting for what other programs do, by looking: what they write, and what they say of themselves.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How long to wait for something to be seen, and how often to look.
#[derive(Clone, Copy)]
pub(in crate::rack) struct Patience {
    /// Beyond this it will not come.
    pub(in crate::rack) limit: Duration,
    /// Between two looks.
    pub(in crate::rack) every: Duration,
}

/// Looks until there is something to see; an error ends it at once.
pub(in crate::rack) fn until<T>(
    not_yet: &str,
    patience: Patience,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let began = Instant::now();
    loop {
        if let Some(seen) = look()? {
            return Ok(seen);
        }
        if began.elapsed() > patience.limit {
            bail!("after {} s: {not_yet}", patience.limit.as_secs());
        }
        thread::sleep(patience.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends() {
        let patience = Patience { limit: Duration::ZERO, every: Duration::ZERO };
        let mut looks = 0;
        let third = || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        };
        assert!(
            until("never", Patience { limit: Duration::from_secs(600), ..patience }, third).is_ok_and(|seen| seen == 3)
        );
        let never = until::<()>("there is nothing", patience, || Ok(None)).map_err(|error| error.to_string());
        assert_eq!(never, Err("after 0 s: there is nothing".to_owned()));
    }
}
