//! A domain as the host uses it: runs that trust each other, in processes that serve one run after the other.

#[cfg(feature = "async")]
use super::domains::Wait;
use super::domains::{DomainState, Seat};
use super::running::Running;
use super::sandbox::Sandbox;
use crate::guest::layers::SetupError;
use crate::wire::messages::Order;
use lisp_runtime::remote::{HostHalf, Job};
use lisp_runtime::{Input, Outcome, Request};
use std::sync::Arc;
#[cfg(feature = "async")]
use std::task::Waker;

/// Runs that trust each other: those of one tenant, for example. [`Sandbox::domain`] makes one.
///
/// Its runs share processes, each of which is locked in like that of any other run, and serves one after the other, each on a machine of its own
/// under its own meter. The wall stands between a domain and everything else: the host, other domains, other runs. Within a
/// domain the meter separates runs, and native code that one of them managed to run could see and change those after it in the same
/// process.
///
/// - A process is replaced after [`DomainLimits::runs`](crate::DomainLimits::runs), [`DomainLimits::life`](crate::DomainLimits::life) and [`DomainLimits::growth_bytes`](crate::DomainLimits::growth_bytes), and after every run
///   that did not end in order: one that was killed, or whose process died, or whose answer is `host_fault`.
/// - As a process serves one run at a time, no run is lost with another.
/// - [`Usage::cpu_us`](lisp_runtime::Usage::cpu_us) and [`Usage::rss_peak_bytes`](lisp_runtime::Usage::rss_peak_bytes) are of processes: a run that
///   leaves its process alive has none.
///
/// ```no_run
/// # use lisp_runtime::Input;
/// # use lisp_sandbox::Sandbox;
/// # fn example(sandbox: &Sandbox) -> Result<(), Box<dyn std::error::Error>> {
/// let acme = sandbox.domain("acme")?;
/// for n in 0..1_000 {
///     assert_eq!(acme.eval("(inc data/n)", &Input::new().data("n", &n)).value::<i64>()?, n + 1);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Domain {
    pub(crate) sandbox: Sandbox,
    pub(crate) state: Arc<DomainState>,
}

impl Sandbox {
    /// The domain of a name: runs that share processes, as they trust each other.
    ///
    /// # Errors
    /// The name is empty or longer than [`DomainLimits::NAME_BYTES`](crate::DomainLimits::NAME_BYTES); or
    /// [`DomainLimits::domains`](crate::DomainLimits::domains) others are in use.
    pub fn domain(&self, name: &str) -> Result<Domain, SetupError> {
        Ok(Domain { sandbox: self.clone(), state: self.domains().get(name)? })
    }
}

impl Domain {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The processes that it has now.
    pub fn processes(&self) -> usize {
        self.state.alive()
    }

    /// Runs a request to its end in the domain, whichever the request names.
    pub fn run(&self, request: &Request<'_>) -> Outcome {
        let mut input = Input::new();
        match self.sandbox.engine().split_request(request, &mut input) {
            Ok((job, host)) => self.run_job(&job, host),
            Err(outcome) => *outcome,
        }
    }

    /// Compiles a program and runs it to its end; a fault of the program is the outcome's.
    pub fn eval(&self, source: &str, input: &Input<'_>) -> Outcome {
        match self.sandbox.split(source, input, false) {
            Ok((job, host)) => self.run_job(&job, host),
            Err(outcome) => *outcome,
        }
    }

    pub(crate) fn run_job(&self, job: &Job<'_>, mut host: HostHalf) -> Outcome {
        let bytes = match self.sandbox.prepare(job, &mut host) {
            Ok(bytes) => bytes,
            Err(outcome) => return *outcome,
        };
        self.run_as(self.order(&host, bytes.len()), &bytes, host)
    }

    /// Runs a job in a process that is as ordered.
    pub(crate) fn run_as(&self, order: Order, job: &[u8], mut host: HostHalf) -> Outcome {
        loop {
            let (seat, mut running) = match self.start(order, &mut host) {
                Ok(seated) => seated,
                Err(outcome) => return *outcome,
            };
            running.give_job(&mut host, job);
            match running.next_report(&mut host) {
                Some(report) => return seat.end(running, report, &mut host, self.sandbox.domains()),
                // It ended while it was idle, as it turns out. Another takes its place.
                None if seat.is_warm() && running.missed_job() => {}
                None => return running.finish(&mut host),
            }
        }
    }

    /// A process that is idle, or a new one.
    fn start(&self, order: Order, host: &mut HostHalf) -> Result<(Seat, Box<Running>), Box<Outcome>> {
        let (seat, warm) = match self.state.take(&order, host) {
            Ok(taken) => taken,
            Err(error) => return Err(Box::new(host.fail(error, None))),
        };
        let running = match warm {
            Some(mut running) => {
                self.sandbox.begin_in_domain(host, &mut running);
                running
            }
            None => Box::new(self.sandbox.order_child(host, order, false)?),
        };
        Ok((seat, running))
    }

    /// The process for a run, and its place, which is `kept` when it was found before. `None` when there is no room now: when there
    /// may be a place, the waker is woken.
    #[cfg(feature = "async")]
    pub(crate) fn try_start(
        &self,
        wait: &mut Option<Wait>,
        kept: &mut Option<Seat>,
        job_bytes: usize,
        (host, waker): (&HostHalf, &Waker),
    ) -> Result<Option<Box<Running>>, SetupError> {
        let order = self.order(host, job_bytes);
        if kept.is_none() {
            let waiting = wait.get_or_insert_with(|| self.state.wait());
            let Some((seat, warm)) = waiting.try_take(&order, waker) else { return Ok(None) };
            (*kept, *wait) = (Some(seat), None);
            if let Some(mut running) = warm {
                self.sandbox.begin_in_domain(host, &mut running);
                return Ok(Some(running));
            }
        }
        Ok(self.sandbox.try_order(host, order, false)?.map(Box::new))
    }

    /// What a process has to be for a run.
    pub(crate) fn order(&self, host: &HostHalf, job_bytes: usize) -> Order {
        self.sandbox.child_of_domain(host, job_bytes, self.state.limits.life)
    }
}
