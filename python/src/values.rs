//! Values: Python objects to and from the parts of a value. There is no recursion: open lists and dicts are kept in a list.

use crate::interrupt::ends_the_run;
use ptc_lisp::value::{Part, TypedError, TypedReader, TypedValue, TypedWriter};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat,
    PyFrozenSet, PyInt, PyList, PyMapping, PyMemoryView, PySet, PyString, PyTimeAccess, PyTuple, PyTzInfo,
    PyTzInfoAccess,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

/// What becomes of sets and times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// They keep their types.
    Typed,
    /// They become lists and strings, as in JSON.
    Json,
}

/// An open list, set or dict.
enum Open<'py> {
    Items(Bound<'py, PyList>, usize),
    /// The keys and the values of a dict.
    Entries(Bound<'py, PyList>, Bound<'py, PyList>, usize),
}

impl<'py> Open<'py> {
    /// Returns the next element, with its key in a dict.
    fn next(&mut self) -> (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>) {
        // An index behind the end would make an exception for each list and dict.
        match self {
            Open::Items(items, at) if *at < items.len() => {
                *at += 1;
                (None, items.get_item(*at - 1).ok())
            }
            Open::Entries(keys, values, at) if *at < keys.len() => {
                *at += 1;
                keys.get_item(*at - 1).ok().zip(values.get_item(*at - 1).ok()).unzip()
            }
            _ => (None, None),
        }
    }
}

/// The maximum number of steps of a path in an error.
const STEPS: usize = 16;
const SECONDS_PER_DAY: i64 = 86_400;

/// Converts a Python object. `name` is what errors call it, such as `data["rows"]`.
pub(crate) fn to_typed(object: &Bound<'_, PyAny>, form: Form, name: &str) -> PyResult<TypedValue> {
    let mut writer = TypedWriter::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut next = Some(object.clone());
    loop {
        if let Some(object) = next.take() {
            begin(&object, form, &mut writer, &mut open).map_err(|error| located(error, &object, name, &open))?;
        }
        let Some(last) = open.last_mut() else { break };
        let (key, value) = last.next();
        if let Some(key) = key {
            write_key(&key, &mut writer).map_err(|refused| match refused {
                // The path of the dict, not of the key in it.
                Refused::Key(_) => located(refused, &key, name, &open[..open.len() - 1]),
                refused => located(refused, &key, name, &open),
            })?;
        }
        next = value;
        if next.is_none() {
            open.pop();
            writer.write(&Part::End).map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
    }
    writer.finish().map_err(|error| PyValueError::new_err(error.to_string()))
}

fn write_key(key: &Bound<'_, PyAny>, writer: &mut TypedWriter) -> Result<(), Refused> {
    match key.cast::<PyString>() {
        Ok(text) => Ok(writer.write(&Part::Key(Cow::Borrowed(text.to_str()?)))?),
        Err(_) => Err(Refused::Key(kind_of(key))),
    }
}

/// Why an object cannot be converted.
enum Refused {
    Value(TypedError),
    Key(String),
    Kind(&'static str),
    Unknown,
    Python(PyErr),
}

impl From<TypedError> for Refused {
    fn from(error: TypedError) -> Self {
        Refused::Value(error)
    }
}

impl From<PyErr> for Refused {
    fn from(error: PyErr) -> Self {
        Refused::Python(error)
    }
}

/// Returns the exception, with the path of the object.
fn located(refused: Refused, object: &Bound<'_, PyAny>, name: &str, open: &[Open<'_>]) -> PyErr {
    let path = path_of(name, open);
    match refused {
        Refused::Value(error) => PyValueError::new_err(format!("{path}: {error}")),
        Refused::Key(kind) => {
            PyTypeError::new_err(format!("{path}: a key is {kind}; programs have string keys: write str(key)"))
        }
        Refused::Kind(hint) => PyTypeError::new_err(format!("{path}: {} {hint}", kind_of(object))),
        Refused::Unknown => PyTypeError::new_err(format!(
            "{path}: {} cannot be passed to a program; pass None, bool, int, float, str, list, dict, set, date, datetime or timedelta",
            kind_of(object)
        )),
        Refused::Python(error) if ends_the_run(object.py(), &error) => error,
        Refused::Python(error) => PyValueError::new_err(format!("{path}: {error}")),
    }
}

fn kind_of(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    format!("{article} {name}")
}

/// Returns a path such as `data["items"][3]["when"]`.
fn path_of(name: &str, open: &[Open<'_>]) -> String {
    let mut path = name.to_owned();
    for open in open.iter().take(STEPS) {
        // Writing to a string cannot fail.
        let _ = match open {
            Open::Items(_, at) => write!(path, "[{}]", at.saturating_sub(1)),
            Open::Entries(keys, _, at) => {
                let key = keys.get_item(at.saturating_sub(1));
                let key = key.and_then(|key| key.repr()).map_or_else(|_| "?".to_owned(), |key| key.to_string());
                write!(path, "[{}]", key.chars().take(60).collect::<String>())
            }
        };
    }
    if open.len() > STEPS {
        path.push_str("...");
    }
    path
}

/// Writes an object, or the start of one that has elements.
fn begin<'py>(
    object: &Bound<'py, PyAny>,
    form: Form,
    writer: &mut TypedWriter,
    open: &mut Vec<Open<'py>>,
) -> Result<(), Refused> {
    if object.is_none() {
        return Ok(writer.write(&Part::Nil)?);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(writer.write(&Part::String(Cow::Borrowed(text.to_str()?)))?);
    }
    // A bool is an int too.
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(writer.write(&Part::Bool(truth.is_true()))?);
    }
    if object.is_instance_of::<PyInt>() {
        return match object.extract::<i64>() {
            Ok(number) => Ok(writer.write(&Part::Int(number))?),
            Err(_) => write_long(object, writer),
        };
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(writer.write(&Part::Float(number.value()))?);
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        writer.write(&Part::BeginMap)?;
        open.push(Open::Entries(dict.keys(), dict.values(), 0));
        return Ok(());
    }
    if let Ok(list) = object.cast::<PyList>() {
        return enter(Part::BeginList, list.clone(), writer, open);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        // The items themselves: the `__iter__` of a subclass may raise.
        return enter(Part::BeginList, tuple.get_slice(0, tuple.len()).to_list(), writer, open);
    }
    begin_other(object, form, writer, open)
}

