//! jaq, for the programs that jq says in a few lines. Not among them: those in `examples/`, which are long; two digits
//! after the point as text, which jq cannot write; and to add what is null, which is no mistake there.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};

/// A compiled program: JSON text in, answer out as text.
pub type Filter = Box<dyn Fn(&str) -> String>;

/// The program of a name.
pub fn program(name: &str) -> Option<Filter> {
    let file = File { code: code(name)?, path: () };
    let arena = Arena::default();
    let loader = Loader::new(jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()));
    let modules = loader.load(&arena, file).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let compiler = Compiler::default().with_funs(jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs()));
    let filter = compiler.compile(modules).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    Some(Box::new(move |text| {
        let input = read::parse_single(text.as_bytes()).expect("JSON");
        let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
        match filter.id.run((context, input)).map(unwrap_valr).next() {
            Some(Ok(value)) => value.to_string(),
            Some(Err(error)) => error.to_string(),
            None => String::new(),
        }
    }))
}

fn code(name: &str) -> Option<&'static str> {
    CODE.iter().find(|row| row.0 == name).map(|row| row.1)
}

const CODE: &[(&str, &str)] = &[
    (
        "cars-fields",
        r#". as $cars | .[0] | with_entries(.key as $k | .value = ([$cars[] | select(.[$k] == null)] | length))
            | map_values(select(. > 0))"#,
    ),
    (
        "cars-mpg-by-origin",
        r#"map(select(.Miles_per_Gallon)) | group_by([.Origin, .Cylinders])
            | map({origin: .[0].Origin, cylinders: .[0].Cylinders, n: length,
                mpg: (map(.Miles_per_Gallon) | add / length * 100 | round / 100)})
            | map(select(.n >= 5)) | sort_by(-.mpg)"#,
    ),
    (
        "gapminder-growth",
        r#"group_by(.country) | map(sort_by(.year) | {country: .[0].country,
                gain: ((.[-1].life_expect - .[0].life_expect) * 100 | round / 100)})
            | sort_by([-.gain, .country]) | .[:10] | to_entries | map({rank: (.key + 1)} + .value)"#,
    ),
    (
        "miserables-degree",
        r#"(.nodes | map({(.index | tostring): .name}) | add) as $names
            | [.links[] | {of: .source, to: .target, value}, {of: .target, to: .source, value}] | group_by(.of)
            | map({name: $names[.[0].of | tostring], degree: length,
                closest: $names[min_by([-.value, .to]).to | tostring]})
            | sort_by([-.degree, .name]) | .[:10]"#,
    ),
    ("miserables-sort-set", "[.links[].source] | unique"),
    (
        "movies-directors",
        r#"map(select(.Director and (."IMDB Rating" | type == "number"))) | group_by(.Director)
            | map(select(length >= 5) | {director: .[0].Director, films: length,
                mean: (map(."IMDB Rating") | add / length * 100 | round / 100),
                best: (min_by([-."IMDB Rating", (.Title | tostring)]).Title | tostring)})
            | sort_by([-.mean, .director]) | .[:12]"#,
    ),
    (
        "movies-json-roundtrip",
        r#"[.[:40][] | {Title, "US Gross", "Release Date"}] as $small | ($small | tojson) as $text
            | ($text | fromjson) as $back
            | {same: ($small == $back), chars: ($text | length), sum: ([$back[]."US Gross" | numbers] | add)}"#,
    ),
    (
        "movies-release-months",
        r#"[.[]."Release Date" | tostring | capture("^(?<month>[A-Z][a-z]{2}) \\d{1,2} (\\d{4})$").month]
            | group_by(.) | map([.[0], length]) | sort_by([-.[1], .[0]])"#,
    ),
    (
        "penguins-describe",
        r#"map(.Sex = if .Sex == "MALE" or .Sex == "FEMALE" then .Sex else "?" end) | group_by([.Species, .Sex])
            | map(select(any(.[]; ."Body Mass (g)")) | {species: .[0].Species, sex: .[0].Sex, n: length,
                mass: ([.[]."Body Mass (g)" | numbers] | add / length | round),
                flipper: ([.[]."Flipper Length (mm)" | numbers] | max)})"#,
    ),
    (
        "quakes-histogram",
        "[.features[].properties.mag | numbers | . * 2 | floor / 2] | group_by(.) | map([.[0], length])",
    ),
    (
        "quakes-strongest",
        r#"[.features[].properties | select(.mag | type == "number")] | sort_by([-.mag, .place]) | .[:8]
            | map({mag, where: (.place | capture("of (?<where>.*)$").where // .), ms: .time})"#,
    ),
];

#[cfg(test)]
mod tests {
    use crate::datasets::{answer, engine, programs, read_as_floats};

    #[test]
    fn jaq_answers_the_same() {
        let engine = engine();
        for program in programs() {
            if let Some(filter) = super::program(&program.name) {
                let ours = answer(&program.eval(&engine));
                assert_eq!(read_as_floats(&filter(&program.json)), read_as_floats(&ours), "{}", program.name);
            }
        }
    }
}
