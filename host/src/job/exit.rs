//! Exit codes: an interface, matched by platforms' retry rules.

/// How the process ends. Never 137: engines read it as killed for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// Done, outputs durable.
    Done,
    /// The command line, a spec, or the place it runs in (volume, name) is wrong.
    Usage,
    /// The plugin, its configuration or its input can never work; stalled too often.
    Hopeless,
    /// Refused rather than started over.
    Refused,
    /// A failure that another attempt may not meet.
    Retry,
    /// A newer attempt of this task is at work.
    Fenced,
    /// Interrupted from the keyboard; state saved.
    Keyboard,
    /// Preempted; state saved as far as time allowed.
    Preempted,
}

impl ExitCode {
    /// All codes, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Usage,
        Self::Hopeless,
        Self::Refused,
        Self::Retry,
        Self::Fenced,
        Self::Keyboard,
        Self::Preempted,
    ];

    /// The number that the process exits with.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Usage => 2,
            Self::Hopeless => 65,
            Self::Refused => 70,
            Self::Retry => 75,
            Self::Fenced => 76,
            Self::Keyboard => 130,
            Self::Preempted => 143,
        }
    }

    /// Whether the platform should start another attempt; from a keyboard that is the person's choice.
    #[must_use]
    pub const fn should_be_retried(self) -> Option<bool> {
        match self {
            Self::Done | Self::Usage | Self::Hopeless | Self::Refused | Self::Fenced => Some(false),
            Self::Retry | Self::Preempted => Some(true),
            Self::Keyboard => None,
        }
    }

    /// What it means, for people.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done, outputs durable",
            Self::Usage => "the command line, a spec, or the place it runs in (volume, name) is wrong",
            Self::Hopeless => "the plugin, its configuration or its input can never work; stalled too often",
            Self::Refused => {
                "refused rather than started over: checkpoints that cannot be used, changed fields, done and told to fail"
            }
            Self::Retry => "a failure that another attempt may not meet: device lost, volume error, guest trap",
            Self::Fenced => "fenced: a newer attempt of this task is at work",
            Self::Keyboard => "interrupted from the keyboard; state saved",
            Self::Preempted => "preempted; state saved as far as time allowed",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        code.code().into()
    }
}