fn enter<'py>(
    part: Part<'_>,
    items: Bound<'py, PyList>,
    writer: &mut TypedWriter,
    open: &mut Vec<Open<'py>>,
) -> Result<(), Refused> {
    writer.write(&part)?;
    open.push(Open::Items(items, 0));
    Ok(())
}

/// Writes an integer beyond 64 bits.
fn write_long(object: &Bound<'_, PyAny>, writer: &mut TypedWriter) -> Result<(), Refused> {
    // Python itself refuses to write integers of more than 4,300 digits, which is the limit of programs too.
    let digits = object.py().get_type::<PyInt>().call_method1("__str__", (object,)).map_err(|_| TypedError::TooLong)?;
    let digits = digits.cast::<PyString>().map_err(PyErr::from)?;
    Ok(writer.write(&Part::Digits(digits.to_str()?))?)
}

/// Writes sets, times and what is like a dict.
fn begin_other<'py>(
    object: &Bound<'py, PyAny>,
    form: Form,
    writer: &mut TypedWriter,
    open: &mut Vec<Open<'py>>,
) -> Result<(), Refused> {
    let py = object.py();
    if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
        let members = PyList::empty(py);
        for member in object.try_iter()? {
            members.append(member?)?;
        }
        let part = if form == Form::Typed { Part::BeginSet } else { Part::BeginList };
        return enter(part, members, writer, open);
    }
    if form == Form::Json && (object.is_instance_of::<PyDate>() || object.is_instance_of::<PyDelta>()) {
        return write_time_as_json(object, writer);
    }
    // A datetime is a date too.
    if let Ok(time) = object.cast::<PyDateTime>() {
        return Ok(writer.write(&date_time(time)?)?);
    }
    if let Ok(date) = object.cast::<PyDate>() {
        let days = days_of(date.get_year().into(), date.get_month().into(), date.get_day().into());
        return Ok(writer.write(&Part::Date(days))?);
    }
    if let Ok(delta) = object.cast::<PyDelta>() {
        let seconds = i64::from(delta.get_days()) * SECONDS_PER_DAY + i64::from(delta.get_seconds());
        return Ok(writer.write(&Part::Duration(seconds, nanos(delta.get_microseconds())))?);
    }
    if object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyMemoryView>()
    {
        return Err(Refused::Kind("cannot be passed to a program; decode it to a str, or send base64 text"));
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let (keys, values) = (mapping.keys()?, mapping.values()?);
        if keys.len() != values.len() {
            return Err(Refused::Kind("has not as many values as keys"));
        }
        writer.write(&Part::BeginMap)?;
        open.push(Open::Entries(keys, values, 0));
        return Ok(());
    }
    if form == Form::Json
        && let Some(plain) = plain_form(object)?
    {
        // A plain form is never of the same kind, so this ends.
        return begin(&plain, form, writer, open);
    }
    Err(Refused::Unknown)
}

