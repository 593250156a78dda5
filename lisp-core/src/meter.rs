//! Fuel, as the dispatch loop counts it.

use crate::code::Instr;
use crate::cost::INSTRUCTION;

/// Is anything counted? False with the feature that measures what the meter costs, and nowhere else.
pub(crate) const METERED: bool = cfg!(not(feature = "unmetered"));

/// Fuel as the bytes of code that it pays for, if no built-in takes its part; negative when more was spent than there
/// was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fuel(isize);

const INSTR_BYTES: isize = size_of::<Instr>().cast_signed();

/// Bytes of code that one unit of fuel pays for.
const BYTES_PER_UNIT: i64 = INSTR_BYTES as i64 / INSTRUCTION.cast_signed();

const _: () = assert!(BYTES_PER_UNIT * INSTRUCTION.cast_signed() == INSTR_BYTES as i64);
const _: () = assert!(size_of::<usize>() == size_of::<u64>(), "fuel of 64 bits is counted in an address");

impl Fuel {
    /// What one instruction costs.
    pub(crate) const ONE: Fuel = Fuel::of(INSTRUCTION.cast_signed());

    /// Fuel of `units`; what its bytes could not express is cut.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) const fn of(units: i64) -> Fuel {
        Fuel(units.saturating_mul(BYTES_PER_UNIT) as isize)
    }

    /// Fuel that pays for this many bytes of code.
    #[inline(always)]
    pub(crate) const fn of_bytes(bytes: isize) -> Fuel {
        Fuel(bytes)
    }

    /// The bytes of code that it pays for.
    #[inline(always)]
    pub(crate) const fn bytes(self) -> isize {
        self.0
    }

    /// In units.
    #[inline(always)]
    pub(crate) const fn units(self) -> i64 {
        (self.0 as i64).div_euclid(BYTES_PER_UNIT)
    }

    /// The difference; `None` when it is less than `cost`.
    #[inline(always)]
    pub(crate) fn less(self, cost: Fuel) -> Option<Fuel> {
        (!METERED || self.0 >= cost.0).then(|| Fuel(self.0 - cost.0))
    }

    /// The sum.
    pub(crate) const fn plus(self, more: Fuel) -> Fuel {
        Fuel(self.0.saturating_add(more.0))
    }

    /// The fuel left after spending `units`, negative when that is more than there was.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "an address has 64 bits")]
    pub(crate) fn spend(self, units: u64) -> Fuel {
        const BYTES: usize = BYTES_PER_UNIT.cast_unsigned() as usize;
        const SMALL: u64 = 1 << 32;
        // What is above it stays so far above the least number that small ones, each of which is looked at, never get there.
        const LEAST: isize = isize::MIN + (1 << 60);
        if units < SMALL {
            return Fuel(self.0.wrapping_sub_unsigned(units as usize * BYTES));
        }
        let bytes = (units as usize).saturating_mul(BYTES);
        Fuel(self.0.saturating_sub_unsigned(bytes).max(LEAST))
    }

    /// Is it negative: was more spent than there was?
    #[inline(always)]
    pub(crate) fn is_over(self) -> bool {
        self.0 < 0
    }
}
