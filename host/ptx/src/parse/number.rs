//! Literals: integers in four bases, floating-point numbers in decimal or as their bits.

/// A number in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// An integer; a negative one as its two's complement.
    Integer(u64),
    /// `0f3F800000`: the bits of an `.f32`.
    Single(u32),
    /// `0d3FF0000000000000`, or a number with a decimal point: the bits of an `.f64`.
    Double(u64),
}

impl Number {
    /// The number with a `-` before it.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Integer(value) => Self::Integer(value.wrapping_neg()),
            Self::Single(bits) => Self::Single(bits ^ (1 << 31)),
            Self::Double(bits) => Self::Double(bits ^ (1 << 63)),
        }
    }
}

/// How long the number at the beginning of `text` is, which starts with a digit, and what it says.
pub(super) fn scan(text: &str) -> (usize, Result<Number, String>) {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        Some(b'x' | b'X') if bytes[0] == b'0' => in_base(text, 2, 16),
        Some(b'b' | b'B') if bytes[0] == b'0' => in_base(text, 2, 2),
        Some(b'f' | b'F') if bytes[0] == b'0' => bits(text, 8),
        Some(b'd' | b'D') if bytes[0] == b'0' => bits(text, 16),
        _ => decimal(text),
    }
}

/// How many bytes from `from` on could belong to a number or name.
fn run(text: &str, from: usize) -> usize {
    from + text.as_bytes()[from..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}

fn digits(text: &str, from: usize) -> usize {
    from + text.as_bytes()[from..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// An integer whose digits begin at `from`, with or without a `U` behind it.
fn in_base(text: &str, from: usize, base: u32) -> (usize, Result<Number, String>) {
    let end = run(text, from);
    let written = text[from..end].strip_suffix('U').unwrap_or(&text[from..end]);
    if written.is_empty() || !written.chars().all(|digit| digit.is_digit(base)) {
        return (end, Err(format!("is not an integer of base {base}")));
    }
    let value = u64::from_str_radix(written, base).map_err(|_| "does not fit in 64 bits".to_owned());
    (end, value.map(Number::Integer))
}

/// The bits of a floating-point number, `count` hexadecimal digits after two characters.
fn bits(text: &str, count: usize) -> (usize, Result<Number, String>) {
    let end = run(text, 2);
    let written = &text[2..end];
    if written.len() != count || !written.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return (end, Err(format!("needs exactly {count} hexadecimal digits after its `{}`", &text[..2])));
    }
    let value = u64::from_str_radix(written, 16).map_err(|_| "is not a number".to_owned());
    let number = |bits: u64| if count == 8 { Number::Single(bits as u32) } else { Number::Double(bits) };
    (end, value.map(number))
}

/// A decimal or octal integer, or a decimal floating-point number.
fn decimal(text: &str) -> (usize, Result<Number, String>) {
    let bytes = text.as_bytes();
    let whole = digits(text, 0);
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') {
        end = digits(text, end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(text, end + 1 + sign);
    }
    if end == whole {
        let octal = whole > 1 && bytes[0] == b'0';
        return if octal { in_base(text, 1, 8) } else { in_base(text, 0, 10) };
    }
    let after = run(text, end);
    let value = if after == end { text[..end].parse::<f64>().ok() } else { None };
    (after, value.map(|value| Number::Double(value.to_bits())).ok_or_else(|| "is not a number".to_owned()))
}