/// Writes a time as a string, or a duration as its seconds. Methods of a subclass may return anything, so those of the
/// type itself are called.
fn write_time_as_json(object: &Bound<'_, PyAny>, writer: &mut TypedWriter) -> Result<(), Refused> {
    let py = object.py();
    if object.is_instance_of::<PyDelta>() {
        let seconds = py.get_type::<PyDelta>().call_method1("total_seconds", (object,))?;
        return Ok(writer.write(&Part::Float(seconds.extract()?))?);
    }
    let base =
        if object.is_instance_of::<PyDateTime>() { py.get_type::<PyDateTime>() } else { py.get_type::<PyDate>() };
    let text = base.call_method1("isoformat", (object,))?;
    let text = text.cast::<PyString>().map_err(PyErr::from)?;
    Ok(writer.write(&Part::String(Cow::Borrowed(text.to_str()?)))?)
}

/// Asks the Python half for the plain form of a dataclass, a model or an enum.
fn plain_form<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static PLAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let plain = PLAIN.import(object.py(), "ptc_lisp._plain", "plain")?;
    let plain = plain.call1((object,))?;
    Ok((!plain.is_none()).then_some(plain))
}

fn nanos(micros: i32) -> u32 {
    micros.unsigned_abs() * 1_000
}

fn date_time<'a>(time: &Bound<'_, PyDateTime>) -> PyResult<Part<'a>> {
    let py = time.py();
    let is_aware = time.get_tzinfo().is_some();
    let utc;
    let time = if is_aware {
        utc = time.call_method1("astimezone", (PyTzInfo::utc(py)?,))?.cast_into::<PyDateTime>()?;
        &utc
    } else {
        time
    };
    let days = days_of(time.get_year().into(), time.get_month().into(), time.get_day().into());
    let in_day = i64::from(time.get_hour()) * 3_600 + i64::from(time.get_minute()) * 60 + i64::from(time.get_second());
    let (seconds, nanos) = (days * SECONDS_PER_DAY + in_day, time.get_microsecond() * 1_000);
    Ok(if is_aware { Part::Instant(seconds, nanos) } else { Part::DateTime(seconds, nanos) })
}

/// Returns the days since 1970-01-01. A year starts in March, so that the leap day is its last.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = if month > 2 { month - 3 } else { month + 9 };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Returns year, month and day, if Python has them.
fn civil(days: i64) -> Option<(i32, u8, u8)> {
    let days = days.checked_add(719_468)?;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let year = i32::try_from(year).ok().filter(|year| (1..=9_999).contains(year))?;
    Some((year, u8::try_from(month).ok()?, u8::try_from(day).ok()?))
}

/// A list, set or dict that is being filled.
enum Filled<'py> {
    List(Vec<Bound<'py, PyAny>>),
    Set(Vec<Bound<'py, PyAny>>),
    Dict(Bound<'py, PyDict>, Option<Bound<'py, PyString>>),
}

/// Creates the Python object of a value.
pub(crate) fn to_python<'py>(py: Python<'py>, parts: TypedReader<'_>) -> PyResult<Bound<'py, PyAny>> {
    let mut open: Vec<Filled<'py>> = Vec::new();
    let mut keys: HashMap<String, Bound<'py, PyString>> = HashMap::new();
    for part in parts {
        let part = part.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let value = match part {
            Part::BeginList => {
                open.push(Filled::List(Vec::new()));
                continue;
            }
            Part::BeginSet => {
                open.push(Filled::Set(Vec::new()));
                continue;
            }
            Part::BeginMap => {
                open.push(Filled::Dict(PyDict::new(py), None));
                continue;
            }
            Part::Key(text) => {
                if let Some(Filled::Dict(_, key)) = open.last_mut() {
                    *key = Some(shared_key(py, &mut keys, &text));
                }
                continue;
            }
            Part::End => match open.pop() {
                Some(filled) => filled.finish(py)?,
                None => break,
            },
            scalar => scalar_of(py, &scalar)?,
        };
        match open.last_mut() {
            None => return Ok(value),
            Some(Filled::List(items) | Filled::Set(items)) => items.push(value),
            Some(Filled::Dict(dict, key)) => match key.take() {
                Some(key) => dict.set_item(key, value)?,
                None => break,
            },
        }
    }
    Err(PyValueError::new_err("the value ends too early"))
}

/// Returns the string of a key; equal keys share it.
fn shared_key<'py>(
    py: Python<'py>,
    keys: &mut HashMap<String, Bound<'py, PyString>>,
    text: &str,
) -> Bound<'py, PyString> {
    const SHARED: usize = 1_024;
    if let Some(key) = keys.get(text) {
        return key.clone();
    }
    let key = PyString::new(py, text);
    if keys.len() < SHARED {
        keys.insert(text.to_owned(), key.clone());
    }
    key
}

