//! That the seeds are what they are meant to be.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;

#[test]
fn every_seed_passes() {
    crate::each_seed("store", |_, bytes| run(bytes));
}

#[test]
fn most_seeds_have_a_checkpoint_that_is_loaded() {
    let (mut seeds, mut loaded) = (0, 0);
    crate::each_seed("store", |_, bytes| {
        let (volume, _) = folder::read(bytes);
        let store = Store::new(Arc::new(volume), &JobName::new(JOB).unwrap(), TASK);
        let survey = store.survey().unwrap();
        let (choice, _) = store.choose(&survey, Wish::GoOn, None).unwrap();
        let mut session = store.prepare(survey, choice, &request(Wish::GoOn, None)).unwrap();
        let decision = load(&store, &mut session);
        seeds += 1;
        loaded += usize::from(decision.is_ok_and(|decision| decision.loaded.is_some()));
    });
    assert!(loaded * 2 > seeds && seeds > 2, "{loaded} of {seeds}");
}
