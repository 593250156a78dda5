//! Namespaces of other libraries and Java classes that the language does not have, with replacements.

use super::java::{self, CLASSES};
use super::{Absent, Rows, exception_classes};
use crate::error::{Error, Reason};
use crate::text::near_names;

const fn absent(names: &'static str, hint: &'static str, instead: &'static [(&'static str, &'static str)]) -> Absent {
    Absent { names, hint, instead }
}

/// Java classes, without their package.
pub static ABSENT_CLASSES: &[Absent] = &[
    absent(
        "UUID",
        "ids come from data or a tool; a UUID is a string: {}",
        &[("(parse-uuid \"9f4a7b7e-6d1f-4d53-9a3e-0d2f7a3b1c55\")", "\"9f4a7b7e-6d1f-4d53-9a3e-0d2f7a3b1c55\"")],
    ),
    absent(
        "Random ThreadLocalRandom SecureRandom",
        "a program returns the same result each time: get random numbers from a tool, or from data/name",
        &[],
    ),
    absent(
        "Thread TimeUnit Executors Future CompletableFuture Timer",
        "a program cannot wait; make calls in parallel with {}",
        &[("(pmap inc [1 2])", "[2 3]")],
    ),
    absent(
        "BigDecimal MathContext RoundingMode DecimalFormat NumberFormat",
        "write {} or {}",
        &[("(round 2.675 2)", "2.68"), ("(format \"%,.2f\" 1234.5)", "\"1,234.50\"")],
    ),
    absent(
        "StringBuilder StringBuffer StringWriter StringReader StringTokenizer",
        "build text with {} or {}",
        &[("(str \"a\" 1)", "\"a1\""), ("(str/join \",\" [1 2])", "\"1,2\"")],
    ),
    absent(
        "ArrayList LinkedList List Array ArrayDeque Vector PersistentVector PersistentQueue",
        "write a vector: {}",
        &[("(conj [1 2] 3)", "[1 2 3]")],
    ),
    absent(
        "HashMap TreeMap LinkedHashMap Map ConcurrentHashMap",
        "write a map: {}",
        &[("(assoc {:a 1} :b 2)", "{:a 1 :b 2}")],
    ),
    absent("HashSet TreeSet LinkedHashSet Set", "write a set: {}", &[("(conj #{1} 2)", "#{1 2}")]),
    absent("Collections Arrays Comparator Collectors Stream Iterator", "write {}", &[("(sort [2 1])", "[1 2]")]),
    absent("Pattern Matcher", "write {}", &[("(re-seq #\"\\d+\" \"1 a 2\")", "[\"1\" \"2\"]")]),
    absent("Optional Objects", "nil represents a missing value: {}", &[("(or nil 0)", "0")]),
    absent(
        "File Files Paths Path Scanner BufferedReader InputStream URL URI HttpClient Socket",
        "a program cannot read files or the network: read data/name, or call a tool, tool/name",
        &[],
    ),
    absent(
        "SimpleDateFormat DateFormat Calendar GregorianCalendar",
        "write {}",
        &[(
            "(.format (LocalDate/parse \"2024-01-31\") (DateTimeFormatter/ofPattern \"d MMM yyyy\"))",
            "\"31 Jan 2024\"",
        )],
    ),
    absent(
        "ZonedDateTime OffsetDateTime LocalTime Clock",
        "all times are UTC: write {} or {}",
        &[
            ("(str (Instant/parse \"2024-01-31T10:00:00+02:00\"))", "\"2024-01-31T08:00:00Z\""),
            ("(.getHour (LocalDateTime/parse \"2024-01-31T10:00\"))", "10"),
        ],
    ),
    absent(
        "YearMonth Year DayOfWeek Month MonthDay",
        "write {} or {}",
        &[
            ("(.lengthOfMonth (LocalDate/of 2024 2 1))", "29"),
            ("(.getDayOfWeek (LocalDate/parse \"2024-01-31\"))", "\"WEDNESDAY\""),
        ],
    ),
    absent(
        "Base64 URLEncoder URLDecoder MessageDigest CRC32",
        "strings cannot be encoded here; call a tool, tool/name",
        &[],
    ),
];

/// Namespaces of other libraries and of Clojure.
pub static ABSENT_NAMESPACES: &[Absent] = &[
    absent(
        "clojure.test clojure.test.check midje.sweet",
        "delete it; a program tests a value with {}",
        &[("(assert (= 2 (inc 1)))", "nil")],
    ),
    absent(
        "clojure.java.io clojure.java.shell babashka.fs clojure.data.csv clj-http.client org.httpkit.client next.jdbc",
        "a program cannot read files or the network: read data/name, or call a tool, tool/name",
        &[],
    ),
    absent("clojure.core.async", "make calls in parallel with {}", &[("(pmap inc [1 2])", "[2 3]")]),
    absent("clojure.math.combinatorics", "write {}", &[("(combinations [1 2 3] 2)", "[[1 2] [1 3] [2 3]]")]),
    absent("clojure.math.numeric-tower", "write {} or {}", &[("(pow 2 3)", "8.0"), ("(round 2.5)", "3")]),
    absent(
        "clojure.zip",
        "write {} or {}",
        &[
            ("(update-in {:a [1 2]} [:a 0] inc)", "{:a [2 2]}"),
            ("(postwalk (fn [x] (if (number? x) (inc x) x)) [1 [2]])", "[2 [3]]"),
        ],
    ),
    absent(
        "clojure.spec.alpha malli.core schema.core",
        "test values with predicates: {}",
        &[("(every? number? [1 2])", "true")],
    ),
    absent(
        "clj-time.core clj-time.format clj-time.coerce java-time java-time.api tick.core tick.alpha.api",
        "times are Java's: {}",
        &[("(str (.plusDays (LocalDate/parse \"2024-01-31\") 1))", "\"2024-02-01\"")],
    ),
    absent(
        "medley.core clojure.data clojure.core.reducers clojure.core.match com.rpl.specter flatland.useful.map",
        "write it with the core's functions: {} finds them",
        &[("(apropos \"partition-by\")", "[\"partition-by\"]")],
    ),
];