impl<'py> Filled<'py> {
    fn finish(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Filled::List(items) => Ok(PyList::new(py, items)?.into_any()),
            Filled::Dict(dict, _) => Ok(dict.into_any()),
            Filled::Set(items) => {
                // Lists and dicts cannot be members of a Python set: then it is a list.
                let set = PySet::empty(py)?;
                match items.iter().try_for_each(|item| set.add(item)) {
                    Ok(()) => Ok(set.into_any()),
                    Err(_) => Ok(PyList::new(py, items)?.into_any()),
                }
            }
        }
    }
}

fn scalar_of<'py>(py: Python<'py>, part: &Part<'_>) -> PyResult<Bound<'py, PyAny>> {
    let micros = |nanos: u32| nanos / 1_000;
    let at = |seconds: i64, nanos: u32, zone: Option<&Bound<'py, PyTzInfo>>| {
        let (days, in_day) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
        let Some((year, month, day)) = civil(days) else { return Ok(text_of(py, part)) };
        let part = |seconds: i64| u8::try_from(seconds).unwrap_or(0);
        let (hour, minute, second) = (part(in_day / 3_600), part(in_day / 60 % 60), part(in_day % 60));
        PyDateTime::new(py, year, month, day, hour, minute, second, micros(nanos), zone).map(Bound::into_any)
    };
    Ok(match part {
        Part::Nil => py.None().into_bound(py),
        Part::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Part::Int(number) => number.into_pyobject(py)?.into_any(),
        Part::Float(number) => PyFloat::new(py, *number).into_any(),
        Part::String(text) => PyString::new(py, text).into_any(),
        Part::Digits(digits) => py.get_type::<PyInt>().call1((*digits,))?,
        Part::Date(days) => match civil(*days) {
            Some((year, month, day)) => PyDate::new(py, year, month, day)?.into_any(),
            None => text_of(py, part),
        },
        Part::Instant(seconds, nanos) => at(*seconds, *nanos, Some(&PyTzInfo::utc(py)?.to_owned()))?,
        Part::DateTime(seconds, nanos) => at(*seconds, *nanos, None)?,
        Part::Duration(seconds, nanos) => {
            let days = i32::try_from(seconds.div_euclid(SECONDS_PER_DAY)).ok();
            let in_day = i32::try_from(seconds.rem_euclid(SECONDS_PER_DAY)).ok();
            let micros = i32::try_from(micros(*nanos)).ok();
            let delta = days
                .zip(in_day)
                .zip(micros)
                .map(|((days, seconds), micros)| PyDelta::new(py, days, seconds, micros, true));
            match delta {
                Some(Ok(delta)) => delta.into_any(),
                _ => text_of(py, part),
            }
        }
        Part::BeginList | Part::BeginSet | Part::BeginMap | Part::Key(_) | Part::End => py.None().into_bound(py),
    })
}

/// Returns the text of a time that Python's types cannot hold.
fn text_of<'py>(py: Python<'py>, part: &Part<'_>) -> Bound<'py, PyAny> {
    let text = match part {
        Part::Date(days) => format!("{days} days after 1970-01-01"),
        Part::Instant(seconds, _) => format!("{seconds} seconds after 1970-01-01T00:00:00Z"),
        Part::DateTime(seconds, _) => format!("{seconds} seconds after 1970-01-01T00:00"),
        Part::Duration(seconds, _) => format!("{seconds} seconds"),
        _ => String::new(),
    };
    PyString::new(py, &text).into_any()
}

/// Returns JSON text of a Python object, as results of tools are passed to programs.
#[pyfunction]
pub(crate) fn to_json(object: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let value = to_typed(object, Form::Json, name)?;
    Ok(value.json().unwrap_or_default().to_owned())
}

/// Returns the Python object of a JSON text.
#[pyfunction]
pub(crate) fn from_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, TypedReader::of(text))
}
