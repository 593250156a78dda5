//! Fields of `format`: what they write, and what is refused.

use super::*;

fn text<'h>(h: &'h Ctx, form: &str, values: &[Value<'h>]) -> Result<String, Reason> {
    let mut args = vec![h.str(form).expect("there is room")];
    args.extend_from_slice(values);
    match format(h, &args) {
        Ok(v) => Ok(v.as_str().unwrap_or_default().to_owned()),
        Err(Fault::Error(error)) => Err(error.reason),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn fields() -> Res<()> {
    let h = Ctx::new(Heap::new(1, usize::MAX / 2));
    let float = Value::Float;
    let (s, two) = (h.str("é")?, h.str("äb")?);
    for (form, value, answer) in [
        ("%d", Value::Int(-7), "-7"),
        ("%05d", Value::Int(-7), "-0007"),
        ("%-5d|", Value::Int(-7), "-7   |"),
        ("%d", float(2.0), "2"),
        ("%d", float(1e20), "100000000000000000000"),
        ("%x", Value::Int(-255), "ffffffffffffff01"),
        ("%X", Value::Int(255), "FF"),
        ("%#x", Value::Int(15), "0xf"),
        ("%#08x", Value::Int(15), "0x00000f"),
        ("%,d", Value::Int(-1_234_567), "-1,234,567"),
        ("%,d", Value::Int(999), "999"),
        ("%+d", Value::Int(3), "+3"),
        ("% d", Value::Int(3), " 3"),
        ("%(d", Value::Int(-3), "(3)"),
        ("%+05d", Value::Int(3), "+0003"),
        ("%,.2f", float(1_234_567.891), "1,234,567.89"),
        ("%,.2f", float(-1_234.5), "-1,234.50"),
        ("%+.1f%%", float(2.25), "+2.3%"),
        ("%b", Value::Nil, "false"),
        ("%.2b", float(1.5), "tr"),
        ("%6.3B|", Value::Nil, "   FAL|"),
        ("%.9b", Value::Nil, "false"),
        ("%#.0f", float(0.0), "0."),
        ("%#,.0f", float(12_345.0), "12,345."),
        ("%#.0e", float(1234.5), "1.e+03"),
        ("%#.1f", float(0.0), "0.0"),
        ("%B", Value::Int(0), "TRUE"),
        ("%c", Value::Int(65), "A"),
        ("%5c|", s, "    é|"),
        ("%d", Value::Nil, "null"),
        ("%6.2f", Value::Nil, "    nu"),
        ("%1$s %1$s", Value::Int(1), "1 1"),
        ("%s %<s", Value::Int(1), "1 1"),
        ("a%nb%s", Value::Int(1), "a\nb1"),
        ("%S", s, "É"),
        ("%g", float(1.0), "1.00000"),
        ("%.2g", float(12.34), "12"),
        ("%g", float(0.00001), "1.00000e-05"),
        ("%g", float(0.0001), "0.000100000"),
        ("%G", float(1e10), "1.00000E+10"),
        ("%.3g", float(999.5), "1.00e+03"),
        ("%g", float(0.0), "0.00000"),
        ("%E", float(12.5), "1.250000E+01"),
        ("%o", Value::Int(8), "10"),
        ("%f", Value::Int(3), "3.000000"),
        ("%.2f", float(0.125), "0.13"),
        ("%.2f", float(2.675), "2.68"),
        ("%.2f", float(1.005), "1.01"),
        ("%.0f", float(0.5), "1"),
        ("%.0f", float(0.4), "0"),
        ("%.1f", float(0.05), "0.1"),
        ("%.3f", float(1e-10), "0.000"),
        ("%.1f", float(1e23), "100000000000000000000000.0"),
        ("%.20f", float(0.1), "0.10000000000000000000"),
        ("%.1e", float(1.25), "1.3e+00"),
        ("%e", float(0.0), "0.000000e+00"),
        ("%.2e", float(9.999), "1.00e+01"),
        ("%.1f", float(-0.04), "-0.0"),
        ("%.0f", float(2.5), "3"),
        ("%.1f", float(9.96), "10.0"),
        ("%.1f", float(1e20), "100000000000000000000.0"),
        ("%08.2f", float(3.1), "00003.10"),
        ("%e", float(1234.5), "1.234500e+03"),
        ("%.0e", float(1e-100), "1e-100"),
        ("%09f", float(f64::NEG_INFINITY), "-Infinity"),
        ("%5s", two, "   äb"),
        ("%.1s", two, "ä"),
        ("%-4s|", two, "äb  |"),
        ("%s", Value::Nil, ""),
    ] {
        assert_eq!(text(&h, form, &[value]).as_deref(), Ok(answer), "{form}");
    }
    Ok(())
}

/// What Java answers: for each conversion, the flags that it takes with a width of 9, and whether it takes a
/// precision.
#[test]
fn flags_and_precisions_are_those_of_java() {
    const TAKEN: &[(&str, &str, bool)] = &[
        ("s", "-", true),
        ("S", "-", true),
        ("b", "-", true),
        ("B", "-", true),
        ("c", "-", false),
        ("C", "-", false),
        ("d", "-0+ ,(", false),
        ("x", "-0#", false),
        ("X", "-0#", false),
        ("o", "-0#", false),
        ("f", "-0+ ,(#", true),
        ("e", "-0+ (#", true),
        ("E", "-0+ (#", true),
        ("g", "-0+ ,(", true),
        ("G", "-0+ ,(", true),
    ];
    let h = Ctx::new(Heap::new(1, usize::MAX / 2));
    for (letter, flags, precision) in TAKEN {
        for flag in FLAGS.chars() {
            let answer = text(&h, &format!("%{flag}9{letter}"), &[Value::Int(65)]);
            assert_eq!(answer.is_ok(), flags.contains(flag), "%{flag}9{letter}: {answer:?}");
            let bare = text(&h, &format!("%{flag}{letter}"), &[Value::Int(65)]);
            let is_taken = flags.contains(flag) && !matches!(flag, '-' | '0');
            assert_eq!(bare.is_ok(), is_taken, "%{flag}{letter}: {bare:?}");
        }
        for form in [format!("%.2{letter}"), format!("%9.2{letter}")] {
            assert_eq!(text(&h, &form, &[Value::Int(65)]).is_ok(), *precision, "{form}");
        }
        for both in ["+ ", "-0"] {
            assert!(text(&h, &format!("%{both}9{letter}"), &[Value::Int(65)]).is_err(), "%{both}9{letter}");
        }
    }
    // An error says what is taken.
    let said = |form: &str| match format(&h, &[h.str(form).expect("there is room"), Value::Int(255)]) {
        Err(Fault::Error(error)) => (error.message.to_string(), error.hint.unwrap_or_default().to_string()),
        _ => panic!("{form} is not an error"),
    };
    for (form, message, hint) in [
        ("%.2d", "format's %d takes no precision, got %.2d", "leave out the precision; %d takes a width, as in %8d"),
        ("a %+s b", "format's %s does not take the flag +, got %+s", "leave it out; %s takes the flag -"),
        ("%#9d", "format's %d does not take the flag #, got %#9d", "leave it out; %d takes the flags - 0 + space , ("),
        ("%+x", "format's %x does not take the flag +", "leave it out; %x takes the flags - 0 #"),
        ("%-d", "the flag - of a format needs a width, got %-d", "write a width after it, as in %-8d"),
        ("%-08d", "a format takes only one of the flags - and 0, got %-08d", "leave out one of them"),
    ] {
        assert_eq!(said(form), (message.to_owned(), hint.to_owned()), "{form}");
    }
    assert_eq!(text(&h, "%+x", &[Value::Nil]).as_deref(), Ok("null"));
}

#[test]
fn faults() {
    let h = Ctx::new(Heap::new(1, usize::MAX / 2));
    let one = [Value::Int(1)];
    for form in [
        "%",
        "%z",
        "%,s",
        "%,x",
        "%2$s",
        "%<s",
        "%1$s%<<s",
        "%--5s",
        "%005d",
        "%tY",
        "%.s",
        "%1000000000d",
        "%.999999999f",
        "%99999999999999999999d",
        "%s%s",
    ] {
        assert_eq!(text(&h, form, &one), Err(Reason::RuntimeError), "{form}");
    }
    for form in ["%d", "%x", "%f", "%e", "%o", "%c", "%g"] {
        assert_eq!(text(&h, form, &[Value::Bool(true)]), Err(Reason::RuntimeError), "{form}");
    }
    assert_eq!(text(&h, "%d", &[Value::Float(f64::NAN)]), Err(Reason::RuntimeError));
    assert_eq!(text(&h, "a", &one).as_deref(), Ok("a"), "more values than places");
}
