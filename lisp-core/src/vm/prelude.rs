//! Functions of the language that are written in the language; compiled once per process.

use crate::Table;
use crate::code::{BuiltinId, ProgramId, Proto};
use crate::compile::Program;
use crate::error::{Error, Reason};
use crate::heap::Res;
use crate::stack::Unit;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// The number of the prelude in every machine.
const ID: ProgramId = ProgramId(u32::MAX);

const SOURCE: &str = include_str!("../prelude/prelude.clj");

struct Prelude {
    unit: Unit,
    by_name: Table<Arc<str>, usize>,
}

static PRELUDE: LazyLock<Result<Prelude, Error>> = LazyLock::new(|| {
    let program = Program::compile_prelude(SOURCE)?;
    let by_name = program
        .code()
        .protos
        .iter()
        .enumerate()
        .filter(|(_, p)| p.captures == 0)
        .filter_map(|(i, p)| Some((p.name.clone()?, i)))
        .collect();
    let code = program.code().clone();
    let unit = Unit { code, id: ID, number: 0, links: Box::default(), pinned: 0, prelude: true };
    Ok(Prelude { unit, by_name })
});

/// Returns the code of a prelude function.
pub(crate) fn function(id: BuiltinId) -> Res<(&'static Unit, &'static Proto)> {
    // The name of a definition cannot contain a slash.
    let row = id.row().name;
    let name = if row.contains('/') { Cow::Owned(row.replace('/', ".")) } else { Cow::Borrowed(row) };
    let prelude = PRELUDE.as_ref().map_err(Clone::clone)?;
    let missing = || Error::new(Reason::HostFault, format!("the prelude does not define {name}"));
    let place = *prelude.by_name.get(&*name).ok_or_else(missing)?;
    let proto = prelude.unit.code.protos.get(place).ok_or_else(missing)?;
    Ok((&prelude.unit, proto))
}

/// Returns the prelude as a loaded program.
pub(crate) fn any() -> Option<&'static Unit> {
    unit(ID)
}

/// Returns the prelude as a loaded program, if this is its number.
#[cold]
pub(crate) fn unit(id: ProgramId) -> Option<&'static Unit> {
    (id == ID).then(|| PRELUDE.as_ref().ok().map(|prelude| &prelude.unit)).flatten()
}
