//! The digits of floats: `format` writes those that Java does, and all that writes floats writes the same.

use crate::common::run;
use proptest::prelude::*;

/// What a program answers.
fn answer(source: &str) -> String {
    run(source, 100_000).0.unwrap_or_else(|(_, message)| panic!("{source}: {message}"))
}

#[test]
fn format_writes_what_java_writes() {
    let mut rows = include_str!("floats.tsv").lines().filter(|line| !line.starts_with('#'));
    let (_, forms) = rows.next().and_then(|header| header.split_once('\t')).expect("a header");
    let forms: Vec<String> = forms.split('\t').map(|form| format!("(format {form:?} x)")).collect();
    let mut count = 0;
    for row in rows {
        let (x, wanted) = row.split_once('\t').expect("a float and its texts");
        let wanted: Vec<String> = wanted.split('\t').map(|text| format!("{text:?}")).collect();
        assert_eq!(answer(&format!("(let [x {x}] [{}])", forms.join(" "))), format!("[{}]", wanted.join(" ")), "{x}");
        count += 1;
    }
    assert!(count > 300, "{count}");
}

/// The digits of a text that are not zeros at one of its ends, and the exponent without which the first of them is in front of the
/// point.
fn digits(text: &str) -> (String, i64) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mantissa = mantissa.trim_start_matches('-');
    let point = mantissa.find('.').unwrap_or(mantissa.len());
    let all: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let zeros = all.bytes().take_while(|&digit| digit == b'0').count();
    let exponent: i64 = exponent.parse().expect("an exponent");
    (all.trim_matches('0').to_owned(), exponent + point as i64 - zeros as i64)
}

/// Floats of all sizes, and many of which two shortest texts are as near.
fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite, not zero", |f| f.is_finite() && *f != 0.0),
        (1u64 << 48..1 << 54, 0u8..16).prop_map(|(whole, part)| whole as f64 + f64::from(part) / 16.0),
        (any::<i32>(), 0u8..64).prop_map(|(whole, part)| f64::from(whole) + f64::from(part) / 64.0 + 0.5),
        (1u64..1000, -320i32..300).prop_map(|(digits, power)| format!("{digits}e{power}").parse().expect("a float")),
    ]
    .prop_filter("finite, not zero", |f| f.is_finite() && *f != 0.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_texts_of_a_float_have_the_same_digits(f in float()) {
        let source = format!(
            "(let [x {f:e}] (println x) (mapv #(replace % \" \" \"\")
               [(str x) (pr-str x) (json/generate-string x) (format \"%.16e\" x) (format \"%s\" x) (Double/toString x)]))",
        );
        let (texts, prints) = run(&source, 100_000);
        let texts = texts.unwrap_or_else(|(_, message)| panic!("{source}: {message}"));
        let wanted = digits(ryu::Buffer::new().format_finite(f));
        let texts = texts.trim_matches(['[', ']']).split(' ').map(|text| text.trim_matches('"'));
        for text in texts.chain(prints.iter().map(String::as_str)) {
            prop_assert_eq!(digits(text), wanted.clone(), "{} {}", f, text);
            prop_assert_eq!(text.parse::<f64>(), Ok(f), "{} {}", f, text);
        }
    }
}
