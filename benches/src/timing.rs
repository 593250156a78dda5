//! How often work is done, and what its time is: the same for every peer, in this process or in one of its own.

use crate::peers::Answer;
use cpu_time::ThreadTime;
use std::hint::black_box;
use std::time::Duration;

/// How much a peer may work at one workload in one round.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// So long it works before it is measured: caches fill, and compilers that compile while they run have compiled.
    pub warm: Duration,
    /// So long it is measured, and longer only to come to the fewest runs.
    pub measure: Duration,
    /// The fewest measurements: each is of one run, or of as many as take long enough for the clock.
    pub fewest: usize,
    /// The most measurements.
    pub max: usize,
}

/// So long a measurement takes at least, of one run or of many: a look at the clock takes up to half a microsecond.
const LOOK: Duration = Duration::from_micros(50);
/// Work whose first run takes longer is run once more and no oftener.
const SLOW: Duration = Duration::from_secs(1);

impl Budget {
    /// What five rounds have time for: with them every workload is measured twenty times.
    pub const ROUND: Budget =
        Budget { warm: Duration::from_millis(100), measure: Duration::from_millis(300), fewest: 4, max: 20_000 };

    /// The median of the times of work, in microseconds of this thread's processor time, and the answer of its first run. Not measured
    /// is work whose answer is wrong.
    pub fn median(self, work: &mut dyn FnMut() -> Answer, is_right: impl Fn(&str) -> bool) -> (f64, Answer) {
        let start = ThreadTime::now();
        let answer = work();
        let first = start.elapsed();
        if !is_right(&answer) {
            return (f64::NAN, answer);
        }
        let mut runs = 1;
        while start.elapsed() < self.warm {
            black_box(work());
            runs += 1;
        }
        let each = (start.elapsed() / runs).max(Duration::from_nanos(1));
        let at_once = u32::try_from(LOOK.as_nanos().div_ceil(each.as_nanos())).unwrap_or(u32::MAX);
        let fewest = if first > SLOW { 1 } else { self.fewest };
        let (mut times, mut spent) = (Vec::new(), Duration::ZERO);
        while times.len() < fewest || (spent < self.measure && times.len() < self.max) {
            let start = ThreadTime::now();
            for _ in 0..at_once {
                black_box(work());
            }
            let time = start.elapsed();
            spent += time;
            times.push(time.as_secs_f64() * 1e6 / f64::from(at_once));
        }
        (median(times), answer)
    }
}

/// The value in the middle; of an even number of values the upper one of the two.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What a table is asked for: the name of a workload, or its beginning, and `--rounds N`.
pub struct Arguments {
    wanted: String,
    /// A cell of a table is the median over so many rounds.
    pub rounds: usize,
}

impl Arguments {
    /// How many rounds there are when nothing is said.
    const ROUNDS: usize = 5;

    /// Those of this program.
    ///
    /// # Panics
    /// When there is no number of rounds behind `--rounds`.
    pub fn read() -> Self {
        let mut read = Arguments { wanted: String::new(), rounds: Self::ROUNDS };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--rounds" => {
                    let number = arguments.next().and_then(|number| number.parse().ok());
                    read.rounds = number.filter(|rounds| *rounds > 0).expect("--rounds has a number behind it");
                }
                // Cargo's own.
                "--bench" => {}
                _ => read.wanted = argument,
            }
        }
        read
    }

    /// Is the workload of this name wanted?
    pub fn wants(&self, name: &str) -> bool {
        name.starts_with(&self.wanted)
    }
}