fn listed(list: &'static [Absent], name: &str) -> Option<&'static Absent> {
    list.iter().find(|absent| absent.names().any(|absent| absent == name))
}

/// Returns a class without its package.
fn without_package(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

/// Returns true for the name of a class: its last part starts with a capital letter.
pub(crate) fn is_class_name(name: &str) -> bool {
    without_package(name).starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns the supported classes, as they are written.
fn classes() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().filter(|class| java::has_members(class)).map(|(short, full, is_short)| match is_short {
        true => *short,
        false => *full,
    })
}

/// Returns the error for an unsupported class.
pub(crate) fn no_class(class: &str) -> Error {
    let error = Error::new(Reason::UnsupportedJavaClass, format!("unknown Java class {class}"));
    let last = without_package(class);
    if let Some(absent) = listed(ABSENT_CLASSES, last) {
        return error.hint(absent.hint());
    }
    // The common ending of exceptions says nothing about which one is meant.
    let near = |kind: &str| {
        let (stem, stems) =
            (last.strip_suffix(kind)?, exception_classes::class_names().filter_map(|c| c.strip_suffix(kind)));
        Some(near_names(stem, stems, 1).first().map(|near| format!("{near}{kind}")))
    };
    let (near, otherwise) = match near("Exception").or_else(|| near("Error")) {
        Some(near) => {
            let any = "throw (ex-info message data), or one of Java's that catch knows, such as \
                       (IllegalArgumentException. message)";
            (near, any.to_owned())
        }
        None => {
            let near = near_names(last, classes().filter(|class| !class.contains('.')), 1);
            (
                near.first().map(|&near| near.to_owned()),
                format!("available: {}", classes().collect::<Vec<_>>().join(", ")),
            )
        }
    };
    error.hint(near.map_or(otherwise, |near| format!("did you mean {near}?")))
}

/// Returns the error for a class that `instance?` does not know.
pub(crate) fn no_instances(class: &str) -> Error {
    let error = Error::new(Reason::UnsupportedJavaClass, format!("instance? does not know the class {class}"));
    error.hint(match listed(ABSENT_CLASSES, without_package(class)) {
        Some(absent) => absent.hint(),
        None => "it knows String, Number, Long, Double, Boolean, LocalDate, LocalDateTime, Instant, Duration, java.util.Date and the \
                 exceptions that catch knows; ask for others with string?, map?, vector? and their like"
            .to_owned(),
    })
}

/// Returns the error for an unsupported member or constructor of a class: `.method`, `Class/member`, `Class.`
pub(crate) fn no_member(name: &str, class: &str) -> Error {
    java::unsupported(name).unwrap_or_else(|| no_class(class))
}

/// Returns the error for `namespace/name` with an unknown namespace.
pub(crate) fn unknown_namespace(namespace: &str, name: &str, text: &str, rows: &Rows) -> Error {
    if is_class_name(namespace) || namespace.starts_with("java.") {
        return no_class(namespace);
    }
    let error = Error::new(Reason::InvalidForm, format!("unknown namespace {namespace} in {text}"));
    if let Some(absent) = listed(ABSENT_NAMESPACES, namespace) {
        return error.hint(absent.hint());
    }
    let known = "data, tool, clojure.core, clojure.string (str), clojure.set (set), clojure.walk, clojure.math, json";
    error.hint(match (rows.by_name(name), Absent::of(name)) {
        (Some(id), _) => {
            let row = rows.row(id);
            match row.namespace {
                "" => format!("{name} is a core function: {}", row.how_to_write()),
                _ => row.how_to_write(),
            }
        }
        (None, Some(absent)) => absent.hint(),
        (None, None) => format!(
            "use a plain name, or one of the namespaces {known}; aliases of `require` exist only in the program that defines them"
        ),
    })
}

/// Returns the error for a required namespace that is unknown.
pub(crate) fn no_namespace(namespace: &str) -> Error {
    let error = Error::new(Reason::InvalidForm, format!("unknown namespace {namespace}"));
    error.hint(match listed(ABSENT_NAMESPACES, namespace) {
        Some(absent) => absent.hint(),
        None => "there are clojure.string, clojure.set, clojure.walk, clojure.math, clojure.edn and clojure.pprint, which need no \
                 require; delete it"
            .to_owned(),
    })
}
